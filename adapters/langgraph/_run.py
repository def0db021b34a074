"""One message on its way into the stream, and what is known of it (spec §5 partitioning)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from agjson.adapters.langgraph._chunks import MessageWriter
from agjson.adapters.langgraph._prints import Print
from agjson.adapters.langgraph._scope import Scope
from agjson.types import AgRole, JsonValue

__all__ = [
    "MEMBERS",
    "MESSAGE_ID",
    "RESULT_MEMBERS",
    "UNSTREAMED",
    "USAGE",
    "Run",
    "Told",
    "WaitingResult",
    "attribution",
    "calls_of",
    "id_of",
    "is_plain",
    "role_of",
    "says_something",
]

Native: TypeAlias = dict[str, Any]

MESSAGE_ID = "langgraph/messageId"
"""Metadata of a message: its native id, where it is not the id that the message was opened under."""

USAGE = "langgraph/usageMetadata"
"""Metadata of a message: its ``usage_metadata``, whole."""

# ``_meta`` of `message.start`: the node that speaks, the graph if it is not the root, the user's tags of the model.
_NODE, _NAMESPACE, _TAGS = "langgraph/node", "langgraph/ns", "langgraph/tags"

UNSTREAMED = frozenset(("nostream", "langsmith:nostream"))
"""Tags of a call of a model whose tokens nobody is to see."""

MEMBERS = frozenset(
    (
        "type",
        "content",
        "id",
        "name",
        "role",
        "example",
        "additional_kwargs",
        "response_metadata",
        "usage_metadata",
        "tool_calls",
        "invalid_tool_calls",
        "tool_call_chunks",
        "chunk_position",
    )
)
"""The members of a message, but for one of role ``tool``; of a chunk too."""

RESULT_MEMBERS = MEMBERS | {"tool_call_id", "artifact", "status"}
"""The members of a message of role ``tool``."""

_ROLES: Mapping[str, AgRole] = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "human": "user",
    "system": "system",
    "function": "tool",
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "tool": "tool",
}


# A chunk with more of them has some that are not known.
_MOST_MEMBERS = 11


class Run:
    """One message on its way out.

    Attributes:
        scope: where it comes from.
        meta: LangGraph's metadata of it.
        ids: the native ids that it has had, in order.
        pending: what it has said while it waited for its turn.
        writer: what writes it, from the moment it is open.
        ended: nothing more of it will come.
        closed: it is told to its end.
        streamed: it came in chunks, or from a model that does not stream.
        commit: the message that a node has returned for it while it waited.
        calls: the ids of calls in what is pending.
        committed: a node has put it into the state.
        marked: it is told that none has.
        emitted: its id in the stream; empty until it is open.
        metadata: its ``response_metadata`` so far.
        usage: its ``usage_metadata`` so far.
        name: its ``name``, if it has one.
        unknown: members that no version has had yet.
    """

    __slots__ = (
        "calls",
        "closed",
        "commit",
        "committed",
        "emitted",
        "ended",
        "ids",
        "marked",
        "meta",
        "metadata",
        "name",
        "pending",
        "scope",
        "streamed",
        "unknown",
        "usage",
        "writer",
    )

    def __init__(self, scope: Scope, meta: Mapping[str, Any], *, streamed: bool) -> None:
        self.scope = scope
        self.meta = meta
        self.streamed = streamed
        self.ids: list[str] = []
        self.pending: list[Mapping[str, Any]] = []
        self.writer: MessageWriter | None = None
        self.emitted = ""
        self.ended = self.closed = self.committed = self.marked = False
        self.commit: Mapping[str, Any] | None = None
        self.calls: set[str] = set()
        self.metadata: Native = {}
        self.usage: Native | None = None
        self.name: str | None = None
        self.unknown: Native = {}

    @property
    def native_id(self) -> str | None:
        """The id that LangChain gives the whole message: the first of the provider's own, else that of the run."""
        for id in self.ids:
            if not id.startswith("lc_"):
                return id
        return next((id for id in self.ids if id.startswith("lc_run-")), self.ids[0] if self.ids else None)

    def is_before(self, other: Run) -> bool:
        """Tell whether it was said in an earlier step of the same graph, which is over when a later one has begun.

        Args:
            other: the message that may be of a later one.
        """
        mine, later = self.meta.get("langgraph_step"), other.meta.get("langgraph_step")
        return self.scope.ns == other.scope.ns and type(mine) is int and type(later) is int and mine < later

    def is_of(self, task_id: str) -> bool:
        """Tell whether it was said inside a task.

        Args:
            task_id: the task.
        """
        place = self.meta.get("langgraph_checkpoint_ns")
        return isinstance(place, str) and any(part.endswith(f":{task_id}") for part in place.split("|"))


class WaitingResult:
    """A tool message that waits until its call is told."""

    __slots__ = ("message", "scope")

    def __init__(self, message: Mapping[str, Any], scope: Scope) -> None:
        self.message = message
        self.scope = scope


class Told:
    """A message that is told to its end.

    Attributes:
        emitted: its id as emitted; empty for one of the thread's history.
        turn_id: its turn.
        print: what it says.
    """

    __slots__ = ("emitted", "print", "turn_id")

    def __init__(self, emitted: str, turn_id: str, print: Print) -> None:
        self.emitted = emitted
        self.turn_id = turn_id
        self.print = print


def role_of(message: Mapping[str, Any]) -> AgRole:
    """Who speaks in a message.

    Args:
        message: a message as plain data.
    """
    kind = message.get("type")
    return _ROLES.get(str(message.get("role") if kind == "chat" else kind), "assistant")


def attribution(meta: Mapping[str, Any], scope: Scope) -> dict[str, JsonValue]:
    """Where a message comes from, for ``_meta`` of its start.

    Args:
        meta: LangGraph's metadata of it.
        scope: the graph.
    """
    told: dict[str, JsonValue] = {}
    node, tags = meta.get("langgraph_node"), meta.get("tags")
    if isinstance(node, str):
        told[_NODE] = node
    if scope.ns:
        told[_NAMESPACE] = list(scope.ns)
    if isinstance(tags, list) and tags:
        told[_TAGS] = tags
    return told


def id_of(message: Mapping[str, Any]) -> str | None:
    """The native id of a message; None where it has none.

    Args:
        message: a message as plain data.
    """
    id = message.get("id")
    return id if isinstance(id, str) and id else None


def calls_of(message: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the calls that a chunk or message names.

    Args:
        message: the chunk or message as plain data.
    """
    for name in ("tool_call_chunks", "tool_calls", "invalid_tool_calls"):
        listed = message.get(name)
        for call in listed if isinstance(listed, list) else ():
            if isinstance(call, dict) and isinstance(id := call.get("id"), str):
                yield id


def says_something(chunk: Mapping[str, Any], *, content: bool = False) -> bool:
    """Whether a chunk says anything: an empty one begins no message.

    Args:
        chunk: the chunk as plain data.
        content: only what a reader could see counts.
    """
    said = chunk.get("content")
    parts = said if isinstance(said, list) else [said]
    if any(part and not (isinstance(part, dict) and part.get("text") == "") for part in parts):
        return True
    names = ["tool_call_chunks", "tool_calls", "invalid_tool_calls", "additional_kwargs"]
    if not content:
        names += ["id", "usage_metadata", "response_metadata"]
    return any(chunk.get(name) for name in names)


def is_plain(message: Mapping[str, Any], run: Run) -> bool:
    """Whether a chunk says nothing but content, fragments of calls and what stands beside them, as nearly all do.

    Args:
        message: the chunk as plain data.
        run: what it belongs to.
    """
    # A subscript takes half the time of a `get`.
    try:
        return (
            message["type"] == "AIMessageChunk"
            and message["usage_metadata"] is None
            and message["chunk_position"] is None
            and len(message["response_metadata"]) < 2
            and len(message) <= _MOST_MEMBERS
            and message["id"] in run.ids
            and "content" in message
            and "tool_call_chunks" in message
            and "additional_kwargs" in message
        )
    except (KeyError, TypeError):
        return False
