"""Rules on ids: unique in the thread for ever, whatever the framework repeats (spec §5.0 INV-BLOCK, §8.0)."""

from __future__ import annotations

import re
from collections import Counter

from agjson.checker import check
from agjson.fold import Reducer
from agjson.jsonable import jsonable
from agjson.testing.contract._running import END, TURN, opened_ids, run, run_sample, sound
from agjson.testing.contract._values import shorten, strings
from agjson.testing.contract.rule import expect, rule
from agjson.testing.contract.subject import Subject

__all__: list[str] = []

_INVOKES = 5
_RENAMED = re.compile(r"#\d+$")


@rule("ids", "§5.0 INV-BLOCK, §8 item 2")
def ids(subject: Subject) -> None:
    """An id is the framework's own, or holds one of these or the turn's, so that no other turn can come upon it."""
    for sample in subject.samples:
        native = {text for each in sample.natives for text in strings(jsonable(each)) if text}
        for id in opened_ids(run_sample(subject, sample).events):
            own = _RENAMED.sub("", id)
            expect(
                own in native or TURN in own or any(part in native for part in re.split(r"[:#]", own)),
                f"sample {sample.name!r}: id {id!r} is no native id and holds neither one nor the turn's",
            )


@rule("invokes", "§8.0, §5.0 INV-SEQ, INV-BLOCK")
def invokes(subject: Subject) -> None:
    """Five invokes of one thread with the same natives fold strictly, with ids of their own each."""
    for sample in subject.samples:
        known = set(sample.known_ids)
        reducer = Reducer()
        counts: list[int] = []
        for number in range(1, _INVOKES + 1):
            where = f"sample {sample.name!r}, invoke {number}"
            turn_id = f"contract-turn-{number}"
            events = run(subject, [*sample.natives, END], where, known_ids=known, turn_id=turn_id)
            sound(events, where, known_ids=known, turn_id=turn_id)
            opened = list(opened_ids(events))
            again = sorted(known.intersection(opened))
            expect(not again, f"{where}: opens ids that the thread has: {shorten(again)}")
            twice = sorted(id for id, count in Counter(opened).items() if count > 1)
            expect(not twice, f"{where}: opens ids twice: {shorten(twice)}")
            known.update(opened)
            before = reducer.result()
            found = list(check(events, initial=before, known_ids=known.difference(opened)))
            expect(not found, f"{where}: with what came before, check finds {shorten(found)}")
            for event in events:
                reducer.push(event)
                expect(
                    not reducer.needs_resync,
                    f"{where}: the fold of all invokes parks at {shorten(event)}: {reducer.resync_reason}",
                )
            counts.append(len(reducer.result().messages) - len(before.messages))
        expect(
            len(set(counts)) == 1 or not sample.repeats,
            f"sample {sample.name!r}: the same natives add other numbers of messages in each invoke: {counts}",
        )
