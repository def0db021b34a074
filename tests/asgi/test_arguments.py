"""What an app is made of is checked when it is made."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.agents import MemoryThreadStore
from agjson.approvals import Keys, Ledger, MemoryLedgerStore, Policy
from agjson.middleware.asgi import AgentApp, Trust
from tests.support.asgi_client import run
from tests.support.scripted import ScriptAgent, start, text, types

LEDGER = Ledger(MemoryLedgerStore(), Policy(keys=Keys({"k": b"k" * 32})))


def agent() -> ScriptAgent:
    return ScriptAgent(lambda _: text("x"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": "threads.db"}, "store must be a ThreadStore, not str"),
        ({"store": MemoryThreadStore}, "store must be a ThreadStore, not the class MemoryThreadStore"),
        ({"store": MemoryLedgerStore()}, "store must be a ThreadStore, not MemoryLedgerStore"),
        ({"approvals": MemoryLedgerStore()}, "approvals must be a Ledger, not MemoryLedgerStore"),
        ({"approvals": Ledger}, "approvals must be a Ledger, not the class Ledger"),
        ({"trust": {"run": ["model"]}}, "trust must be a Trust, not dict"),
        ({"trust": Trust}, "trust must be a Trust, not the class Trust"),
        ({"authorize": "alice"}, "authorize must be a function, not str"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=f"^{words}$"):
        AgentApp(agent(), **settings)


@pytest.mark.parametrize("wrong", [ScriptAgent, None, "agent"])
def test_what_is_served_is_an_agent(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^agent must be an Agent, not "):
        AgentApp(wrong)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"on_disconnect": "stop"}, "on_disconnect must be one of 'continue', 'cancel', not 'stop'"),
        ({"on_paused": "ignore"}, "on_paused must be one of 'refuse', 'discard', not 'ignore'"),
        ({"retry": -1}, "retry must be 0 to 86400 seconds, or None"),
        ({"retry": float("inf")}, "retry must be 0 to 86400 seconds, or None"),
        ({"retry": float("nan")}, "retry must be 0 to 86400 seconds, or None"),
    ],
)
def test_a_word_or_number_that_is_none_is_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        AgentApp(agent(), **settings)


async def test_a_store_may_be_anything_that_does_what_a_store_does() -> None:
    class Wrapped:
        suspends = False

        def __init__(self) -> None:
            inner = MemoryThreadStore()
            self.load, self.acquire = inner.load, inner.acquire

    store: Any = Wrapped()
    app = AgentApp(agent(), store=store, approvals=LEDGER, trust=Trust(), on_disconnect="cancel", on_paused="discard")
    assert types(await run(app, start()))[-1] == "turn.done"
