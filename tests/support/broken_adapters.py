"""Adapters with one fault each, made from the one that ``docs/adapters/writing-one.md`` writes."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import structs

from agjson.agents import Invocation, NormalizerSettings
from agjson.errors import ReplayError
from agjson.normalizer import HostAbort, HostEnd, HostError
from agjson.testing.contract import Respond, Sample, Subject
from agjson.types import (
    AgCapabilities,
    AgentCapabilities,
    AgMessage,
    AgStreamEvent,
    AgUsage,
    SuccessOutcome,
    TextBlock,
    TextDelta,
    TurnDone,
)
from agjson.wire import to_dict
from tests.contract.subjects import murmur

PAGE = murmur.page()
SUBJECT = murmur.subject()
Normal: Any = PAGE.MurmurNormalizer
NormalAgent: Any = PAGE.MurmurAgent

# Two lanes side by side, which Murmur itself does not have.
NOTES = [("a", "one "), ("b", "two "), ("a", "three"), ("b", "four")]
LANES = dataclasses.replace(
    SUBJECT,
    samples=[Sample(name="lanes", natives=[{"event": "note", "of": of, "words": words} for of, words in NOTES])],
    lanes=lambda natives: [native["of"] for native in natives],
)


def normalizing(normalizer: Any, base: Subject = SUBJECT) -> Subject:
    """A subject with another normalizer, in its agent too."""

    class OtherAgent(NormalAgent):
        def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> Any:
            return normalizer(**settings)

    adapter = dataclasses.replace(base.adapter, normalizer=normalizer)
    return dataclasses.replace(base, adapter=adapter, agents={"any": OtherAgent})


def converting(**functions: Any) -> Subject:
    """The subject with other functions in its record."""
    return dataclasses.replace(SUBJECT, adapter=dataclasses.replace(SUBJECT.adapter, **functions))


def driven(agent: Any) -> Subject:
    """The subject with another agent."""
    return dataclasses.replace(SUBJECT, agents={"any": agent})


def with_samples_of_its_own() -> Subject:
    """The subject with copies of its samples, for an adapter that spoils them."""
    samples = [dataclasses.replace(each, natives=copy.deepcopy(each.natives)) for each in SUBJECT.samples]
    return dataclasses.replace(SUBJECT, samples=samples)


# How a turn begins and ends


class NoBeginning(Normal):
    def push(self, native: object) -> list[AgStreamEvent]:
        return [event for event in super().push(native) if event.type != "turn.start"]


class TwoTerminals(Normal):
    def flush(self) -> list[AgStreamEvent]:
        events: list[AgStreamEvent] = super().flush()
        done = TurnDone(seq=self.out._seq, turn_id=self.turn_id, outcome=SuccessOutcome(), finish_reason="stop")
        return [] if self._flushed_before() else [*events, done]

    def _flushed_before(self) -> bool:
        before, self.flushed = getattr(self, "flushed", False), True
        return before


class FlushesTwice(Normal):
    def flush(self) -> list[AgStreamEvent]:
        if self._flushed:
            self.out.ext("ext.agjson.again", {})
        return super().flush()


class SilentAfterTheEnd(Normal):
    def push(self, native: object) -> list[AgStreamEvent]:
        return [] if self._flushed else super().push(native)


class WritesNaN(Normal):
    """Past its emitter, which would refuse it."""

    def push(self, native: object) -> list[AgStreamEvent]:
        price: Any = {"price": float("nan")}
        return [
            structs.replace(event, meta=price) if isinstance(event, TextDelta) else event
            for event in super().push(native)
        ]


class TakesApart(Normal):
    def _on_say(self, native: Any) -> None:
        self.out.text_delta(self._open("text"), native.pop("words"))


class SaysEachEnd(Normal):
    def _on_end(self, end: HostEnd) -> None:
        super()._on_end(end)
        self.out.ext("ext.agjson.ended", {})


class LosesTheCode(Normal):
    def _on_error(self, error: HostError) -> None:
        if self.out.is_open():
            self.out.turn_error(str(error.error), turn_id=self.turn_id)


class TakesAStopForAnEnd(Normal):
    def _on_abort(self, abort: HostAbort) -> None:
        if self.out.is_open():
            self.out.turn_done(turn_id=self.turn_id)


class LosesTheNativeCode(Normal):
    def _on_failed(self, native: Any) -> None:
        self.out.turn_error(f"{native['code']}: {native['why']}", turn_id=self.turn_id)


class SucceedsOnTruncation(Normal):
    def _on_flush(self) -> None:
        if self.out.is_open():
            self.out.turn_done(turn_id=self.turn_id)


# Disorder


class Strict(Normal):
    """Raises out of push when what it relies on does not hold."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.calls: list[object] = []
        self.count = 0

    def push(self, native: Any) -> list[AgStreamEvent]:
        if isinstance(native, dict):
            self.rely(native)
            self.count += 1
            if native.get("event") == "call":
                self.calls.append(native.get("id"))
        return super().push(native)

    def rely(self, native: dict[str, Any]) -> None:
        raise NotImplementedError


class NeedsAll(Strict):
    def rely(self, native: dict[str, Any]) -> None:
        if native.get("id") == "c2" and "c1" not in self.calls:
            raise LookupError("no first call")


class NeedsThemOnce(Strict):
    def rely(self, native: dict[str, Any]) -> None:
        if native.get("event") == "call" and native["id"] in self.calls:
            raise LookupError("the call is there already")


class NeedsWords(Strict):
    def rely(self, native: dict[str, Any]) -> None:
        if native.get("event") == "cost" and not self.count:
            raise LookupError("a cost of nothing")


class NeedsATextOfKind(Strict):
    def rely(self, native: dict[str, Any]) -> None:
        native["event"].lower()


class CountsAnything(Normal):
    """Past its emitter, which would refuse it: what Murmur says of its cost, whatever that is."""

    def push(self, native: Any) -> list[AgStreamEvent]:
        if isinstance(native, dict) and native.get("event") == "cost":
            self.usage = AgUsage(input_tokens=native.get("read"))
        return [
            structs.replace(event, usage=self.usage) if isinstance(event, TurnDone) and event.usage else event
            for event in super().push(native)
        ]

    def _on_cost(self, native: Any) -> None:
        self._usage = AgUsage()


class LeavesOutValues(Normal):
    def _on(self, native: Any) -> None:
        if isinstance(native, dict):
            super()._on(native)


class LooksAtEverything(Normal):
    def push(self, native: object) -> list[AgStreamEvent]:
        str(native)
        return super().push(native)


class LeavesOutTheUnknown(Normal):
    def _on(self, native: Any) -> None:
        if not isinstance(native, dict) or native.get("event") in PAGE.SURFACE["events"]:
            super()._on(native)


# Sameness


class Trims(Normal):
    def _on_say(self, native: Any) -> None:
        self.out.text_delta(self._open("text"), native["words"].strip())


class CountsEvents(Strict):
    def rely(self, native: dict[str, Any]) -> None:
        pass

    def _on_cost(self, native: Any) -> None:
        super()._on_cost(native)
        self.out.message_metadata({"events": self.count})


class Notes(Normal):
    """Each lane is a text."""

    def _on(self, native: Any) -> None:
        if isinstance(native, dict) and native.get("event") == "note":
            self.out.text_delta(native["of"], native["words"])
        else:
            super()._on(native)


class MixesLanes(Notes):
    def _on(self, native: Any) -> None:
        self.last = getattr(self, "last", native["of"]) if native["of"] != "b" else "b"
        self.out.text_delta(self.last, native["words"])


# Ids


class NamesByCount(Normal):
    def _open(self, kind: str) -> str:
        if self._block is None or self._block[0] != kind:
            self._close()
            start = self.out.text_start if kind == "text" else self.out.reasoning_start
            self._block = (kind, start("block-7"))
        return self._block[1]


class ForgetsTheThread(Normal):
    def __init__(self, turn_id: str, thread_id: str, **settings: Any) -> None:
        super().__init__(turn_id, thread_id)


# Losses


class LosesArguments(Normal):
    def _on_call(self, native: Any) -> None:
        super()._on_call({**native, "with": {}})


class LosesOddSeals(Normal):
    def _on_seal(self, native: Any) -> None:
        if native["value"].endswith("=="):
            super()._on_seal(native)


class LosesNewMembers(Normal):
    def _on(self, native: Any) -> None:
        if isinstance(native, dict):
            known = PAGE.SURFACE["events"].get(str(native.get("event")), native)
            native = {name: value for name, value in native.items() if name in known}
        super()._on(native)


class ShowsTheSealOnly(Normal):
    def _on_seal(self, native: Any) -> None:
        self.out.ext("ext.agjson.seal", {"value": native["value"]})


# The way back


def without_seals(messages: Iterable[AgMessage]) -> Any:
    native = PAGE.messages_to_native(messages)
    for message in native:
        message["lines"] = [line for line in message["lines"] if "seal" not in line]
    return native


def refusing(messages: Iterable[AgMessage]) -> Any:
    raise ReplayError("Murmur has had enough", "$[1]")


def trimmed(native: Any) -> list[AgMessage]:
    messages: list[AgMessage] = PAGE.messages_from_native(native)
    for message in messages:
        for index, block in enumerate(message.content):
            if isinstance(block, TextBlock):
                message.content[index] = TextBlock(text=block.text.rstrip("."))  # type: ignore[index]
    return messages


def with_everything(messages: Iterable[AgMessage]) -> Any:
    native = PAGE.messages_to_native(messages)
    native.append({"from": "tool", "lines": [to_dict(message) for message in messages if message.role == "tool"]})
    return native


def words_alone(ag_input: Any, *, history: Any = ()) -> Any:
    call = PAGE.to_native(ag_input, history=history)
    for message in call.lines:
        for line in message["lines"]:
            line.pop("data", None)
    return call


def with_notices(messages: Iterable[AgMessage]) -> Any:
    return PAGE.messages_to_native([structs.replace(message, role="user") for message in messages])


def naming_nothing(ag_input: Any, *, history: Any = ()) -> Any:
    return PAGE.MurmurCall(PAGE.to_native(ag_input, history=history).lines)


# Agents


class StopsHalfway(NormalAgent):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        natives = list(self.murmur(invocation.native.lines))
        return iter(natives[: len(natives) // 2])


class CountsRuns(NormalAgent):
    RUNS = itertools.count()

    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        yield {"event": "say", "words": f"This is run {next(self.RUNS)}."}
        yield from self.murmur(invocation.native.lines)


class SharesState(NormalAgent):
    runs = 0

    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        self.runs += 1
        yield {"event": "say", "words": f"This is run {self.runs} of this agent."}
        yield from self.murmur(invocation.native.lines)


class IntroducesItselfAlways(NormalAgent):
    def __init__(self, murmur: Respond) -> None:
        super().__init__(murmur, capabilities=AgCapabilities())

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> Any:
        normalizer = Normal(**settings)
        if invocation.thread.revision:
            normalizer.out.emit(AgentCapabilities(seq=0, capabilities=AgCapabilities()))
        return normalizer


class SaysLessToSome(NormalAgent):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        for native in self.murmur(invocation.native.lines):
            if invocation.capabilities is None or native["event"] != "think":
                yield native


class NamesNothing(NormalAgent):
    def _prepare(self, invocation: Invocation) -> Any:
        return PAGE.MurmurCall(super()._prepare(invocation).lines)


class ForgivesEverything(NormalAgent):
    def run_sync(self, ag_input: Any, **options: Any) -> Any:
        try:
            yield from super().run_sync(ag_input, **options)
        except Exception:
            return


class SwallowsFailures(NormalAgent):
    def _invoke(self, invocation: Invocation) -> Iterator[Any]:
        try:
            yield from self.murmur(invocation.native.lines)
        except RuntimeError:
            return


class NeverCloses(NormalAgent):
    def __init__(self, murmur: Respond) -> None:
        super().__init__(murmur)
        self.held: list[Any] = []

    def _invoke(self, invocation: Invocation) -> Any:
        self.held.append(iter(self.murmur(invocation.native.lines)))
        return map(dict, self.held[-1])


class TellsTheModelAll(NormalAgent):
    def _prepare(self, invocation: Invocation) -> Any:
        call = super()._prepare(invocation)
        call.lines.append({"from": "host", "lines": [to_dict(result) for result in invocation.results]})
        return call


BROKEN: list[tuple[str, Subject, str]] = [
    ("lifecycle", normalizing(NoBeginning), "sample 'hello': the first event is message.start, not turn.start"),
    ("lifecycle", normalizing(TwoTerminals), r"2 terminals of the turn: \['turn.done', 'turn.done'\]"),
    ("lifecycle", normalizing(FlushesTwice), r"a second flush yields \['ext.agjson.again'\]"),
    ("lifecycle", normalizing(SilentAfterTheEnd), r"what is pushed after the flush is not in \[\]"),
    (
        "wire",
        normalizing(WritesNaN),
        r"sample 'hello', as it is: nobody can read .*: nan has no .* at `\$\._meta\.price`",
    ),
    (
        "natives-untouched",
        normalizing(TakesApart, with_samples_of_its_own()),
        "native 4 was {'event': 'say', 'words': 'Hello, '} and is now",
    ),
    ("host-end", normalizing(SaysEachEnd), "after 0 of 7 natives: a second HostEnd changes the stream"),
    ("host-error", normalizing(LosesTheCode), "no turn.error or error has code 'contract_failure'"),
    ("host-abort", normalizing(TakesAStopForAnEnd), "the open turn ends as turn.done"),
    ("native-error", normalizing(LosesTheNativeCode), "sample 'failed': the code is None, not 'murmur_lost'"),
    ("truncation", normalizing(SucceedsOnTruncation), "ends as a success, but the framework has not ended"),
    ("dropped", normalizing(NeedsAll), "sample 'call', native 1 dropped: push raised LookupError: no first call"),
    ("duplicated", normalizing(NeedsThemOnce), "native 1 twice: push raised LookupError"),
    ("swapped", normalizing(NeedsAll), "native 1 swapped: push raised LookupError"),
    ("shuffled", normalizing(NeedsWords), "sample 'hello', reversed: push raised LookupError: a cost of nothing"),
    ("hostile-values", normalizing(LeavesOutValues), "NoneType None at 0 is not whole in the output"),
    ("hostile-objects", normalizing(LooksAtEverything), "push raised RuntimeError: hands off"),
    ("unknown-types", normalizing(LeavesOutTheUnknown), "the unknown .*'sing'.* at 0 is not whole in the output"),
    ("wrong-members", normalizing(NeedsATextOfKind), "push raised (AttributeError|KeyError)"),
    (
        "wrong-members",
        normalizing(CountsAnything),
        r"sample '\w+', native \d with \$\.read as .*: nobody can read TurnDone.* - at `\$\.usage\.inputTokens`",
    ),
    ("chunks", normalizing(Trims), "sample 'hello', pieces of 0: the folds differ at .*content.*text"),
    (
        "stream-equals-whole",
        normalizing(CountsEvents),
        r"sample 'hello', streamed and whole: .*metadata\.events: 7 and 5",
    ),
    ("interleaving", normalizing(MixesLanes, LANES), "sample 'lanes', interleaving .*: no such block"),
    ("ids", normalizing(NamesByCount), "id 'block-7' is no native id and holds neither one nor the turn's"),
    ("invokes", normalizing(ForgetsTheThread), "sample 'call', invoke 2: "),
    ("census", normalizing(LosesArguments), r"sample 'call', native 1: \.with\.city is lost: 'Bern'"),
    ("marks", normalizing(LosesOddSeals), r"sample 'hello', native 3: \.value is lost: 'contract-mark' in its place"),
    ("unknown-members", normalizing(LosesNewMembers), "native 0: a new member of the whole is lost"),
    ("opaque-stored", normalizing(ShowsTheSealOnly), "native 3: 'c2VhbGVkIGJ5IG11cm11cg==' is not in the fold"),
    ("replay-opaque", converting(messages_to_native=without_seals), "'c2VhbGVkIGJ5IG11cm11cg==' does not go back"),
    (
        "replay-opaque",
        dataclasses.replace(
            SUBJECT, samples=[dataclasses.replace(SUBJECT.samples[0], withheld=frozenset({"c2VhbGVkIGJ5IG11cm11cg=="}))]
        ),
        "goes back, but is listed as withheld",
    ),
    (
        "replay-opaque",
        converting(messages_to_native=refusing),
        "sample 'hello' cannot be sent back: ReplayError",
    ),
    ("replay-stable", dataclasses.replace(SUBJECT, messages_from_native=trimmed), "the native history changes"),
    ("result-channels", converting(messages_to_native=with_everything), "messages_to_native: uiData reaches the model"),
    ("result-channels", converting(to_native=words_alone), "to_native: structuredContent does not reach the model"),
    ("run-config", converting(to_native=naming_nothing), "run.model: 'contract-model' is not in the native call, and"),
    (
        "not-for-the-model",
        converting(messages_to_native=with_notices),
        "a message of role notice: it reaches the model",
    ),
    ("agent-runs", driven(StopsHalfway), "any agent, sample 'failed': ends as turn.done, not turn.error"),
    ("agent-sync-async", driven(CountsRuns), "sample 'hello', run: event"),
    ("agent-concurrency", driven(SharesState), r"on threads, run \d+ .*: event"),
    ("agent-invokes", normalizing(ForgetsTheThread), "sample 'call', run 1: the fold parks"),
    ("agent-capabilities", driven(IntroducesItselfAlways), r"in three turns of a thread: \[1, 1, 1\]"),
    ("agent-client-limits", driven(SaysLessToSome), "sample 'hello', limited client: the messages differ"),
    ("agent-unsupported", driven(NamesNothing), "any agent, run.model: no error event names run.model"),
    ("agent-malformed-input", driven(ForgivesEverything), "None, run_sync: does not raise"),
    ("agent-failure", driven(SwallowsFailures), "the framework raises after 0 natives: the turn ends as turn.done"),
    ("agent-early-close", driven(NeverCloses), "run_sync closed early: the framework's stream is not closed"),
    ("agent-results", driven(TellsTheModelAll), r"results of \['c1', 'c2'\]: uiData reaches the model"),
]
"""The name of a rule, a subject that breaks it, and a pattern of the message."""
