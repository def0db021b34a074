"""The shapes in which LangGraph hands out its stream, read as one: v2 parts, v1 tuples, protocol events, remote events.

Nothing is converted here: the data of a part stay the framework's objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agjson.adapters.langgraph._scope import Namespace

__all__ = ["KNOWN_MODES", "METHODS", "SERVER", "Part", "has_message", "read_part", "unknown_members"]

KNOWN_MODES = frozenset(("values", "updates", "messages", "custom", "checkpoints", "tasks", "debug", "tools"))
"""The stream modes: the seven of ``StreamMode``, and ``tools``, which works beside them."""

METHODS: dict[str, str] = {mode: mode for mode in sorted(KNOWN_MODES)}
"""The methods of protocol events (``stream_events(version="v3")``) that say what a mode says, and that mode."""

SERVER = "server"
"""The mode of what a LangGraph server says of the run itself."""

# Names on the wire of a LangGraph server: of a mode, and of what it says of the run.
_REMOTE = {"messages-tuple": "messages"}
_OF_RUN = frozenset(("metadata", "error", "end"))

_PART = frozenset(("type", "ns", "data", "interrupts"))
_EVENT = frozenset(("type", "method", "params", "seq", "event_id"))
_PARAMS = frozenset(("namespace", "timestamp", "data", "interrupts", "node"))
# What is said in the modes whose data have members that are known.
_PAYLOADS = {
    "checkpoints": frozenset(("config", "metadata", "values", "next", "parent_config", "tasks")),
    "tasks": frozenset(("id", "name", "input", "triggers", "metadata", "error", "interrupts", "result")),
    "tools": frozenset(("event", "tool_call_id", "tool_name", "input", "delta", "output", "message")),
}


class Part(NamedTuple):
    """One element of the stream.

    Attributes:
        mode: the stream mode that told it.
        ns: the namespace of the graph that told it.
        data: what it says, as the framework gave it.
        interrupts: of ``values`` parts: what the graph waits for.
    """

    mode: str
    ns: Namespace
    data: Any
    interrupts: Any = ()


def read_part(native: Any, stream_mode: str | None = None) -> Part | None:
    """Read an element of a stream.

    Args:
        native: a v2 part ``{"type", "ns", "data"}``; a v1 tuple, or the list that JSON makes of it: ``(ns, mode,
            data)``, ``(mode, data)``, ``(ns, data)``; a protocol event; ``{"event", "data"}`` of a LangGraph server;
            or the bare data of a stream of one mode.
        stream_mode: the mode of a stream whose elements do not name one. Absent, pairs of message and metadata and
            frames of interrupts are still recognised.

    Returns:
        The part; None for anything else.
    """
    kind = type(native)
    if kind is dict:
        return _of_dict(native, stream_mode)
    if isinstance(native, (tuple, list)):
        return _of_sequence(native, stream_mode)
    if _is_server_event(native):
        return _of_server(native.event, native.data)
    return None if stream_mode is None else Part(stream_mode, (), native)


def _of_dict(native: dict[str, Any], stream_mode: str | None) -> Part | None:
    mode = native.get("type")
    if "data" in native and isinstance(mode, str):
        ns = _namespace(native.get("ns"))
        if mode in KNOWN_MODES and ns is not None:
            return Part(mode, ns, native["data"], native.get("interrupts") or ())
    if mode == "event" and "method" in native and isinstance(params := native.get("params"), dict):
        return _of_protocol(native["method"], params)
    if isinstance(native.get("event"), str) and "data" in native and native.keys() <= {"event", "data", "id"}:
        return _of_server(native["event"], native["data"])
    if stream_mode is not None:
        return Part(stream_mode, (), native)
    return Part("updates", (), native) if native.keys() == {"__interrupt__"} else None


def unknown_members(native: Any, part: Part) -> dict[str, Any]:
    """The members of an element of a stream that no version has had yet; those of its data among them.

    Args:
        native: the element.
        part: what `read_part` has made of it.
    """
    found: dict[str, Any] = {}
    if isinstance(native, dict):
        if native.get("type") == "event" and isinstance(params := native.get("params"), dict):
            found = {name: native[name] for name in native.keys() - _EVENT}
            found.update((name, params[name]) for name in params.keys() - _PARAMS)
        elif native.get("type") == part.mode and "ns" in native:
            found = {name: native[name] for name in native.keys() - _PART}
    known = _PAYLOADS.get(part.mode)
    if known is not None and isinstance(part.data, dict):
        found.update((name, part.data[name]) for name in part.data.keys() - known)
    return found


def _of_protocol(method: Any, params: dict[str, Any]) -> Part | None:
    mode, ns = METHODS.get(method) if isinstance(method, str) else None, _namespace(params.get("namespace"))
    if mode is None or ns is None:
        return None
    return Part(mode, ns, params.get("data"), params.get("interrupts") or ())


def _of_server(event: str, data: Any) -> Part | None:
    """An event of a LangGraph server, whose name carries the namespace: ``updates|sub:<task id>``."""
    mode, *ns = event.split("|")
    mode = _REMOTE.get(mode, mode)
    if mode in _OF_RUN:
        return Part(SERVER, tuple(ns), {"event": mode, "data": data})
    return Part(mode, tuple(ns), data) if mode in KNOWN_MODES else None


def _is_server_event(native: Any) -> bool:
    return isinstance(getattr(native, "event", None), str) and hasattr(native, "data")


def _of_sequence(native: Any, stream_mode: str | None) -> Part | None:
    size = len(native)
    if _is_server_event(native):  # a named tuple of the client for LangGraph servers
        return _of_server(native.event, native.data)
    if size == 3 and isinstance(native[1], str) and native[1] in KNOWN_MODES:
        ns = _namespace(native[0])
        return None if ns is None else Part(native[1], ns, native[2])
    if size == 2:
        first, second = native
        if isinstance(first, str) and first in KNOWN_MODES:
            return Part(first, (), second)
        if has_message(native):
            return Part("messages", (), native)
        ns = _namespace(first)
        if ns is not None and isinstance(first, (tuple, list)):
            inner = read_part(second, stream_mode)
            return None if inner is None else inner._replace(ns=ns)
    return None if stream_mode is None else Part(stream_mode, (), native)


def has_message(data: Any) -> bool:
    """Tell whether something is what the mode ``messages`` tells: a message, and metadata about its run."""
    if not isinstance(data, (tuple, list)) or len(data) != 2 or not isinstance(data[1], dict):
        return False
    message = data[0]
    if isinstance(message, dict):
        return "content" in message or message.get("lc") == 1
    return hasattr(message, "content") and hasattr(message, "type")


def _namespace(value: Any) -> Namespace | None:
    if value is None:
        return ()
    if not isinstance(value, (tuple, list)) or not all(isinstance(each, str) for each in value):
        return None
    return tuple(value)
