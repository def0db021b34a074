"""An agent with a ledger: asks are kept before they are seen, answers checked against them, acted on once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from agjson.agents import Invocation, ThreadPausedError, UnknownAskError, UnknownToolCallError
from agjson.approvals import (
    AnswerError,
    EditRefusedError,
    ExpiredAskError,
    GivenUpAskError,
    Grant,
    Keys,
    Ledger,
    MemoryLedgerStore,
    OtherOwnerError,
    OtherThreadError,
    Policy,
    RequestStateError,
    SpentAskError,
    TokenError,
    UnissuedAskError,
)
from agjson.types import (
    AgChoice,
    AgGrantMode,
    AgHitlAnswer,
    AgPausedAsk,
    HitlAsk,
    PausedOutcome,
    ResumeInput,
    ToolDone,
    TurnDone,
)
from agjson.wire import answer_to, to_dict
from tests.approvals.desk import EDITS, Clock
from tests.support.scripted import ScriptAgent, Session, calls, results, said, start, terminal, text, types


class Tools:
    """The tools of a framework that runs what was approved, and counts how often."""

    def __init__(self, *gated: str, safe: Iterable[str] = (), ask: dict[str, Any] | None = None) -> None:
        self.gated = gated
        self.safe = tuple(safe)
        self.ask = ask or {}
        self.ran: list[tuple[str, Any]] = []
        self.fails = False

    def __call__(self, run: Invocation) -> Iterable[Any]:
        if run.input.kind == "start" and not run.decisions:
            made = calls(*self.gated, *self.safe)[:-1]
            asks = [
                {"do": "hitl_ask", "kind": "approval", "ask_id": f"a-{id}", "tool_call_id": id, **self.ask}
                for id in self.gated
            ]
            yield from [*made, {"do": "message_end"}, *asks, {"do": "turn_paused"}]
            return
        for request in [each.call for each in run.decisions if each.runs] + list(run.held):
            assert request is not None
            self.ran.append((request.call_id, request.arguments))
            if self.fails:
                raise RuntimeError("the tool is broken")
            yield {"do": "tool_done", "tool_call_id": request.call_id, "message_id": f"{request.call_id}:result"}
        for each in run.decisions:
            if not each.runs and each.call is not None:
                yield {
                    "do": "tool_done",
                    "tool_call_id": each.call.call_id,
                    "outcome": "denied",
                    "message_id": f"{each.call.call_id}:result",
                }
        yield from text(f"done {len(self.ran)}", id=run.turn_id)


def ledger(**fields: Any) -> Ledger:
    return Ledger(MemoryLedgerStore(), Policy(**{"keys": Keys({"k": b"k" * 32}), **fields}))


def asked(events: list[Any]) -> list[AgPausedAsk]:
    """The asks of the paused turn, as a client gets them."""
    end = events[-1]
    assert isinstance(end, TurnDone) and isinstance(end.outcome, PausedOutcome), types(events)
    return list(end.outcome.asks)


def resume(*answers: AgHitlAnswer, turn: str = "r", thread: str = "th") -> ResumeInput:
    return ResumeInput(thread_id=thread, turn_id=turn, answers=list(answers))


class Client(Session):
    """A client that sees tokens, which the store does not have."""

    def verify(self) -> None:
        import copy

        from agjson.approvals import without_tokens

        streams = self.streams
        self.streams = [[without_tokens(event) for event in stream] for stream in copy.copy(streams)]
        try:
            super().verify()
        finally:
            self.streams = streams


def client(tools: Tools, approvals: Ledger | None = None, **settings: Any) -> Client:
    agent = ScriptAgent(tools, client_tools=set(), approvals=ledger() if approvals is None else approvals, **settings)
    return Client(agent)


async def test_an_ask_has_its_token_for_the_client_and_none_in_the_store() -> None:
    session = client(Tools("c1"))
    events = await session.run(start())
    (ask,) = asked(events)
    (told,) = [event for event in events if isinstance(event, HitlAsk)]
    assert ask.token is not None and told.token == ask.token
    assert ask.token not in str(to_dict(session.thread().result)) and session.thread().pending.asks[0].token is None
    session.verify()


async def test_an_approved_call_runs_once_and_a_replay_is_refused() -> None:
    tools = Tools("c1")
    session = client(tools)
    (ask,) = asked(await session.run(start()))
    answer = answer_to(ask)
    events = await session.run(resume(answer))
    assert types(events)[-1] == "turn.done" and tools.ran == [("c1", {"of": "c1"})]
    with pytest.raises(SpentAskError):
        await session.run(resume(answer, turn="again"))
    assert len(tools.ran) == 1
    session.verify()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"token": None}, TokenError),
        ({"token": "forged"}, TokenError),
        ({"ask_id": "a-c2"}, UnissuedAskError),
        ({"request_state": "x"}, RequestStateError),
        ({"reply": {"arguments": {"of": "all"}}}, EditRefusedError),
        ({"reply": "yes"}, AnswerError),
    ],
)
async def test_an_answer_that_is_not_as_it_should_be_changes_nothing(change: dict[str, Any], error: type) -> None:
    from msgspec.structs import replace

    tools = Tools("c1")
    session = client(tools)
    (ask,) = asked(await session.run(start()))
    before = session.thread()
    with pytest.raises(error):
        await session.run(resume(replace(answer_to(ask), **change)))
    session.streams.pop()
    assert session.thread() is before and tools.ran == []
    await session.run(resume(answer_to(ask)))
    assert len(tools.ran) == 1
    session.verify()


async def test_a_batch_is_acted_on_whole_with_its_safe_calls() -> None:
    tools = Tools("c1", "c2", safe=("s1",))
    session = client(tools)
    first, second = asked(await session.run(start()))
    events = await session.run(resume(answer_to(first)))
    assert types(events) == ["turn.start", "hitl.ask", "turn.done"] and tools.ran == []
    (again,) = asked(events)
    assert (again.ask_id, again.token) == (second.ask_id, second.token)
    await session.run(resume(answer_to(second, "declined", reason="no"), turn="r2"))
    assert [id for id, _ in tools.ran] == ["c1", "s1"]
    session.verify()


async def test_edits_are_for_tools_that_allow_them_and_count_as_they_were_checked() -> None:
    tools = Tools("c1")
    approvals = ledger(editable={"look_up": {**EDITS, "properties": {"to": {"type": "string"}}}})
    session = client(tools, approvals)
    (ask,) = asked(await session.run(start()))
    with pytest.raises(EditRefusedError):
        await session.run(resume(answer_to(ask, reply={"arguments": {"to": 1}})))
    session.streams.pop()
    await session.run(resume(answer_to(ask, reply={"arguments": {"to": "bob"}})))
    assert tools.ran == [("c1", {"to": "bob"})]


async def test_false_is_told_to_the_framework_as_a_refusal() -> None:
    tools = Tools("c1")
    session = client(tools)
    (ask,) = asked(await session.run(start()))
    await session.run(resume(answer_to(ask, reply=False)))
    (run,) = [seen for seen in session.agent.seen if seen.decisions]  # type: ignore[attr-defined]
    assert [answer.status for answer in run.answers] == ["declined"] and tools.ran == []


async def test_an_ask_says_until_when_and_lapses() -> None:
    clock, tools = Clock(), Tools("c1", "c2")
    session = client(tools, ledger(clock=clock, lasts=timedelta(minutes=5)))
    first, second = asked(await session.run(start()))
    assert (
        first.expires_at
        == (clock.now + timedelta(minutes=5)).isoformat()
        == session.thread().pending.asks[0].expires_at
    )
    await session.run(resume(answer_to(first)))
    clock.forward(minutes=6)
    with pytest.raises(ExpiredAskError):
        await session.run(resume(answer_to(second), turn="late"))
    session.streams.pop()
    # Nothing is open any more, so the batch goes on by an empty resume: what was approved in time counts.
    await session.run(ResumeInput(thread_id="th", turn_id="go", answers=[]))
    assert [id for id, _ in tools.ran] == ["c1"]
    session.verify()


async def test_words_do_not_approve_and_a_new_start_leaves_asks_behind_only_where_it_may() -> None:
    tools = Tools("c1")
    session = client(tools, on_paused="discard")
    (ask,) = asked(await session.run(start()))
    with pytest.raises(UnknownAskError):
        await session.run(start(said("yes", "u2"), turn="t2", metadata={"agjson/askId": ask.ask_id}))
    session.streams.pop()
    session.agent.script = lambda run: text("on")  # type: ignore[attr-defined]
    events = await session.run(start(said("never mind", "u2"), turn="t2"))
    assert "error" in types(events)
    with pytest.raises(AnswerError):
        await session.run(resume(answer_to(ask), turn="r3"))
    assert tools.ran == []


async def test_a_start_after_the_time_was_over_runs_nothing_of_what_it_leaves_behind() -> None:
    """One ask was approved in time and the other never, and a safe call waits with them."""
    clock, tools = Clock(), Tools("c1", "c2", safe=("s1",))
    session = client(tools, ledger(clock=clock, lasts=timedelta(minutes=5)))
    first, _ = asked(await session.run(start()))
    await session.run(resume(answer_to(first)))
    clock.forward(minutes=5)
    session.agent.script = lambda run: text("on")  # type: ignore[attr-defined]
    await session.run(start(said("never mind", "u2"), turn="t2"))
    run = session.agent.seen[-1]  # type: ignore[attr-defined]
    assert (run.decisions, run.held, tools.ran) == ((), (), [])
    with pytest.raises(GivenUpAskError):
        await session.run(resume(answer_to(first), turn="r3"))
    session.streams.pop()
    session.verify()


async def test_a_refusal_is_told_by_the_next_turn_where_its_own_was_broken_off() -> None:
    session = client(Tools("c1"))
    (ask,) = asked(await session.run(start()))
    broken_off = session.agent.run(resume(answer_to(ask, "declined")))
    await anext(broken_off)
    await broken_off.aclose()
    session.agent.script = lambda run: text("I see")  # type: ignore[attr-defined]
    events = await session.run(start(said("and?", "u2"), turn="t2"))
    assert [(each.tool_call_id, each.outcome) for each in events if isinstance(each, ToolDone)] == [("c1", "denied")]
    events = await session.run(start(said("and now?", "u3"), turn="t3"))
    assert "tool.done" not in types(events)


async def test_an_answer_of_somebody_else_than_the_host_names_is_refused() -> None:
    tools = Tools("c1")
    session = client(tools)
    events = [event async for event in session.agent.run_within(start(), owner="ann")]
    answer = resume(answer_to(asked(events)[0]))
    with pytest.raises(OtherOwnerError):
        [event async for event in session.agent.run_within(answer, owner="eve")]
    assert tools.ran == []
    [event async for event in session.agent.run_within(answer, owner="ann")]
    assert tools.ran == [("c1", {"of": "c1"})]


async def test_a_paused_thread_refuses_a_start() -> None:
    session = client(Tools("c1"))
    await session.run(start())
    with pytest.raises(ThreadPausedError):
        await session.run(start(said("hello?", "u2"), turn="t2"))


async def test_a_text_is_met_by_words() -> None:
    session = client(Tools())
    script: list[list[Any]] = [
        [{"do": "hitl_ask", "kind": "text", "ask_id": "who"}, {"do": "turn_paused"}],
        text("thanks"),
    ]
    session.agent.script = lambda run: script.pop(0)  # type: ignore[attr-defined]
    (ask,) = asked(await session.run(start()))
    assert ask.token is None
    await session.run(start(said("Ann", "u2"), turn="t2", metadata={"agjson/askId": "who"}))
    assert session.agent.seen[-1].answers[0].reply == "Ann"  # type: ignore[attr-defined]
    session.verify()


async def test_a_token_of_another_thread_is_refused() -> None:
    approvals, tools = ledger(), Tools("c1")
    agent = ScriptAgent(tools, client_tools=set(), approvals=approvals)
    one, other = Client(agent, "one"), Client(agent, "other")
    (ask,) = asked(await one.run(start(thread="one")))
    (theirs,) = asked(await other.run(start(thread="other")))
    assert ask.ask_id == theirs.ask_id and ask.token != theirs.token
    with pytest.raises(OtherThreadError):
        await other.run(resume(answer_to(ask), thread="other"))
    assert tools.ran == []


async def test_a_result_for_a_gated_call_is_refused() -> None:
    tools = Tools("c1")
    session = client(tools)
    await session.run(start())
    with pytest.raises(UnknownToolCallError, match="waits for an answer"):
        await session.run(results("c1"))
    assert tools.ran == []


async def test_a_grant_makes_a_rule_that_the_next_call_finds() -> None:
    modes = [AgGrantMode(id="once"), AgGrantMode(id="always")]
    tools = Tools("c1", ask={"grant_modes": modes})
    approvals = ledger(grants={"always": Grant(arguments="any")})
    session = client(tools, approvals)
    (ask,) = asked(await session.run(start()))
    await session.run(resume(answer_to(ask, grant_mode_id="always")))
    (run,) = [seen for seen in session.agent.seen if seen.decisions]  # type: ignore[attr-defined]
    request = run.decisions[0].call
    plan = await run.plan([request], lambda call: True)
    assert (plan.run, plan.ask) == ((request,), ())


async def test_a_run_that_fails_after_the_claim_leaves_a_call_unknown_and_never_runs_it_again() -> None:
    tools = Tools("c1")
    session = client(tools)
    (ask,) = asked(await session.run(start()))
    tools.fails = True
    events = await session.run(resume(answer_to(ask)))
    assert types(events)[-1] == "turn.error" and len(tools.ran) == 1
    with pytest.raises(SpentAskError):
        await session.run(resume(answer_to(ask), turn="r2"))
    session.streams.pop()
    session.agent.script = lambda run: text("I see")  # type: ignore[attr-defined]
    events = await session.run(start(said("and?", "u2"), turn="t2"))
    (done,) = [to_dict(event) for event in events if event.type == "tool.done"]
    assert (done["toolCallId"], done["errorCode"], done["outcome"]) == ("c1", "outcome_unknown", "error")
    session.verify()


async def test_an_ask_that_the_ledger_refuses_ends_the_turn_in_an_error_and_keeps_its_words() -> None:
    session = client(Tools())
    bad = {"do": "hitl_ask", "kind": "form", "ask_id": "f", "schema": {"type": "no such type"}}
    session.agent.script = lambda run: [*text("well"), bad, {"do": "turn_paused"}]  # type: ignore[attr-defined]
    events = await session.run(start())
    assert terminal(events)["type"] == "turn.error"
    assert session.thread().pending.asks == () and "well" in str(to_dict(session.thread().result))


@pytest.mark.parametrize("blocking", [True, False])
def test_the_same_without_a_loop(blocking: bool) -> None:
    tools = Tools("c1", safe=("s1",))
    session = client(tools, blocking=blocking)
    (ask,) = asked(session.run_sync(start()))
    session.run_sync(resume(answer_to(ask)))
    assert [id for id, _ in tools.ran] == ["c1", "s1"]
    session.verify()


async def test_two_resumes_at_once_run_it_once() -> None:
    tools = Tools("c1")
    session = client(tools)
    (ask,) = asked(await session.run(start()))
    runs = [session.agent.run(resume(answer_to(ask), turn=f"r{n}")) for n in range(4)]

    async def drain(run: Any) -> str:
        try:
            return [event.type async for event in run][-1]
        except Exception as error:
            return type(error).__name__

    ends = await asyncio.gather(*map(drain, runs))
    assert sorted(ends).count("turn.done") == 1 and len(tools.ran) == 1


async def test_a_wrong_ledger_is_named() -> None:
    with pytest.raises(TypeError, match="approvals must be a Ledger, not MemoryLedgerStore"):
        ScriptAgent(Tools(), approvals=MemoryLedgerStore())


async def test_an_approval_offers_edits_only_where_the_policy_takes_them() -> None:
    choices = [AgChoice(id=each, label=each) for each in ("approve", "edit", "reject")]
    for editable, offered in (({}, ["approve", "reject"]), ({"look_up": {}}, ["approve", "edit", "reject"])):
        session = client(Tools("c1", ask={"choices": choices}), ledger(editable=editable))
        events = await session.run(start())
        (ask,) = asked(events)
        (told,) = [event for event in events if isinstance(event, HitlAsk)]
        assert [choice.id for choice in ask.choices or ()] == [choice.id for choice in told.choices or ()] == offered
        session.verify()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Ledger(Policy(keys=Keys({"k": b"k" * 32})), MemoryLedgerStore()), "store must be a LedgerStore"),  # type: ignore[arg-type]
        (lambda: Policy(keys={"k": b"k" * 32}), "keys must be a Keys, not dict"),  # type: ignore[arg-type]
        (lambda: ledger(editable=["look_up"]), "editable must be a Mapping, not list"),
        (lambda: Keys({"k": "k" * 32}), "the secret of key 'k' must be a bytes, not str"),  # type: ignore[dict-item]
        (lambda: Keys(b"k" * 32), "secrets must be a Mapping, not bytes"),  # type: ignore[arg-type]
        (lambda: answer_to("a-c1"), "ask must be an ask as it came"),  # type: ignore[arg-type]
    ],
)
def test_a_slip_in_what_a_ledger_is_made_of_is_told_at_once(make: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_words_that_no_setting_knows_are_refused() -> None:
    with pytest.raises(ValueError, match="on_paused must be one of 'refuse', 'discard', not 'discrad'"):
        ScriptAgent(Tools(), on_paused="discrad")
    ask = AgPausedAsk(ask_id="a", kind="approval")
    with pytest.raises(ValueError, match="status must be one of 'resolved', 'declined', 'cancelled', not 'approve'"):
        answer_to(ask, "approve")  # type: ignore[arg-type]
