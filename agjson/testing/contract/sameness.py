"""Rules on what must not matter: how a text is cut, whether it streams, how blocks interleave (spec §5.0 INV-FOLD)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from random import Random
from typing import Any

from agjson.testing.contract._running import Ran, run_sample, run_sound
from agjson.testing.contract._values import as_json, difference, same, shorten, with_ids_by_order
from agjson.testing.contract.rule import expect, rule, samples_for
from agjson.testing.contract.subject import NotApplicable, Subject

__all__: list[str] = []

# Characters in a piece; 0 joins what can be joined.
_SIZES = (0, 1, 2, 5, 64)
# A sample that is cut into more natives than this is left out for that size.
_MOST_PIECES = 20_000
_ORDERS = 12


@rule("chunks", "§5.0 INV-DELTA, INV-FOLD")
def chunks(subject: Subject) -> None:
    """However the text of a sample is cut, from one character to the whole, it folds to the same.

    A size that would make more than 20,000 natives of a sample is left out for it.
    """
    if subject.rechunk is None:
        raise NotApplicable("the subject has no `rechunk`")
    for sample in subject.samples:
        expected = run_sample(subject, sample).fold
        for size in _SIZES:
            natives = subject.rechunk(sample.natives, size)
            if len(natives) <= _MOST_PIECES:
                found = run_sound(subject, sample, natives, f"in pieces of {size or 'any number of'} characters").fold
                _equal(found, expected, f"sample {sample.name!r}, pieces of {size}")


@rule("stream-equals-whole", "§10 item 1, §5.0 INV-FOLD")
def stream_equals_whole(subject: Subject) -> None:
    """A stream and the answer that the framework gives without streaming fold to the same, but for derived ids."""
    for sample in samples_for(subject, lambda each: each.whole is not None, "no sample has a `whole` form"):
        streamed = run_sample(subject, sample)
        whole = run_sound(subject, sample, sample.whole or (), "whole")
        _equal(
            with_ids_by_order(streamed.fold),
            with_ids_by_order(whole.fold),
            f"sample {sample.name!r}, streamed and whole",
        )


@rule("interleaving", "§5.0 INV-BLOCK, §8 item 2")
def interleaving(subject: Subject) -> None:
    """Blocks whose natives interleave keep to themselves: the same blocks come out, in random orders of the lanes.

    A lane begins only when those before it have begun, and keeps its own order. Twelve orders are tried, the same each
    time.
    """
    if subject.lanes is None:
        raise NotApplicable("the subject has no `lanes`: its natives cannot interleave")
    tried = 0
    for sample in subject.samples:
        lanes = subject.lanes(sample.natives)
        expected = _blocks(run_sample(subject, sample))
        random = Random(len(lanes))
        for number in range(min(_ORDERS, max(1, subject.budget // (len(lanes) + 1)))):
            natives = _interleaved(sample.natives, lanes, random)
            if natives == list(sample.natives):
                continue
            tried += 1
            found = _blocks(run_sound(subject, sample, natives, f"interleaving {number}"))
            lost = sorted((expected - found).elements())
            expect(not lost, f"sample {sample.name!r}, interleaving {number}: no such block: {shorten(lost)}")
            more = sorted((found - expected).elements())
            expect(not more, f"sample {sample.name!r}, interleaving {number}: a block of its own: {shorten(more)}")
    if not tried:
        raise NotApplicable("no sample has two lanes side by side")


def _equal(found: object, expected: object, where: str) -> None:
    if not same(found, expected):
        raise AssertionError(f"{where}: the folds differ at {difference(found, expected, '$')}")


def _blocks(ran: Ran) -> Counter[str]:
    return Counter(as_json(block) for message in ran.fold["messages"] for block in message["content"])


def _interleaved(natives: Sequence[Any], lanes: Sequence[Hashable | None], random: Random) -> list[Any]:
    """Natives in another order that keeps each lane's own, the order of the lanes' beginnings, and every barrier."""
    made: list[Any] = []
    waiting: dict[Hashable, list[Any]] = {}
    for native, lane in zip(natives, lanes, strict=True):
        if lane is None:
            made += _merged(waiting, random)
            waiting = {}
            made.append(native)
        else:
            waiting.setdefault(lane, []).append(native)
    return made + _merged(waiting, random)


def _merged(waiting: dict[Hashable, list[Any]], random: Random) -> list[Any]:
    made: list[Any] = []
    closed = list(waiting.values())
    running: list[list[Any]] = []
    while closed or running:
        if closed and (not running or random.random() < 0.4):
            running.append(closed.pop(0)[::-1])
            chosen = running[-1]
        else:
            chosen = random.choice(running)
        made.append(chosen.pop())
        if not chosen:
            running.remove(chosen)
    return made
