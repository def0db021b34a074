"""Tool calls as they happened: each with the result that is its own (loop contract, "Function calls and results").

An id may come again: a call is told apart by where it stands, not by its id. A result closes the open call of its id.
Where several are open, a result may name its call (`OCCURRENCE`). Others go to the calls in order, once there are as
many results as calls; where there are fewer, which call a result is of cannot be known, and none is guessed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from agjson.emitter import SYNTHESIZED
from agjson.types import (
    AgMessage,
    CompactionBlock,
    ReasoningBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["OCCURRENCE", "Occurrence", "Place", "Scan", "Stray", "occurrences", "scan"]

OCCURRENCE = "agjson/occurrence"
"""The key of a result's ``_meta`` that names its call (`Occurrence.name`), where several of its id were open."""


class Place(NamedTuple):
    """Where a block stands.

    Attributes:
        message: the position of its message, from 0.
        block: its position inside the message, from 0.
        message_id: the id of its message.
    """

    message: int
    block: int
    message_id: str

    @property
    def path(self) -> str:
        """The JSON path inside the message list."""
        return f"$[{self.message}].content[{self.block}]"


class Occurrence(Struct, frozen=True, kw_only=True):
    """One call that a model made, and what came of it.

    Attributes:
        key: its name in this history: the id of the call, or ``<id>#2`` and so on where the id has come before. Longer
            histories give the same names to the same calls.
        call: the call.
        place: where it stands.
        ordinal: which of the calls of its id in its message it is, from 1; of those that are open at once.
        result: its terminal result; None: there is none, or it cannot be told which it is.
        result_place: where that stands.
        placeholders: where results stand that only say that the call waits (outcome ``input_required``).
        partials: where results stand that are partial.
        candidates: where results stand that are of this call or of another with the same id.
    """

    key: str
    call: ToolCallBlock
    place: Place
    ordinal: int = 1
    result: ToolResultBlock | None = None
    result_place: Place | None = None
    placeholders: tuple[Place, ...] = ()
    partials: tuple[Place, ...] = ()
    candidates: tuple[Place, ...] = ()

    @property
    def call_id(self) -> str:
        """The id of the call, which is not unique."""
        return self.call.tool_call_id

    @property
    def name(self) -> str:
        """Its name by the message that holds it, which stays when other messages are left out."""
        return _name(self.place, self.ordinal)

    @property
    def hosted(self) -> bool:
        """Whether the provider runs the call: it is for information, nothing here may run it."""
        return bool(self.call.provider_executed)

    @property
    def app_only(self) -> bool:
        """Whether an app made the call, not a model: no model may see it (spec §2 ``uiVisibility``)."""
        visible = self.call.ui_visibility
        return visible is not None and "model" not in visible

    @property
    def completed(self) -> bool:
        """Whether it has its terminal result: nothing may run it or answer it any more."""
        return self.result is not None

    @property
    def ambiguous(self) -> bool:
        """Whether there are results that are of this call or of another with the same id."""
        return bool(self.candidates)


def _name(place: Place, ordinal: int) -> str:
    return place.message_id if ordinal == 1 else f"{place.message_id}#{ordinal}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A result or placeholder whose call is not open where it stands.

    Attributes:
        block: the result.
        place: where it stands.
        closed: its call has a result already; False: no such call has come.
    """

    block: ToolResultBlock
    place: Place
    closed: bool


class Shape(NamedTuple):
    """What of a message matters for how it belongs to others."""

    calls: bool = False
    results: bool = False
    only_reasoning: bool = False
    only_placeholders: bool = False
    summary: bool = False


_PLAIN = Shape()


@dataclass(slots=True)
class Scan:
    """Everything that one walk over a history finds.

    Attributes:
        occurrences: the calls in order.
        strays: results and placeholders without an open call.
        announced: calls that nobody made: they only announce a result whose own call was out of sight.
        misplaced: calls in messages that are not the assistant's: no model made them.
        overlaps: for each stretch of calls of one id whose results cannot be told apart, the places of all of them.
        shapes: what each message holds.
    """

    occurrences: list[Occurrence] = field(default_factory=list[Occurrence])
    strays: list[Stray] = field(default_factory=list[Stray])
    announced: list[Place] = field(default_factory=list[Place])
    misplaced: list[tuple[ToolCallBlock, Place]] = field(default_factory=list[tuple[ToolCallBlock, Place]])
    overlaps: list[list[Place]] = field(default_factory=list[list[Place]])
    shapes: list[Shape] = field(default_factory=list[Shape])


def occurrences(messages: Sequence[AgMessage]) -> list[Occurrence]:
    """The calls of a history in order, each with its own result (loop contract, "Function calls and results").

    Args:
        messages: the history; it is only read.
    """
    return scan(messages).occurrences


def _named_by(block: ToolResultBlock) -> str | None:
    named = block.meta.get(OCCURRENCE) if block.meta else None
    return named if isinstance(named, str) else None


@dataclass(slots=True, eq=False)
class _Draft:
    key: str
    call: ToolCallBlock
    place: Place
    ordinal: int = 1
    result: ToolResultBlock | None = None
    result_place: Place | None = None
    # Most calls have none of either, and a history may have very many calls.
    placeholders: list[Place] | None = None
    partials: list[Place] | None = None
    candidates: tuple[Place, ...] = ()

    @property
    def name(self) -> str:
        return _name(self.place, self.ordinal)

    def wait(self, place: Place) -> None:
        if self.placeholders is None:
            self.placeholders = []
        self.placeholders.append(place)

    def part(self, place: Place) -> None:
        if self.partials is None:
            self.partials = []
        self.partials.append(place)

    def close(self, block: ToolResultBlock, place: Place) -> None:
        self.result, self.result_place = block, place

    def finished(self) -> Occurrence:
        return Occurrence(
            key=self.key,
            call=self.call,
            place=self.place,
            ordinal=self.ordinal,
            result=self.result,
            result_place=self.result_place,
            placeholders=tuple(self.placeholders or ()),
            partials=tuple(self.partials or ()),
            candidates=self.candidates,
        )


@dataclass(slots=True, eq=False)
class _Open:
    """The calls of one id that are open at once, by name, and the results for them that cannot be told apart."""

    calls: dict[str, _Draft] = field(default_factory=dict[str, _Draft])
    results: list[tuple[ToolResultBlock, Place]] = field(default_factory=list[tuple[ToolResultBlock, Place]])
    # Those without a placeholder yet, once there are several.
    unheard: deque[_Draft] | None = None

    def enter(self, draft: _Draft) -> None:
        last = next(reversed(self.calls.values()), None)
        if last is not None:
            if last.place.message_id == draft.place.message_id:
                draft.ordinal = last.ordinal + 1
            if self.unheard is None:
                self.unheard = deque(self.calls.values())
            self.unheard.append(draft)
        self.calls[draft.name] = draft

    def wait(self, block: ToolResultBlock, place: Place) -> None:
        """A placeholder goes to the call that it names, else to the earliest that has none."""
        draft = self._named(block)
        while draft is None and self.unheard:
            first = self.unheard.popleft()
            if first.result is None and not first.placeholders:
                draft = first
        (draft or self._last(place) or next(iter(self.calls.values()))).wait(place)

    def part(self, block: ToolResultBlock, place: Place) -> None:
        """A partial result goes to the call that it names, else to the one of its message, else to the earliest."""
        (self._named(block) or self._last(place) or next(iter(self.calls.values()))).part(place)

    def answer(self, block: ToolResultBlock, place: Place) -> None:
        """Take a terminal result; the calls that it closes leave."""
        if len(self.calls) == 1 and not self.results:
            self.calls.popitem()[1].close(block, place)
            return
        draft = self._named(block) or self._last(place)
        if draft is not None:
            del self.calls[draft.name]
            draft.close(block, place)
        else:
            self.results.append((block, place))
        if len(self.results) == len(self.calls):
            for each, (result, where) in zip(self.calls.values(), self.results, strict=True):
                each.close(result, where)
            self.calls, self.results = {}, []

    def _named(self, block: ToolResultBlock) -> _Draft | None:
        named = _named_by(block)
        return None if named is None else self.calls.get(named)

    def _last(self, place: Place) -> _Draft | None:
        """Of the open calls the only one that stands in the message of the result."""
        last = list(islice(reversed(self.calls.values()), 2))
        if last[0].place.message != place.message or (len(last) > 1 and last[1].place.message == place.message):
            return None
        return last[0]


class _Scanner:
    def __init__(self) -> None:
        self.found = Scan()
        self._drafts: list[_Draft] = []
        self._open: dict[str, _Open] = {}
        # The calls by id and name, as far as a result has asked for one by its name.
        self._by_name: dict[tuple[str, str], _Draft] = {}
        self._indexed = 0
        self._seen: dict[str, int] = {}
        self._keys: set[str] = set()

    def call(self, block: ToolCallBlock, place: Place) -> None:
        id = block.tool_call_id
        if block.tool_metadata and block.tool_metadata.get(SYNTHESIZED):
            self.found.announced.append(place)
            return
        draft = _Draft(self._key(id), block, place)
        self._drafts.append(draft)
        book = self._open.get(id)
        if book is None:
            book = self._open[id] = _Open()
        book.enter(draft)

    def result(self, block: ToolResultBlock, place: Place) -> None:
        id = block.tool_call_id
        book = self._open.get(id)
        named = _named_by(block)
        of = self._called(id, named) if named is not None else None
        if book is None or (of is not None and of.result is not None):
            self.found.strays.append(Stray(block=block, place=place, closed=id in self._seen))
        elif block.outcome == "input_required":
            book.wait(block, place)
        elif block.preliminary:
            book.part(block, place)
        else:
            book.answer(block, place)
            if not book.calls:
                del self._open[id]

    def _called(self, id: str, name: str) -> _Draft | None:
        for draft in self._drafts[self._indexed :]:
            self._by_name[draft.call.tool_call_id, draft.name] = draft
        self._indexed = len(self._drafts)
        return self._by_name.get((id, name))

    def _key(self, id: str) -> str:
        count = self._seen.get(id, 0) + 1
        key = id if count == 1 else f"{id}#{count}"
        while key in self._keys:
            count += 1
            key = f"{id}#{count}"
        self._seen[id] = count
        self._keys.add(key)
        return key

    def finish(self) -> Scan:
        for book in self._open.values():
            if book.results:
                candidates = tuple(place for _, place in book.results)
                for draft in book.calls.values():
                    draft.candidates = candidates
                self.found.overlaps.append([*(draft.place for draft in book.calls.values()), *candidates])
        self.found.occurrences = [draft.finished() for draft in self._drafts]
        return self.found


def scan(messages: Sequence[AgMessage]) -> Scan:
    """Everything that one walk over a history finds, each block looked at once.

    Args:
        messages: the history; it is only read.
    """
    scanner = _Scanner()
    shapes = scanner.found.shapes
    for index, message in enumerate(messages):
        calls = results = summary = False
        reasoning = placeholders = 0
        for at, block in enumerate(message.content):
            if isinstance(block, ToolCallBlock):
                if message.role == "assistant":
                    calls = True
                    scanner.call(block, Place(index, at, message.id))
                else:
                    scanner.found.misplaced.append((block, Place(index, at, message.id)))
            elif isinstance(block, ToolResultBlock):
                results = True
                placeholders += block.outcome == "input_required"
                scanner.result(block, Place(index, at, message.id))
            elif isinstance(block, ReasoningBlock):
                reasoning += 1
            elif isinstance(block, CompactionBlock):
                summary = True
        if calls or results or reasoning or summary:
            count = len(message.content)
            shapes.append(Shape(calls, results, reasoning == count, placeholders == count, summary))
        else:
            shapes.append(_PLAIN)
    return scanner.finish()
