"""What an agent cannot work with is refused when it is made, not when a thread is run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from agjson.agents import MemoryContinuations, MemoryThreadStore
from tests.support.scripted import ScriptAgent, text


class PlainStore(MemoryThreadStore):
    """A store whose author forgot an async."""

    def load(self, thread_id: str) -> Any:
        return None


class PlainContinuations(MemoryContinuations):
    """Continuations whose author forgot an async."""

    def take(self, thread_id: str, request_state: str) -> Any:
        return None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": "t.db"}, "store must be a ThreadStore, not str"),
        ({"store": MemoryThreadStore}, "store must be a ThreadStore, not the class MemoryThreadStore"),
        ({"store": MemoryContinuations()}, "store must be a ThreadStore, not MemoryContinuations"),
        ({"store": PlainStore()}, "store must be a ThreadStore: PlainStore.load must be an async method"),
        ({"continuations": {}}, "continuations must be a Continuations, not dict"),
        (
            {"continuations": PlainContinuations()},
            "continuations must be a Continuations: PlainContinuations.take must be an async method",
        ),
    ],
)
def test_the_argument_and_what_it_should_be_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as raised:
        ScriptAgent(lambda _: text("Hi"), **settings)
    assert str(raised.value) == words


def test_a_decorated_method_may_be_asynchronous_behind_it() -> None:
    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*arguments: Any) -> Any:
            return method(*arguments)

        return call

    class Counting(MemoryThreadStore):
        load = counted(MemoryThreadStore.load)

    store = Counting()
    assert ScriptAgent(lambda _: text("Hi"), store=store).store is store
