"""The state of a graph: what it holds as messages, and all the rest of it (spec §5 state.*, §12).

LangGraph repeats the whole state after each step. The messages in it are told as messages, once each; what else the
state holds goes out when it has changed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import Any, Protocol

from agjson.adapters.langgraph._door import PlainMessage, is_message, native_message_id, plain_message
from agjson.adapters.langgraph._scope import Namespace, Scope
from agjson.emitter import Emitter
from agjson.jsonable import jsonable
from agjson.types import UNSET, JsonValue, UnsetType

__all__ = ["REMOVE_ALL", "MessageSink", "State"]

REMOVE_ALL = "__remove_all__"
"""The id of a ``RemoveMessage`` that empties the conversation."""

_INTERNAL = frozenset(("__interrupt__", "__metadata__"))


class MessageSink(Protocol):
    """What the state tells of messages to: `MessageRuns`."""

    def history(self, messages: Sequence[PlainMessage], *, scope: Scope) -> None:
        """The state has these messages from before, in this order."""
        ...

    def known(self, ids: Iterable[str]) -> None:
        """These messages are told already."""
        ...

    def commit(self, message: PlainMessage, *, scope: Scope, node: str | None) -> None:
        """The state has this message."""
        ...

    def remove(self, id: str, *, scope: Scope) -> None:
        """The state no longer has this message."""
        ...

    def release(self) -> None:
        """What was held back goes out."""
        ...

    def take_resync(self) -> bool:
        """Whether something was changed that only a snapshot of the conversation can tell; asked once."""
        ...


class State:
    """The state of one invoke's graphs.

    Args:
        out: the emitter.
        runs: takes the messages.
        messages_key: the key under which graphs keep their conversation.
        include_messages: state events repeat the conversation.
        keys: the only keys of the root state to tell; None: all.
        state: the state that the thread has already.
        told: ids of messages that the thread has already.
        tell_frames: what graphs inside the root say of their states goes out as ``ext.langgraph.frame``.
    """

    def __init__(
        self,
        out: Emitter,
        runs: MessageSink,
        *,
        messages_key: str = "messages",
        include_messages: bool = False,
        keys: Collection[str] | None = None,
        state: JsonValue | UnsetType = UNSET,
        told: Container[str] = (),
        tell_frames: bool = True,
    ) -> None:
        self._out = out
        self._runs = runs
        self._root = Scope((), out.turn_id)
        self._key = messages_key
        self._include_messages = include_messages
        self._keys = keys
        self._tell_frames = tell_frames
        self._last: dict[Namespace, JsonValue | UnsetType] = {(): state}
        # The mode `values` is on: it tells the root state, so that updates need not.
        self._has_values = False
        self._has_output = False
        self._has_updates = False
        # Native ids of the calls whose results the state has.
        self.results: set[str] = set()
        # The conversation as the root state had it last: ids in order, and the messages by identity and by id.
        self._ids: list[str] = []
        self._seen: dict[int, Any] = {}
        self._as_data: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        # Messages without ids that are history or told, by what they say, with how many there are of each.
        self._nameless: Counter[str] = Counter()
        # Ids that the thread had before, and those of them that this state has shown.
        self._of_thread = told
        self._shown: set[str] = set()
        # Ids of what graphs inside the root have put into their own states alone, so far.
        self._inner: set[str] = set()

    @property
    def is_told(self) -> bool:
        """Whether anything tells of the state, so that what leaves the conversation is seen there."""
        return self._has_values or self._has_updates

    @property
    def has_updates(self) -> bool:
        """Whether nodes tell what they have returned."""
        return self._has_updates

    @property
    def last_calls(self) -> list[dict[str, Any]]:
        """The tool calls of the last answer in the conversation, as LangChain writes them."""
        return self._calls

    def calls_in(self, given: Any) -> list[dict[str, Any]]:
        """The tool calls of the last answer in a state that a node was given.

        Args:
            given: the state, in any form; its messages may be objects.
        """
        messages, _ = self._split(given)
        return _last_calls(messages or ())

    def output(self) -> None:
        """A node of the root has begun to tell something: a conversation seen from now on is no longer the input."""
        self._has_output = True

    # values

    def values(self, data: Any, scope: Scope) -> None:
        """Take the state of a graph after a step.

        Args:
            data: the state: a dict, a model or dataclass, or what a functional graph returns.
            scope: the graph.
        """
        messages, rest = self._split(data)
        if scope.ns:
            self._frame("values", rest, scope)
            return
        if messages is not None:
            self._conversation(messages, scope, is_history=not self._has_values and not self._has_output)
        elif is_message(data) and (message := plain_message(data)) is not None:
            self._committed(message, scope, None)
            rest = UNSET
        self._has_values = True
        if rest is UNSET:
            return
        plain = self._told(rest, messages)
        if plain != self._last[()]:
            self._last[()] = plain
            self._out.state_snapshot(plain, turn_id=scope.turn_id)

    def _told(self, rest: Any, messages: list[Any] | None) -> JsonValue:
        """What goes out of a state: without what nobody asked for."""
        plain = jsonable(rest)
        if isinstance(plain, dict):
            plain = {name: value for name, value in plain.items() if self._keys is None or name in self._keys}
            if self._include_messages and messages is not None:
                plain[self._key] = [jsonable(plain_message(each) or each) for each in messages]
        return plain

    def _split(self, data: Any) -> tuple[list[Any] | None, Any]:
        """The messages of a state, still the framework's objects, and the rest of it."""
        fields = _fields(data)
        if fields is None:
            return None, data
        rest = {name: value for name, value in fields.items() if name not in _INTERNAL}
        if self._key not in rest:
            return None, rest
        messages = _listed(rest[self._key])
        if not all(_may_be_message(each) for each in messages):
            return None, rest  # something else goes by the name
        del rest[self._key]
        return messages, rest

    def _conversation(self, messages: list[Any], scope: Scope, *, is_history: bool) -> None:
        ids = [id for each in messages if (id := native_message_id(each)) is not None]
        before, self._ids = self._ids, ids
        self._calls = _last_calls(messages)
        if is_history:
            for each in messages:
                self._is_new(each)
            plain = [message for each in messages if (message := plain_message(each)) is not None]
            self._nameless.update(_words(message) for message in plain if not message.get("id"))
            self._shown.update(ids)
            self._runs.history(plain, scope=scope)
            return
        if _is_rewritten(before, ids):
            self._rewrite(messages, scope)
            return
        here = set(ids)
        for id in before:
            if id not in here:
                self._runs.remove(id, scope=scope)
        for each in messages:
            if self._is_new(each) and (message := plain_message(each)) is not None:
                self._committed(message, scope, None)
        self._commit_nameless(messages, scope)
        if self._runs.take_resync():
            self._rewrite(messages, scope)

    def _is_new(self, message: Any) -> bool:
        """Whether the state had not this very message before; from now on it has."""
        named = native_message_id(message)
        if isinstance(message, dict):
            if named is None or self._as_data.get(named) == message:
                return False
            self._as_data[named] = message
            return True
        if id(message) in self._seen:
            return False
        self._seen[id(message)] = message
        return named is not None

    def _commit_nameless(self, messages: list[Any], scope: Scope) -> None:
        """Tell of messages that have no ids: nothing but their number shows which of them are new."""
        found: Counter[str] = Counter()
        for each in messages:
            if native_message_id(each) is None and (message := plain_message(each)) is not None:
                words = _words(message)
                found[words] += 1
                if found[words] > self._nameless[words]:
                    self._nameless[words] += 1
                    self._runs.commit(message, scope=scope, node=None)

    def is_history(self, native: object, message: PlainMessage) -> bool:
        """Tell whether a whole message is one that the state has held already: LangGraph tells it again.

        It does so with messages that had no ids, under new ones.

        Args:
            native: the message as it came.
            message: the same as plain data.
        """
        if id(native) in self._seen:
            return True
        named = message.get("id")
        if not self._nameless or message["type"] == "AIMessageChunk" or not isinstance(named, str):
            return False
        words = _words(message)
        if self._nameless[words] <= 0:
            return False
        self._nameless[words] -= 1
        self._adopt(message, self._root)
        return True

    def _adopt(self, message: PlainMessage, scope: Scope) -> None:
        """Take a message that the thread has told before for history."""
        self._shown.add(str(message["id"]))
        self._runs.history([message], scope=scope)

    def _rewrite(self, messages: list[Any], scope: Scope) -> None:
        """Replace the conversation: it was emptied and filled again, or put in another order."""
        from agjson.adapters.langgraph.messages import messages_from_native

        plain = [message for each in messages if (message := plain_message(each)) is not None]
        for each in messages:
            self._is_new(each)
        self._runs.release()
        self._runs.known(self._ids)
        self._out.messages_snapshot(messages_from_native(plain), turn_id=scope.turn_id)

    # updates

    def updates(self, data: Any, scope: Scope) -> None:
        """Take what nodes of a graph have returned.

        Args:
            data: the updates by node.
            scope: the graph.
        """
        if not isinstance(data, dict):
            self._frame("updates", data, scope)
            return
        self._has_updates = self._has_updates or not data.keys() <= _INTERNAL
        for node, update in data.items():
            if node in _INTERNAL or update is None:
                continue
            for each in update if _is_several(update) else (update,):
                self._update(str(node), each, scope)

    def result(self, node: str, result: Any, scope: Scope) -> None:
        """Take the messages that a task has returned, where no updates tell of them.

        Args:
            node: the task's node.
            result: what it has written.
            scope: its graph.
        """
        if self._has_updates or result is None:
            return
        messages, _ = self._split(result)
        if messages:
            self._commit(node, messages, _is_overwrite(_fields(result), self._key), scope)

    def _update(self, node: str, update: Any, scope: Scope) -> None:
        messages, rest = self._split(update)
        if messages is None and (found := _bare_messages(update)):
            messages, rest = found, {}
        if messages:
            self._commit(node, messages, _is_overwrite(_fields(update), self._key), scope)
        if not isinstance(rest, dict) or rest:
            if scope.ns:
                self._frame("updates", {node: rest}, scope)
            elif not self._has_values:
                self._delta(node, rest, scope)

    def _commit(self, node: str, messages: list[Any], overwritten: bool, scope: Scope) -> None:
        # Where values come as well they say what has gone, and in which order the rest stands.
        follow = not scope.ns and not self._has_values
        removed_all = overwritten
        kept: list[tuple[Any, PlainMessage]] = []
        for each in messages:
            message = plain_message(each)
            if message is None:
                continue
            id = native_message_id(message)
            if message["type"] == "remove":
                if id == REMOVE_ALL:
                    removed_all, kept = True, []
                elif id is not None and (follow or (id in self._inner and id not in self._ids)):
                    # What a graph inside takes out of its state, the root may well keep.
                    self._runs.remove(id, scope=scope)
            elif id is not None or follow:
                kept.append((each, message))
        if removed_all and follow:
            self._ids = [id for _, message in kept if (id := native_message_id(message)) is not None]
            self._rewrite([each for each, _ in kept], scope)
            return
        if removed_all:
            return  # what comes after it is mostly told already; the values say the rest
        ids = {id for _, message in kept if (id := native_message_id(message)) is not None}
        if scope.ns:
            self._inner |= ids
        else:
            self._inner -= ids
        for each, message in kept:
            self._is_new(each)
            self._committed(message, scope, node)

    def _committed(self, message: PlainMessage, scope: Scope, node: str | None) -> None:
        call_id = message.get("tool_call_id")
        if isinstance(call_id, str):
            self.results.add(call_id)
        named = message.get("id")
        if isinstance(named, str) and named in self._of_thread and named not in self._shown:
            # A branch had ended when the turn before paused; its output becomes part of the state now.
            self._adopt(message, scope)
            return
        self._runs.commit(message, scope=scope, node=node)

    def _delta(self, node: str, rest: Any, scope: Scope) -> None:
        plain = jsonable(rest)
        if not isinstance(plain, dict):
            self._out.ext("ext.langgraph.frame", {"kind": "updates", "frame": {node: plain}}, turn_id=scope.turn_id)
            return
        patch = {name: value for name, value in plain.items() if self._keys is None or name in self._keys}
        if patch:
            self._out.state_delta({node: patch}, turn_id=scope.turn_id)

    # Graphs inside the root

    def _frame(self, kind: str, rest: Any, scope: Scope) -> None:
        """What a graph inside the root says of its own state; the state of the root it must not touch."""
        if not self._tell_frames:
            return
        plain = jsonable(rest)
        if plain in (None, {}):
            return
        if kind == "values":
            if self._last.get(scope.ns, UNSET) == plain:
                return
            self._last[scope.ns] = plain
        told: dict[str, JsonValue] = {"kind": kind, "ns": list(scope.ns), "frame": plain}
        self._out.ext("ext.langgraph.frame", told, turn_id=scope.turn_id)


def _fields(data: Any) -> dict[str, Any] | None:
    """The keys of a state, which may be a dict, a model or a dataclass."""
    if isinstance(data, dict):
        return data
    if is_message(data) or isinstance(data, type):
        return None
    if hasattr(type(data), "model_fields"):
        return dict(vars(data))
    if dataclasses.is_dataclass(data):
        return {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    return None


def _listed(value: Any) -> list[Any]:
    """The messages that a state or an update holds under its key: one or several, plain or as an overwrite."""
    if _is_wrapped(value):
        value = value["__overwrite__"] if isinstance(value, dict) else value.value
    if isinstance(value, (list, tuple)) and not (len(value) == 2 and _is_pair(value)):
        return list(value)
    return [] if value is None else [value]


def _may_be_message(value: Any) -> bool:
    return is_message(value) or plain_message(value) is not None


def _words(message: PlainMessage) -> str:
    """What a message says, to compare messages that have no ids."""
    return repr((message["type"], message.get("content"), message.get("tool_calls") or [], message.get("tool_call_id")))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


def _is_wrapped(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"__overwrite__"}
    return type(value).__name__ == "Overwrite" and hasattr(value, "value")


def _is_overwrite(fields: dict[str, Any] | None, key: str) -> bool:
    return fields is not None and _is_wrapped(fields.get(key))


def _is_several(update: Any) -> bool:
    """Whether a node that ran more than once in a step has returned several updates."""
    return (
        isinstance(update, list)
        and bool(update)
        and all(isinstance(each, dict) for each in update)
        and not any(is_message(each) for each in update)
    )


def _bare_messages(update: Any) -> list[Any]:
    """The messages that a task of a functional graph has returned as they are."""
    if is_message(update):
        return [update]
    if isinstance(update, (list, tuple)) and update and all(is_message(each) for each in update):
        return list(update)
    return []


def _last_calls(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """The tool calls of the last answer among messages."""
    for each in _backwards(messages):
        native = each if isinstance(each, dict) else getattr(each, "__dict__", {})
        if native.get("type") in ("ai", "AIMessageChunk", "assistant"):
            calls = jsonable(native.get("tool_calls"))
            return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return []


def _backwards(messages: Iterable[Any]) -> Iterator[Any]:
    return reversed(messages if isinstance(messages, (list, tuple)) else list(messages))


def _is_rewritten(before: list[str], now: list[str]) -> bool:
    """Whether removing some messages and adding others at the end does not make one conversation of the other."""
    here = set(now)
    kept = [id for id in before if id in here]
    return now[: len(kept)] != kept
