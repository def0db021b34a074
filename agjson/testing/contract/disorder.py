"""Rules on natives that come wrong: out of order, twice, not at all, or of no known shape (spec §8.0 degradation).

What is tried at every place of a short sample is tried at chosen places of a long one, the same each time: the ends,
where the kind of native changes, and an even spread, within ``subject.budget`` natives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from agjson.jsonable import jsonable
from agjson.normalizer import HostEnd, HostError
from agjson.testing.contract._running import END, places, run, run_sample, run_sound, sound
from agjson.testing.contract._values import changed, count_equal, paths, shorten, without
from agjson.testing.contract.rule import expect, rule
from agjson.testing.contract.subject import NotApplicable, Path, Sample, Subject

__all__: list[str] = []

_HUGE = "long " * 40_000
# How many places of one sample are tried with each value, how many wrong members, how many random orders.
_SPOTS = 12
_CASES = 400
_SHUFFLES = 20
_DEEPEST = 5_000
_LEFT_OUT = object()
_WRONG: tuple[Any, ...] = (
    *(None, 7, -1.5, True, float("nan"), 10**30, "", "contract", "\ud83d"),
    *([], ["x"], {}, {"type": "contract"}),
)


@rule("dropped", "§8.0")
def dropped(subject: Subject) -> None:
    """Without any one of its natives a sample is still a sound turn."""
    _each(subject, lambda natives, at: [*natives[:at], *natives[at + 1 :]], "dropped")


@rule("duplicated", "§8.0")
def duplicated(subject: Subject) -> None:
    """With any one of its natives twice a sample is still a sound turn."""
    _each(subject, lambda natives, at: [*natives[: at + 1], *natives[at:]], "twice")


@rule("swapped", "§8.0")
def swapped(subject: Subject) -> None:
    """With any two neighbours swapped a sample is still a sound turn."""
    _each(subject, lambda natives, at: [*natives[:at], *natives[at : at + 2][::-1], *natives[at + 2 :]], "swapped")


@rule("shuffled", "§8.0")
def shuffled(subject: Subject) -> None:
    """Reversed, and in twenty random orders (the same each time), the natives of a sample make a sound turn."""
    for sample in subject.samples:
        run_sound(subject, sample, list(sample.natives)[::-1], "reversed")
        random = Random(len(sample.natives))
        for number in range(min(_SHUFFLES, max(1, subject.budget // (len(sample.natives) + 1)))):
            natives = list(sample.natives)
            random.shuffle(natives)
            run_sound(subject, sample, natives, f"shuffle {number}")


@rule("hostile-values", "§8.0 degradation")
def hostile_values(subject: Subject) -> None:
    """A value that is no native event, at any place, harms nothing and is found whole in the output.

    Null, numbers, texts up to 200,000 characters, bytes, NaN, lists, deep nesting, objects of unknown classes.
    """
    _insert_each(subject, [(value, f"{type(value).__name__} {shorten(value, 40)}") for value in _values()])


@rule("hostile-objects", "§8.0 degradation")
def hostile_objects(subject: Subject) -> None:
    """Objects that raise at every touch, contain themselves or nest 5,000 deep do not make push raise.

    Tried at the beginning, in the middle and at the end of the first sample.
    """
    sample = subject.samples[0]
    for make in (
        _Untouchable,
        _cycle,
        _bottomless,
        lambda: HostError(_Angry()),
        lambda: HostEnd(detail=_Untouchable()),
    ):
        for at in _spots(sample.natives, 3):
            natives = [*sample.natives[:at], make(), *sample.natives[at:]]
            # Not by `run_sound`: a HostError or HostEnd among the natives ends the turn.
            _sound_whatever(subject, sample, natives, f"a hostile object at {at}")


@rule("unknown-types", "§0.2, §8.0 degradation, §8 item 22")
def unknown_types(subject: Subject) -> None:
    """A native of a type that the adapter does not know, at any place, is found whole in the output."""
    if not subject.unknown:
        raise NotApplicable("the subject has no `unknown` natives")
    _insert_each(subject, [(value, f"the unknown {shorten(value, 80)}") for value in subject.unknown])


@rule("wrong-members", "§8.0")
def wrong_members(subject: Subject) -> None:
    """With any member of a native replaced by null, a number, a text, a list or an object, the turn is still sound.

    A member may also be left out. Every member with every value is tried where that is at most 400 cases of a sample,
    and fewer of a long one; else as many of them at random, the same each time.
    """
    for sample in subject.samples:
        cases = [
            (index, path, wrong)
            for index, native in enumerate(sample.natives)
            for path in paths(native)
            for wrong in (*_WRONG, _LEFT_OUT)
        ]
        most = min(len(cases), _CASES, max(8, subject.budget // (len(sample.natives) + 1)))
        for index, path, wrong in Random(len(cases)).sample(cases, most):
            native = sample.natives[index]
            new = without(native, path) if wrong is _LEFT_OUT else changed(native, path, wrong)
            natives = [*sample.natives[:index], new, *sample.natives[index + 1 :]]
            what = "left out" if wrong is _LEFT_OUT else f"as {shorten(wrong, 40)}"
            where = f"native {index} with {_member(path)} {what}: {shorten(new)}"
            _sound_whatever(subject, sample, natives, where)


def _member(path: Path) -> str:
    """A path as JSON paths are written."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _each(subject: Subject, disorder: Callable[[Sequence[Any], int], Sequence[Any]], what: str) -> None:
    for sample in subject.samples:
        for at in places(sample.natives, subject.budget)[:-1]:
            run_sound(subject, sample, disorder(sample.natives, at), f"native {at} {what}")


def _insert_each(subject: Subject, values: Sequence[tuple[Any, str]]) -> None:
    for sample in subject.samples:
        natives, plain = sample.natives, run_sample(subject, sample).wire
        spots = _spots(natives, max(2, min(_SPOTS, subject.budget // (40 * (len(natives) + 1)))))
        for value, what in values:
            wanted = jsonable(value)
            known = count_equal(plain, wanted)
            for at in spots:
                ran = run_sound(subject, sample, [*natives[:at], value, *natives[at:]], f"{what} at {at}")
                expect(
                    count_equal(ran.wire, wanted) > known,
                    f"sample {sample.name!r}: {what} at {at} is not whole in the output",
                )


def _sound_whatever(subject: Subject, sample: Sample, natives: Sequence[Any], where: str) -> None:
    """Run natives whose members cannot be trusted: whether the framework has ended is anyone's guess."""
    where = f"sample {sample.name!r}, {where}"
    events = run(subject, [*natives, END], where, known_ids=sample.known_ids)
    sound(events, where, known_ids=sample.known_ids)


def _spots(natives: Sequence[Any], most: int) -> list[int]:
    return _spread(places(natives, (len(natives) + 1) * most), most)


def _spread(values: Sequence[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return list(values)
    return [values[index * (len(values) - 1) // (most - 1)] for index in range(most)]


def _values() -> Iterator[Any]:
    yield from (None, 5, -0.5, float("nan"), True, "contract text", b"\xff\x00", [], [1, ["x"]], {}, _HUGE)
    deep: Any = "contract-bottom"
    for _ in range(100):
        deep = [deep]
    yield deep
    yield {"contract": {"unknown": [1, None, {"text": "contract-inside"}]}}
    yield {1: "a key that is no text"}
    yield "half \ud83d of a pair"


class _Untouchable:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("hands off")

    def __repr__(self) -> str:
        raise RuntimeError("hands off")


class _Angry(Exception):
    def __str__(self) -> str:
        raise RuntimeError("hands off")


def _cycle() -> Any:
    inside: dict[str, Any] = {"type": "contract"}
    inside["self"] = inside
    return inside


def _bottomless() -> Any:
    deep: Any = []
    for _ in range(_DEEPEST):
        deep = [deep]
    return {"type": "contract", "deep": deep}
