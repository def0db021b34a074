"""Rules on the adapter's agent, run by the real driver on a scripted framework (spec §3, §8.0)."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

from agjson.agents import Agent
from agjson.checker import check
from agjson.errors import AgJSONError
from agjson.fold import Reducer, reduce
from agjson.normalizer import HOST_SENTINELS
from agjson.testing.contract._values import as_json, plain_events, plain_result, same, shorten
from agjson.testing.contract.inbound import RUN_CONFIGS, unsupported_by
from agjson.testing.contract.replay import expect_channels, four_channels
from agjson.testing.contract.rule import expect, rule
from agjson.testing.contract.subject import MakeAgent, NotApplicable, Sample, Subject
from agjson.types import (
    AgClientCapabilities,
    AgHitlCapabilities,
    AgMessage,
    AgStateCapabilities,
    AgStreamEvent,
    AgStreamingCapabilities,
    MemoryWrite,
    StartInput,
    TextBlock,
    ToolResultInput,
)

__all__: list[str] = []

_AT_ONCE = 64
_MARK = re.compile(r"contract-sample-(\d+)\.")
_WORDS = "the contract suite's own failure"
_WAIT_SECONDS = 60
_MALFORMED: tuple[Any, ...] = (
    None,
    7,
    [],
    {},
    {"kind": "start"},
    {"kind": "unheard-of", "threadId": "contract-thread", "turnId": "contract-turn"},
    {"kind": "start", "threadId": "contract-thread", "turnId": "contract-turn", "messages": "none"},
    {"kind": "start", "threadId": 5, "turnId": "contract-turn", "messages": []},
    {"kind": "tool-result", "threadId": "contract-unheard-of", "turnId": "contract-turn", "results": []},
    {"kind": "resume", "threadId": "contract-unheard-of", "turnId": "contract-turn", "answers": []},
)


class _Script:
    """A framework that gives the sample which the last marked words of the request name."""

    def __init__(self, samples: list[Sample], *, fail_after: int | None = None) -> None:
        self.samples = samples
        self.fail_after = fail_after
        self.requests: list[Any] = []
        self.open = 0

    def __call__(self, request: Any) -> Iterator[Any]:
        text = as_json(request)
        self.requests.append(text)
        return self._natives(text)

    def _natives(self, text: str) -> Iterator[Any]:
        found = _MARK.findall(text)
        if not found:
            raise AssertionError(f"the request does not hold the words of the user: {shorten(text)}")
        self.open += 1
        try:
            for count, native in enumerate(self.samples[int(found[-1])].natives):
                if count == self.fail_after:
                    raise RuntimeError(_WORDS)
                yield native
        finally:
            self.open -= 1


def _start(sample: int, thread: str = "contract-thread", turn: str = "contract-turn", **fields: Any) -> StartInput:
    said = AgMessage(id=f"{turn}-said", role="user", content=[TextBlock(text=f"Give me contract-sample-{sample}.")])
    return StartInput(thread_id=thread, turn_id=turn, messages=[said], **fields)


def _scripted(subject: Subject) -> list[Sample]:
    """The samples that a framework can be scripted with: what it raises instead of yielding is no native."""
    return [
        sample for sample in subject.samples if not any(type(native) in HOST_SENTINELS for native in sample.natives)
    ]


def _agents(subject: Subject) -> list[tuple[str, MakeAgent]]:
    if not subject.agents:
        raise NotApplicable("the subject has no `agents`")
    return list(subject.agents.items())


def _solo(make: MakeAgent, samples: list[Sample], number: int, **fields: Any) -> list[AgStreamEvent]:
    return _read_sync(make(_Script(samples)), _start(number, **fields), f"sample {samples[number].name!r}")


def _read_sync(agent: Agent, ag_input: Any, where: str) -> list[AgStreamEvent]:
    try:
        return list(agent.run_sync(ag_input))
    except Exception as error:
        raise AssertionError(f"{where}: the run raised {type(error).__name__}: {error}") from error


async def _read(agent: Agent, ag_input: Any) -> list[AgStreamEvent]:
    return [event async for event in agent.run(ag_input)]


def _sound_run(events: list[AgStreamEvent], where: str) -> None:
    found = list(check(events))
    expect(not found, f"{where}: check finds {shorten(found)}")
    folded = reduce(events)
    expect(not folded.needs_resync, f"{where}: the fold parks")
    ends = [event.type for event in events if event.type in ("turn.done", "turn.error", "turn.abort")]
    expect(bool(events) and events[-1].type in ends, f"{where}: the last event is {events[-1].type}, no terminal")


@rule("agent-runs", "§3, §5.0")
def agent_runs(subject: Subject) -> None:
    """The agent streams each sample as one sound turn, and what it stores is what the stream folds to."""
    samples = _scripted(subject)
    for kind, make in _agents(subject):
        for number, sample in enumerate(samples):
            where = f"{kind} agent, sample {sample.name!r}"
            script = _Script(samples)
            agent = make(script)
            events = _read_sync(agent, _start(number), where)
            _sound_run(events, where)
            expect(script.open == 0, f"{where}: the framework's stream is not closed")
            if sample.terminal != "turn.abort":
                expect(events[-1].type == sample.terminal, f"{where}: ends as {events[-1].type}, not {sample.terminal}")
            stored = asyncio.run(_load(agent))
            expect(
                same(plain_result(stored.result), plain_result(reduce(events).result)),
                f"{where}: the stored thread is not what the stream folds to",
            )


async def _load(agent: Agent) -> Any:
    thread = await agent.store.load("contract-thread")
    assert thread is not None, "the thread is not stored"
    return thread


@rule("agent-sync-async", "§8.0")
def agent_sync_async(subject: Subject) -> None:
    """`run` and `run_sync` give the same events."""
    samples = _scripted(subject)
    for kind, make in _agents(subject):
        for number, sample in enumerate(samples):
            waited = _on_a_loop(make(_Script(samples)), _start(number))
            _same_events(_solo(make, samples, number), waited, f"{kind} agent, sample {sample.name!r}, run")


@rule("agent-concurrency", "§8.0")
def agent_concurrency(subject: Subject) -> None:
    """One agent serves 64 threads at once, on threads and on one event loop; each stream equals its solo run."""
    samples = _scripted(subject)
    for kind, make in _agents(subject):
        wanted = [_solo(make, samples, number, thread=f"contract-{number}") for number in range(len(samples))]
        ways: list[tuple[str, Callable[[Agent, list[StartInput]], list[list[AgStreamEvent]]]]] = [
            ("on threads", _on_threads),
            ("on one loop", _on_one_loop),
        ]
        for way, run in ways:
            numbers = [index % len(samples) for index in range(_AT_ONCE)]
            # Each run in a thread of its own: those of one sample differ in nothing but the thread's id.
            inputs = [_start(number, thread=f"contract-{index}") for index, number in enumerate(numbers)]
            streams = run(make(_Script(samples)), inputs)
            for index, (number, events) in enumerate(zip(numbers, streams, strict=True)):
                where = f"{kind} agent, {way}, run {index} (sample {samples[number].name!r})"
                _same_events(wanted[number], events, where, rename=(f"contract-{number}", f"contract-{index}"))


def _on_threads(agent: Agent, inputs: list[StartInput]) -> list[list[AgStreamEvent]]:
    barrier = threading.Barrier(len(inputs), timeout=_WAIT_SECONDS)

    def one(ag_input: StartInput) -> list[AgStreamEvent]:
        barrier.wait()
        return list(agent.run_sync(ag_input))

    with ThreadPoolExecutor(len(inputs)) as pool:
        return list(pool.map(one, inputs))


def _on_one_loop(agent: Agent, inputs: list[StartInput]) -> list[list[AgStreamEvent]]:
    async def together() -> list[list[AgStreamEvent]]:
        return await asyncio.gather(*(_read(agent, ag_input) for ag_input in inputs))

    return asyncio.run(together())


def _same_events(
    wanted: list[AgStreamEvent], found: list[AgStreamEvent], where: str, rename: tuple[str, str] | None = None
) -> None:
    left, right = plain_events(wanted), plain_events(found)
    if rename is not None:
        for event in left:
            if event.get("threadId") == rename[0]:
                event["threadId"] = rename[1]
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        expect(same(one, other), f"{where}: event {index} is {shorten(other)}, not {shorten(one)}")
    expect(len(left) == len(right), f"{where}: {len(right)} events, not {len(left)}")


@rule("agent-invokes", "§8.0, §5.0 INV-BLOCK")
def agent_invokes(subject: Subject) -> None:
    """Five runs of one thread with the same natives are one sound stream, and fold to what is stored.

    A sample that ends as anything but success, or whose history the framework would refuse, is left out.
    """
    samples = _scripted(subject)
    tried = 0
    for kind, make in _agents(subject):
        for number, sample in enumerate(samples):
            if sample.terminal != "turn.done" or not sample.replays:
                continue
            where = f"{kind} agent, sample {sample.name!r}"
            agent = make(_Script(samples))
            reducer = Reducer()
            everything: list[AgStreamEvent] = []
            for run in range(5):
                events = _read_sync(agent, _start(number, turn=f"contract-turn-{run}"), f"{where}, run {run}")
                if getattr(getattr(events[-1], "outcome", None), "type", None) == "paused":
                    break
                everything += events
                for event in events:
                    reducer.push(event)
                expect(not reducer.needs_resync, f"{where}, run {run}: the fold parks: {reducer.resync_reason}")
            else:
                tried += 1
                found = list(check(everything))
                expect(not found, f"{where}: in five runs check finds {shorten(found)}")
                stored = asyncio.run(_load(agent))
                expect(
                    same(plain_result(stored.result), plain_result(reducer.result())),
                    f"{where}: after five runs the stored thread is not what the streams fold to",
                )
    if not tried:
        raise NotApplicable("no sample ends as turn.done without waiting for an answer")


@rule("agent-capabilities", "§3, §8.0")
def agent_capabilities(subject: Subject) -> None:
    """`agent.capabilities` goes out in the first turn of a thread and never again."""
    samples = _scripted(subject)
    number = _plain_one(samples)
    for kind, make in _agents(subject):
        agent = make(_Script(samples))
        if agent.capabilities is None:
            raise NotApplicable("the agent says nothing of itself")
        runs = [list(agent.run_sync(_start(number, turn=f"contract-turn-{run}"))) for run in range(3)]
        counts = [sum(event.type == "agent.capabilities" for event in events) for events in runs]
        expect(counts == [1, 0, 0], f"{kind} agent: agent.capabilities in three turns of a thread: {counts}")


@rule("agent-client-limits", "§3 AgClientCapabilities")
def agent_client_limits(subject: Subject) -> None:
    """A client without partial messages, patches and asks gets none of them, and folds to the same messages.

    Messages are compared where no ask was refused.
    """
    samples = _scripted(subject)
    limits = AgClientCapabilities(
        streaming=AgStreamingCapabilities(partial_messages=False),
        state=AgStateCapabilities(json_patch=False),
        hitl=AgHitlCapabilities(ask=False),
    )
    for kind, make in _agents(subject):
        for number, sample in enumerate(samples):
            where = f"{kind} agent, sample {sample.name!r}, limited client"
            free = _solo(make, samples, number)
            events = _solo(make, samples, number, capabilities=limits)
            _sound_run(events, where)
            kinds = {event.type for event in events}
            refused = kinds & {"tool.args.delta", "reasoning.opaque.delta", "state.delta", "hitl.ask"}
            expect(not refused, f"{where}: it gets {sorted(refused)}")
            patches = [event for event in events if isinstance(event, MemoryWrite) and event.patch]
            expect(not patches, f"{where}: it gets a patch of memory")
            if any(event.type == "hitl.ask" for event in free):
                continue
            one, other = plain_result(reduce(free).result), plain_result(reduce(events).result)
            expect(same(one["messages"], other["messages"]), f"{where}: the messages differ")


@rule("agent-unsupported", "§3 AgRunConfig")
def agent_unsupported(subject: Subject) -> None:
    """A member of the run configuration that the framework cannot honour is a visible error that names it."""
    agents = _agents(subject)
    if subject.adapter.to_native is None:
        raise NotApplicable("the adapter has no to_native")
    samples = _scripted(subject)
    number = _plain_one(samples)
    tried = 0
    for member, (config, _) in RUN_CONFIGS.items():
        start = _start(number, run=config)
        try:
            paths = unsupported_by(subject.adapter.to_native(start, history=[]))
        except AgJSONError:
            continue
        for kind, make in agents:
            where = f"{kind} agent, run.{member}"
            told = plain_events(_read_sync(make(_Script(samples)), start, where))
            named = " ".join(event["message"] for event in told if event["type"] == "error")
            for path in paths:
                tried += 1
                expect(path in named, f"{where}: no error event names {path}")
    if not tried:
        raise NotApplicable("the framework honours every member that is tried")


@rule("agent-malformed-input", "§3, §5 trust boundary")
def agent_malformed_input(subject: Subject) -> None:
    """What is no input, or answers nothing that waits, raises before the first event; the framework is not called."""
    samples = _scripted(subject)
    for kind, make in _agents(subject):
        for ag_input in _MALFORMED:
            script = _Script(samples)
            agent = make(script)
            where = f"{kind} agent, {shorten(ag_input)}"
            _refused(_on_this_thread, agent, ag_input, f"{where}, run_sync")
            _refused(_on_a_loop, agent, ag_input, f"{where}, run")
            expect(not script.requests, f"{where}: the framework was called")


def _on_this_thread(agent: Agent, ag_input: Any) -> list[AgStreamEvent]:
    return list(agent.run_sync(ag_input))


def _on_a_loop(agent: Agent, ag_input: Any) -> list[AgStreamEvent]:
    return asyncio.run(_read(agent, ag_input))


def _refused(run: Callable[[Agent, Any], list[AgStreamEvent]], agent: Agent, ag_input: Any, where: str) -> None:
    try:
        events = run(agent, ag_input)
    except AgJSONError:
        return
    except Exception as error:
        raise AssertionError(f"{where}: raises {type(error).__name__}, which is no AgJSONError") from error
    raise AssertionError(f"{where}: does not raise, it yields {shorten([event.type for event in events])}")


@rule("agent-failure", "§8.0 thrown terminals")
def agent_failure(subject: Subject) -> None:
    """A framework that raises at its first, second or middle native ends the turn as turn.error with its words."""
    samples = _scripted(subject)
    number = _plain_one(samples)
    length = len(samples[number].natives)
    for kind, make in _agents(subject):
        for after in sorted({0, 1, length // 2} - {length}):
            script = _Script(samples, fail_after=after)
            events = list(make(script).run_sync(_start(number)))
            where = f"{kind} agent, the framework raises after {after} natives"
            _sound_run(events, where)
            last = plain_events(events)[-1]
            expect(last["type"] == "turn.error", f"{where}: the turn ends as {last['type']}")
            expect(_WORDS in last["message"], f"{where}: the message is {last['message']!r}")
            expect(script.open == 0, f"{where}: the framework's stream is not closed")


@rule("agent-early-close", "§8 item 17")
def agent_early_close(subject: Subject) -> None:
    """A reader that stops closes the framework's stream, and the thread is stored as turn.abort."""
    samples = _scripted(subject)
    number = _plain_one(samples)
    for kind, make in _agents(subject):
        for way, close in (("run_sync", _close_sync), ("run", _close_async)):
            script = _Script(samples)
            agent = make(script)
            seen = close(agent, _start(number))
            where = f"{kind} agent, {way} closed early"
            expect(script.open == 0, f"{where}: the framework's stream is not closed")
            stored = asyncio.run(_load(agent))
            outcome = stored.result.turns[0].outcome
            expect(
                getattr(outcome, "type", None) == "aborted",
                f"{where}: after {seen} the turn is stored as {outcome!r}",
            )


def _close_sync(agent: Agent, ag_input: StartInput) -> list[str]:
    seen: list[str] = []
    stream = agent.run_sync(ag_input)
    for event in stream:
        seen.append(event.type)
        if "assistant" in str(getattr(event, "role", "")):
            break
    stream.close()
    return seen


def _close_async(agent: Agent, ag_input: StartInput) -> list[str]:
    async def read() -> list[str]:
        seen: list[str] = []
        async with aclosing(agent.run(ag_input)) as stream:
            async for event in stream:
                seen.append(event.type)
                if "assistant" in str(getattr(event, "role", "")):
                    break
        return seen

    return asyncio.run(read())


@rule("agent-results", "§2.1, §2.2, §3.1")
def agent_results(subject: Subject) -> None:
    """Results of client tools go back to the framework by the channels of a model, and are stored with all four."""
    samples = _scripted(subject)
    tried = 0
    for kind, make in _agents(subject):
        for number, sample in enumerate(samples):
            script = _Script(samples)
            agent = make(script)
            first = _read_sync(agent, _start(number), f"{kind} agent, sample {sample.name!r}")
            waiting = sorted(asyncio.run(_load(agent)).pending.open_calls)
            if not waiting or not sample.replays:
                continue
            tried += 1
            where = f"{kind} agent, sample {sample.name!r}, results of {waiting}"
            before = len(script.requests)
            given = ToolResultInput(
                thread_id="contract-thread",
                turn_id="contract-results",
                results=[four_channels(id) for id in waiting],
            )
            second = _read_sync(agent, given, where)
            found = list(check([*first, *second]))
            expect(not found, f"{where}: check finds {shorten(found)}")
            expect(len(script.requests) > before, f"{where}: the framework is not called")
            expect_channels(script.requests[before], where)
            stored = as_json(plain_result(asyncio.run(_load(agent)).result))
            for mark in ("contract-for-the-surface", "contract-for-the-app"):
                expect(mark in stored, f"{where}: {mark!r} is not stored")
    if not tried:
        raise NotApplicable("no sample ends with a call of a client tool")


def _plain_one(samples: list[Sample]) -> int:
    """The sample with the most natives among the short ones that end well: enough to break off in its middle."""
    good = [
        (min(len(sample.natives), 50), -number)
        for number, sample in enumerate(samples)
        if sample.terminal == "turn.done" and sample.replays
    ]
    if not good:
        raise NotApplicable("no sample ends as turn.done")
    return -max(good)[1]
