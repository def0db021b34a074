"""Rules on losing nothing: every string of every native event is in the output (spec §8.0, §10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agjson.jsonable import jsonable
from agjson.testing.contract._running import END, run, run_sample, sound
from agjson.testing.contract._values import (
    at,
    changed,
    is_object,
    leaves,
    paths,
    plain_events,
    shorten,
    strings,
)
from agjson.testing.contract.rule import expect, rule, samples_for
from agjson.testing.contract.subject import NotApplicable, Path, Subject

__all__: list[str] = []

_MARK = "contract-mark"
_MEMBER = "contractMember"
# How many strings of one sample are replaced, at most.
_MOST_MARKS = 120


@rule("census", "§8.0, §10 item 1")
def census(subject: Subject) -> None:
    """Every string of each native event (words, ids, opaque values) is in the output or excused."""
    for sample in subject.samples:
        ran = run_sample(subject, sample)
        found = {text for each in (ran.wire, ran.fold) for text in strings(each)}
        everything = "\n".join(found)
        for index, native in enumerate(map(jsonable, sample.natives)):
            for path, value in leaves(native):
                if not isinstance(value, str) or value in found or value in everything:
                    continue
                expect(
                    subject.excused(native, path),
                    f"sample {sample.name!r}, native {index}: {_told(path)} is lost: {shorten(value)}",
                )


@rule("marks", "§8.0 degradation, §10 item 1")
def marks(subject: Subject) -> None:
    """A string that stands where the adapter expects another one is found in the output or excused.

    The census can be fooled by a string that occurs twice; this replaces one string at a time by a mark that occurs
    nowhere else. Some hundred strings of each sample are tried, those of natives that differ in kind first.
    """
    for sample in subject.samples:
        strings_at = list(_first_of_each_kind(map(jsonable, sample.natives)))
        most = min(_MOST_MARKS, max(8, subject.budget // (len(sample.natives) + 1)))
        for index, path in strings_at[:most]:
            native = jsonable(sample.natives[index])
            if subject.excused(native, path) or subject.overruled(native, path):
                continue
            marked = changed(native, path, _MARK)
            where = f"sample {sample.name!r}, native {index}: {_told(path)}"
            natives = [*sample.natives[:index], marked, *sample.natives[index + 1 :], END]
            events = run(subject, natives, where, known_ids=sample.known_ids)
            found = any(_MARK in text for text in strings(plain_events(events)))
            expect(found, f"{where} is lost: {_MARK!r} in its place is nowhere in the output")


@rule("unknown-members", "§0.2, §8.0 degradation")
def unknown_members(subject: Subject) -> None:
    """A member that a future version may add to any object of a native event is found in the output or excused.

    One is added to the first object of each kind, to some hundred in each sample; `Subject.excused` and `overruled`
    are asked with the path of the new member, which is named ``contractMember``.
    """
    for sample in subject.samples:
        natives = list(map(jsonable, sample.natives))
        most = min(_MOST_MARKS, max(8, subject.budget // (len(natives) + 1)))
        for index, path in list(_objects(natives))[:most]:
            native = natives[index]
            if subject.excused(native, (*path, _MEMBER)) or subject.overruled(native, (*path, _MEMBER)):
                continue
            more = changed(native, path, {**at(native, path), _MEMBER: _MARK})
            where = f"sample {sample.name!r}, native {index}: a new member of {_told(path)}"
            pushed = [*sample.natives[:index], more, *sample.natives[index + 1 :], END]
            events = run(subject, pushed, where, known_ids=sample.known_ids)
            sound(events, where, known_ids=sample.known_ids)
            found = any(_MARK in text for text in strings(plain_events(events)))
            expect(found, f"{where} is lost: {_MARK!r} is nowhere in the output")


@rule("opaque-stored", "§2 AgOpaque, §8 item 9")
def opaque_stored(subject: Subject) -> None:
    """Every opaque value of a sample is in its fold, byte for byte."""
    if subject.opaque is None:
        raise NotApplicable("the subject has no `opaque`")
    tried = 0
    for sample in samples_for(subject, lambda each: each.terminal == "turn.done", "no sample ends as turn.done"):
        stored = set(strings(run_sample(subject, sample).fold))
        for index, native in enumerate(sample.natives):
            for value in subject.opaque(native):
                tried += 1
                expect(value in stored, f"sample {sample.name!r}, native {index}: {shorten(value)} is not in the fold")
    if not tried:
        raise NotApplicable("no sample holds an opaque value")


def _first_of_each_kind(natives: Iterable[Any]) -> Iterable[tuple[int, Path]]:
    """The strings of the natives, those at paths with types that did not occur before first."""
    seen: set[object] = set()
    first: list[tuple[int, Path]] = []
    others: list[tuple[int, Path]] = []
    for index, native in enumerate(natives):
        kinds = tuple(value for path, value in leaves(native) if path and path[-1] == "type")
        for path, value in leaves(native):
            if isinstance(value, str):
                shape = (kinds, path)
                (others if shape in seen else first).append((index, path))
                seen.add(shape)
    return [*first, *others]


def _objects(natives: Iterable[Any]) -> Iterable[tuple[int, Path]]:
    """The objects of the natives, one of each shape: the path, and the types on the way."""
    seen: set[object] = set()
    for index, native in enumerate(natives):
        for path in [(), *paths(native)]:
            value = at(native, path)
            if is_object(value):
                kinds = tuple(str(_type_of(at(native, path[:length]))) for length in range(len(path) + 1))
                shape = (kinds, path)
                if shape not in seen:
                    seen.add(shape)
                    yield index, path


def _type_of(value: object) -> Any:
    return value.get("type") if is_object(value) else None


def _told(path: Path) -> str:
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path) or "the whole"
