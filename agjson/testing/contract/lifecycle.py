"""Rules on how a turn begins and ends (spec §5.0 INV-TURN, INV-FLUSH; §8.0)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from agjson.errors import AgJSONError
from agjson.jsonable import jsonable
from agjson.normalizer import HostAbort, HostEnd, HostError
from agjson.testing.contract._running import END, TURN, Ran, new_normalizer, places, run, run_sample, run_sound, sound
from agjson.testing.contract._values import as_json, count_equal, plain_events, shorten
from agjson.testing.contract.rule import expect, placed, rule, samples_for
from agjson.testing.contract.subject import Sample, Subject
from agjson.types import AgStreamEvent
from agjson.wire import decode_event, encode

__all__: list[str] = []

_LATE = {"contract": "a native event that comes late"}
_WORDS = "the contract suite's own failure"
_CODE = "contract_failure"
_REASON = "contract-stop"


@rule("lifecycle", "§5.0 INV-TURN, INV-FLUSH, §8.0")
def lifecycle(subject: Subject) -> None:
    """Each sample starts with turn.start and ends with its terminal, last and once; a second flush yields nothing.

    What is pushed after the flush is visible in what that push returns, and makes no second terminal.
    """
    for sample in subject.samples:
        where = f"sample {sample.name!r}"
        normalizer = new_normalizer(subject, sample.known_ids)
        with placed(where):
            events = [event for native in [*sample.natives, END] for event in normalizer.push(native)]
            events += normalizer.flush()
        _, terminal = sound(events, where, known_ids=sample.known_ids)
        expect(terminal.type == sample.terminal, f"{where}: ends as {terminal.type}, not as {sample.terminal}")
        expect(events[-1] is terminal, f"{where}: {terminal.type} is not the last event, {events[-1].type} is")
        again = normalizer.flush()
        expect(not again, f"{where}: a second flush yields {[event.type for event in again]}")
        late = normalizer.push(_LATE)
        expect(_holds(late, _LATE), f"{where}: what is pushed after the flush is not in {shorten(plain_events(late))}")
        quiet = [event.type for event in normalizer.push(HostEnd())]
        expect(not quiet, f"{where}: a HostEnd after the flush yields {quiet}")
        sound([*events, *late], f"{where}, with a late native", known_ids=sample.known_ids)


@rule("wire", "§5, §0.2")
def wire(subject: Subject) -> None:
    """Every event of each sample is read back from its JSON text as it was."""
    for sample in subject.samples:
        for event in run_sample(subject, sample).events:
            try:
                written = encode(event)
                read = decode_event(written)
            except AgJSONError as error:
                raise AssertionError(f"sample {sample.name!r}: {shorten(event)}: {error}") from error
            expect(encode(read) == written, f"sample {sample.name!r}: {shorten(event)} is read back as {shorten(read)}")


@rule("natives-untouched", "§8.0")
def natives_untouched(subject: Subject) -> None:
    """A normalizer does not change what it is given: the driver, a log or another consumer may hold it too.

    What other rules have run of the same sample counts as well.
    """
    for sample in subject.samples:
        natives = copy.deepcopy(list(sample.natives))
        run_sound(subject, sample, natives, "as it is")
        for index, was in enumerate(sample.as_given):
            for native in (sample.natives[index], natives[index]):
                expect(
                    as_json(native) == as_json(was),
                    f"sample {sample.name!r}: native {index} was {shorten(was)} and is now {shorten(jsonable(native))}",
                )


@rule("host-end", "§8.0, §5.0 INV-TURN")
def host_end(subject: Subject) -> None:
    """A HostEnd at any place ends the turn once; a second one says nothing."""
    for sample in subject.samples:
        for length in places(sample.natives, subject.budget):
            natives = sample.natives[:length]
            once = run_sound(subject, sample, natives, _place(sample, length))
            twice = run_sound(subject, sample, [*natives, END], f"{_place(sample, length)}, two HostEnds")
            expect(
                once.wire == twice.wire,
                f"sample {sample.name!r}, {_place(sample, length)}: a second HostEnd changes the stream",
            )


@rule("host-error", "§8.0 thrown terminals")
def host_error(subject: Subject) -> None:
    """A HostError at any place ends an open turn as turn.error; its message and code are not lost on a closed one."""
    for sample in subject.samples:
        for length in places(sample.natives, subject.budget):
            natives = [*sample.natives[:length], HostError(_WORDS, code=_CODE)]
            ran = _stopped(subject, sample, natives, f"{_place(sample, length)}, HostError")
            told = [
                event for event in ran.wire if event["type"] in ("turn.error", "error") and event.get("code") == _CODE
            ]
            where = f"sample {sample.name!r}, {_place(sample, length)}, HostError"
            expect(told, f"{where}: no turn.error or error has code {_CODE!r}: {shorten(ran.wire[-3:])}")
            expect(_WORDS in told[0]["message"], f"{where}: the message is {told[0]['message']!r}")
            if _is_open(subject, sample, length):
                expect(ran.terminal.type == "turn.error", f"{where}: the open turn ends as {ran.terminal.type}")


@rule("host-abort", "§8 item 17")
def host_abort(subject: Subject) -> None:
    """A HostAbort at any place ends an open turn as turn.abort with its reason, and changes nothing on a closed one."""
    for sample in subject.samples:
        for length in places(sample.natives, subject.budget):
            natives = [*sample.natives[:length], HostAbort(_REASON)]
            ran = _stopped(subject, sample, natives, f"{_place(sample, length)}, HostAbort")
            if not _is_open(subject, sample, length):
                continue
            where = f"sample {sample.name!r}, {_place(sample, length)}, HostAbort"
            expect(ran.terminal.type == "turn.abort", f"{where}: the open turn ends as {ran.terminal.type}")
            reason = getattr(ran.terminal, "reason", None)
            expect(reason == _REASON, f"{where}: the reason is {reason!r}, not {_REASON!r}")


@rule("native-error", "§4, §8.0")
def native_error(subject: Subject) -> None:
    """An error that the framework reports in its stream ends the turn as turn.error with the framework's code."""
    lack = "no sample ends as turn.error with a `code`"
    for sample in samples_for(subject, lambda each: each.terminal == "turn.error" and each.code, lack):
        ran = run_sample(subject, sample)
        code = getattr(ran.terminal, "code", None)
        expect(code == sample.code, f"sample {sample.name!r}: the code is {code!r}, not {sample.code!r}")


@rule("truncation", "§5.0 INV-FLUSH, §8 item 14")
def truncation(subject: Subject) -> None:
    """A stream that breaks off anywhere is a sound turn and no success, unless the framework had said its end.

    Every prefix of a short sample is tried, with a HostEnd and without; of a long one the ends, the places where the
    kind of native changes, and an even spread, within ``subject.budget``. Without a HostEnd the reason of an abort is
    ``stream-truncated``.
    """
    for sample in subject.samples:
        for length in places(sample.natives, subject.budget // 2):
            natives = sample.natives[:length]
            run_sound(subject, sample, natives, _place(sample, length))
            if not run(subject, natives, _place(sample, length), known_ids=sample.known_ids):
                continue  # nothing was said, so there is nothing to end
            cut = run_sound(subject, sample, natives, f"{_place(sample, length)}, no HostEnd", ended=False)
            if cut.terminal.type == "turn.abort":
                reason = getattr(cut.terminal, "reason", None)
                expect(
                    reason == "stream-truncated" or sample.terminal == "turn.abort",
                    f"sample {sample.name!r}, {_place(sample, length)}: aborted with reason {reason!r}",
                )


def _place(sample: Sample, length: int) -> str:
    return f"after {length} of {len(sample.natives)} natives"


def _stopped(subject: Subject, sample: Sample, natives: Sequence[Any], where: str) -> Ran:
    where = f"sample {sample.name!r}, {where}"
    events = run(subject, natives, where, known_ids=sample.known_ids)
    result, terminal = sound(events, where, known_ids=sample.known_ids)
    return Ran(events, result, terminal)


def _is_open(subject: Subject, sample: Sample, length: int) -> bool:
    """Whether no native so far has closed the turn."""
    normalizer = new_normalizer(subject, sample.known_ids)
    events: list[AgStreamEvent] = []
    for native in sample.natives[:length]:
        events += normalizer.push(native)
    ends = ("turn.done", "turn.error", "turn.abort")
    return not any(event.type in ends and event.turn_id == TURN for event in events)


def _holds(events: Sequence[AgStreamEvent], value: Any) -> bool:
    return any(count_equal(event, value) for event in plain_events(events))
