"""Tokens in events: clients get them, what is stored has none."""

from __future__ import annotations

from agjson.approvals import MemoryLedgerStore, tokens_of, with_tokens, without_tokens
from agjson.fold import reduce, snapshot
from agjson.types import AgStreamEvent, PausedOutcome, TurnDone
from agjson.wire import encode, from_dict, to_dict
from tests.approvals.desk import Desk, call, gate, question, run
from tests.support.streams import CALL, OPEN, ev, typed


def paused(desk: Desk) -> list[AgStreamEvent]:
    """A turn that pauses on an approval and a question, as its client gets it."""
    asks = desk.ask(gate(call()), question("q"))
    wire = [to_dict(ask) for ask in asks]
    return typed(
        *OPEN,
        *CALL,
        *(ev("hitl.ask", turnId="t1", **ask) for ask in wire),
        ev("message.end", id="m1"),
        ev("turn.done", turnId="t1", outcome={"type": "paused", "asks": wire}, finishReason="tool_call"),
    )


def test_what_is_stored_has_no_token_and_what_a_client_gets_has_it_again() -> None:
    desk = Desk(MemoryLedgerStore())
    sent = paused(desk)
    stored = [without_tokens(event) for event in sent]
    assert b"agt1" in encode(sent)
    assert b"agt1" not in encode(stored)
    tokens = tokens_of(run(desk.ledger.progress("th", owner="ann")).waiting)
    assert list(tokens) == ["ask-c1"]
    assert [with_tokens(event, tokens) for event in stored] == sent
    # Who joins later gets a snapshot.
    folded = reduce(stored).result
    assert b"agt1" not in encode(folded)
    messages, *_ = snapshot(folded)
    expected, *_ = snapshot(reduce(sent).result)
    assert messages != expected
    assert with_tokens(messages, tokens) == expected
    assert without_tokens(expected) == messages


def test_an_event_without_asks_is_the_same_object() -> None:
    desk = Desk(MemoryLedgerStore())
    for event in paused(desk):
        bare = without_tokens(event)
        assert (bare is event) == (b"agt1" not in encode(event))
        assert without_tokens(bare) is bare
        assert with_tokens(bare, {}) is bare


def test_unknown_fields_and_other_outcomes_stay() -> None:
    ask = {"type": "hitl.ask", "seq": 0, "turnId": "t", "askId": "a", "kind": "text", "token": "x", "later": [1.0]}
    event = from_dict(ask)
    assert encode(without_tokens(event)) == encode({name: value for name, value in ask.items() if name != "token"})
    done = from_dict(
        {"type": "turn.done", "seq": 0, "turnId": "t", "outcome": {"type": "success"}, "finishReason": "stop"}
    )
    assert without_tokens(done) is done
    assert isinstance(done, TurnDone) and not isinstance(done.outcome, PausedOutcome)
