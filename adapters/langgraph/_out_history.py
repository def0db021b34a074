"""A history before it is written: what goes, in which order, and under which ids of calls (spec §3.2, §10.13)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agjson.adapters.langgraph._carry import COMMITTED
from agjson.adapters.langgraph._out_answer import CallIds
from agjson.adapters.langgraph._out_carried import is_host_item
from agjson.adapters.langgraph._out_repairs import Repairs
from agjson.transcript import Change, Prepared, prepare
from agjson.transcript.preparing import ChangeCode, StrayPolicy, UnansweredPolicy
from agjson.types import AgMessage, AgTurnRecord, ToolCallBlock, ToolResultBlock

__all__ = ["Answered", "History", "take_history"]

_WORDS: Mapping[ChangeCode, str] = {
    "announcement": "nobody made this call: it only announced a result",
    "app_only": "a call that an app made is none of the model's",
    "candidate": "one candidate of several goes back: the first",
    "misplaced_call": "no model made this call",
    "nested": "another agent said it",
    "partial": "the result is partial",
    "pending": "it waits for people, and goes back with their answers",
    "placeholder": "it only says that the call goes on",
    "repeated_result": "the call has a result already",
    "result_added": "the call has no result; one that says so was added",
    "result_moved": "a result stands right behind the round that made the call",
    "stray_result": "the history has no such call, or nobody can tell which",
    "unanswered": "the call has no result",
}

# Of a message, at the start of a JSON path.
_INDEX = re.compile(r"^\$\[(\d+)\]")


class Answered(NamedTuple):
    """A result of a tool in a history.

    Attributes:
        call: its call.
        id: the id of the call in LangChain.
    """

    call: ToolCallBlock
    id: str


class History:
    """What goes back of a history.

    Attributes:
        messages: the messages that go, results right behind their calls.
    """

    def __init__(self, original: Sequence[AgMessage], prepared: Prepared, repairs: Repairs) -> None:
        self.messages = prepared.messages
        self._paths: dict[int, str] = {}
        self._places: dict[str, str] = {}
        for index, message in enumerate(original):
            self._places.setdefault(message.id, f"$[{index}]")
            self._paths.setdefault(id(message), f"$[{index}]")
            for at, block in enumerate(message.content):
                self._paths.setdefault(id(block), f"$[{index}].content[{at}]")
        self._calls: dict[tuple[int, int], str] = {}
        self._results: dict[tuple[int, int], Answered] = {}
        self._places_of_results: dict[str, tuple[int, int]] = {}
        self._name_calls(prepared, repairs)

    def path(self, message: AgMessage, at: int | None = None) -> str:
        """The JSON path of a message, or of a block, in the history as it was given.

        Args:
            message: the message, as it goes.
            at: the position of a block in it.
        """
        place = self._paths.get(id(message)) or self._places.get(message.id, "$")
        if at is None:
            return place
        return self._paths.get(id(message.content[at]), place)

    def call_id(self, index: int, at: int) -> str:
        """The id in LangChain of the call at a place.

        Args:
            index: the position of the message.
            at: the position of the block.
        """
        return self._calls.get((index, at), "")

    def answered(self, index: int, at: int) -> Answered | None:
        """The call of the result at a place; None where it goes back with none.

        Args:
            index: the position of the message.
            at: the position of the block.
        """
        return self._results.get((index, at))

    def place_of_result(self, call_id: str) -> tuple[int, int] | None:
        """Where the result of a call stands: the positions of its message and its block.

        Args:
            call_id: the id of the call in LangChain.
        """
        return self._places_of_results.get(call_id)

    def _name_calls(self, prepared: Prepared, repairs: Repairs) -> None:
        ids = CallIds()
        pairs = deque(prepared.pairs)
        waiting: dict[int, deque[Answered]] = {}
        for index, message in enumerate(self.messages):
            for at, block in enumerate(message.content):
                if isinstance(block, ToolCallBlock) and message.role == "assistant":
                    id_ = ids.name(block, self.path(message, at), repairs)
                    self._calls[index, at] = id_
                    if pairs and pairs[0][0] is block:
                        call, result = pairs.popleft()
                        waiting.setdefault(id(result), deque()).append(Answered(call, id_))
        for index, message in enumerate(self.messages):
            for at, block in enumerate(message.content):
                if isinstance(block, ToolResultBlock) and waiting.get(id(block)):
                    answered = waiting[id(block)].popleft()
                    self._results[index, at] = answered
                    self._places_of_results[answered.id] = (index, at)


def take_history(
    messages: Sequence[AgMessage],
    repairs: Repairs,
    *,
    turns: Sequence[AgTurnRecord],
    waiting: Collection[str],
    unanswered: UnansweredPolicy,
    stray: StrayPolicy,
) -> History:
    """What of a history goes back, and in which order.

    Args:
        messages: the history.
        repairs: where they are noted.
        turns: the turn records of the thread.
        waiting: ids or keys of calls whose results come from outside.
        unanswered: what becomes of a call without a result.
        stray: what becomes of a result without a call.

    Raises:
        TranscriptError: the history cannot be sent as it is.
    """
    messages = _with_host_items(messages)
    places = _in_state(messages)
    for index in sorted({*range(len(messages))} - {*places}):
        repairs.note("uncommitted", f"$[{index}]", "the graph has put another answer into its state")
    kept = [messages[index] for index in places]
    prepared = prepare(kept, turns=turns, waiting=waiting, unanswered=unanswered, stray=stray)
    for change in prepared.changes:
        if change.code != "notice":
            path = _INDEX.sub(lambda found: f"$[{places[int(found[1])]}]", change.path)
            repairs.note(change.code, path, _told(change))
    return History(messages, prepared, repairs)


def _in_state(messages: Sequence[AgMessage]) -> list[int]:
    """The positions of the messages that a graph has in its state, or would have if it kept answers among messages.

    What a model has said on the way to the answer of a turn is none of the conversation.
    """
    passing = [(message.metadata or {}).get(COMMITTED) is False for message in messages]
    pairs = list(zip(messages, passing, strict=True))
    answered = {message.turn_id for message, is_passing in pairs if message.role == "assistant" and not is_passing}
    return [
        index for index, (message, is_passing) in enumerate(pairs) if not is_passing or message.turn_id not in answered
    ]


def _told(change: Change) -> str:
    return _WORDS.get(change.code, change.code)


def _with_host_items(messages: Sequence[AgMessage]) -> Sequence[AgMessage]:
    """The history with items that no tool message answers as calls that may stay alone.

    What the host did for such an item may stand in a message of the user, as an item of OpenAI's that nothing pairs.
    """
    found = [block for message in messages for block in message.content if isinstance(block, ToolCallBlock)]
    if not any(is_host_item(block) for block in found):
        return messages
    answered = {
        block.tool_call_id for message in messages for block in message.content if isinstance(block, ToolResultBlock)
    }
    changed: list[AgMessage] = []
    for message in messages:
        content = [
            replace(block, provider_executed=True)
            if isinstance(block, ToolCallBlock) and block.tool_call_id not in answered and is_host_item(block)
            else block
            for block in message.content
        ]
        changed.append(replace(message, content=content))
    return changed
