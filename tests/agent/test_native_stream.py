"""What `_invoke` returns: an iterator, or an error that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from agjson.agents import Agent, Invocation, NormalizerSettings
from agjson.normalizer import Normalizer
from agjson.types import AgStreamEvent, TurnDone, TurnError
from tests.support.scripted import ScriptNormalizer, start, text


class Returning(Agent):
    def __init__(self, returned: Any) -> None:
        super().__init__()
        self.returned = returned

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> Normalizer:
        return ScriptNormalizer(**settings)

    def _invoke(self, invocation: Invocation) -> Iterable[Any]:
        return self.returned  # type: ignore[no-any-return]


class Coroutine(Returning):
    async def _invoke(self, invocation: Invocation) -> Any:  # type: ignore[override]
        return []


async def both(agent: Agent) -> Iterator[AgStreamEvent]:
    """The last event, run asynchronously and on the calling thread."""
    events = [event async for event in agent.run(start(thread="async"))]
    return iter((events[-1], list(agent.run_sync(start(thread="sync")))[-1]))


@pytest.mark.parametrize("returned", ["text", b"text", {"a": 1}, None, 5], ids=lambda each: type(each).__name__)
async def test_what_yields_no_native_events(returned: Any) -> None:
    for end in await both(Returning(returned)):
        assert isinstance(end, TurnError)
        assert end.code == "TypeError"
        assert end.message == (
            "Returning._invoke must return an iterator of native events, asynchronous or plain; "
            f"it returned {type(returned).__name__}"
        )


@pytest.mark.filterwarnings("error")
async def test_a_coroutine_function() -> None:
    for end in await both(Coroutine(None)):
        assert isinstance(end, TurnError)
        assert end.message == (
            "Coroutine._invoke must return an iterator of native events, asynchronous or plain; "
            "it returned coroutine (an `async def` without `yield`)"
        )


async def test_a_list_will_do() -> None:
    for end in await both(Returning(text("hello"))):
        assert isinstance(end, TurnDone)
