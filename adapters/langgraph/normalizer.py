"""The normalizer of LangGraph: the stream of a graph or agent in, AgJSON events out (spec §8.0, §12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from agjson.adapters.langgraph._asks import Asks, SeenInterrupt
from agjson.adapters.langgraph._door import Door, PlainMessage
from agjson.adapters.langgraph._handles import CHECKPOINT_ID, CHECKPOINT_NS, THREAD_ID
from agjson.adapters.langgraph._parts import SERVER, Part, read_part, unknown_members
from agjson.adapters.langgraph._protocol import ProtocolMessages
from agjson.adapters.langgraph._runs import MessageRuns
from agjson.adapters.langgraph._scope import Namespace
from agjson.adapters.langgraph._state import REMOVE_ALL, State
from agjson.adapters.langgraph._tasks import Failed, Task, Tasks, error_text, told_checkpoint, told_task
from agjson.adapters.langgraph._turns import Turns
from agjson.adapters.langgraph.facts import read_verdict
from agjson.emitter import EmitterSettings
from agjson.failures import Failure, describe_failure
from agjson.jsonable import jsonable
from agjson.known_ids import KnownIds
from agjson.normalizer import HostAbort, HostEnd, HostError, Normalizer
from agjson.types import UNSET, AgMeta, AgStreamEvent, AgUsage, JsonValue

__all__ = ["TELLABLE", "TOLD", "LangGraphNormalizer"]

TELLABLE = frozenset(("checkpoints", "custom", "debug", "frames", "tasks"))
"""What can be told as ``ext.langgraph.*``: four stream modes, and with ``frames`` what graphs inside the root say of
their own states and what tools put out as they run."""

TOLD = frozenset(("custom", "debug", "frames"))
"""What is told by default; tasks are steps, and checkpoints go into asks, without it."""

_CODE = re.compile(r"/errors/([A-Z][A-Z_]+[A-Z])")
_CODES = {
    "GraphRecursionError": "GRAPH_RECURSION_LIMIT",
    "NodeTimeoutError": "NODE_TIMEOUT",
}
_RETRIABLE = frozenset(("NodeTimeoutError",))


class LangGraphNormalizer(Normalizer):
    """Normalizes one invoke of a graph, of LangGraph or of LangChain's ``create_agent`` (spec §8.0).

    It takes the elements of ``stream`` and ``astream`` in every shape: v2 parts, v1 tuples, what a remote graph hands
    out, protocol events of v3; as objects or as plain data. The best is ``stream_mode=["messages", "updates", "values",
    "tasks", "custom", "checkpoints", "tools"], subgraphs=True, version="v2"``; with fewer modes less is told. The
    native stream has no end of its own: the driver pushes a `HostEnd`, whose ``detail`` may be the graph's state
    (``get_state``), or a mapping with its ``next`` and ``config``.

    Args:
        turn_id: the turn of this invoke.
        thread_id: the conversation.
        stream_mode: the mode of a stream that does not name one, as v1 leaves it out where only one was asked for.
        tell: which parts go out as ``ext.langgraph.*``, of `TELLABLE`.
        messages_key: the key under which the graph's state has its conversation.
        include_messages_in_state: ``state.snapshot`` repeats the conversation, which is told as messages anyway.
        state_keys: the only keys of the state to tell, such as those of the output schema; None: all.
        drop_uncommitted: messages that a node streamed but did not put into the state are removed; by default they are
            kept, with ``langgraph/committed`` false in their metadata.
        nested_turns: named agents inside the graph get turns of their own.
        denied: tool calls that a person has refused, by id, with the reason: the result that the framework makes of a
            refusal looks like that of a failure.
        resumable: the graph has a checkpointer, so that its asks can be answered.
        **settings: as for `Normalizer`.

    Raises:
        ValueError: `tell` names something that cannot be told.
    """

    vendor: ClassVar[str] = "langgraph"

    def __init__(
        self,
        turn_id: str,
        thread_id: str,
        *,
        stream_mode: str | None = None,
        tell: Collection[str] = TOLD,
        messages_key: str = "messages",
        include_messages_in_state: bool = False,
        state_keys: Collection[str] | None = None,
        drop_uncommitted: bool = False,
        nested_turns: bool = True,
        denied: Mapping[str, str] | None = None,
        resumable: bool = True,
        **settings: Unpack[EmitterSettings],
    ) -> None:
        super().__init__(turn_id, thread_id, **settings)
        if unknown := sorted({*tell} - TELLABLE):
            raise ValueError(f"tell: {', '.join(unknown)} is none of {', '.join(sorted(TELLABLE))}")
        self._stream_mode = stream_mode
        self._tell = frozenset(tell)
        known = KnownIds.of_any_kind(settings.get("known_ids", ()))
        # Tool calls of earlier turns, whose results and reviews may come in this one.
        self._earlier_calls = known.calls
        self._renamed_calls = settings.get("call_ids") or {}
        out = self.out
        self._door = Door()
        self._protocol = ProtocolMessages()
        self._tasks = Tasks()
        self._runs = MessageRuns(out, denied=denied or {}, drop_uncommitted=drop_uncommitted)
        self._turns = Turns(
            out,
            nested=nested_turns,
            spawned_by=self._tasks.spawned_by,
            has_call=self._has_call,
            usage=self._runs.usage,
            finish_reason=self._runs.finish_reason,
        )
        self._state = State(
            out,
            self._runs,
            messages_key=messages_key,
            include_messages=include_messages_in_state,
            keys=state_keys,
            state=settings.get("state", UNSET),
            told=known.messages,
            tell_frames="frames" in self._tell,
        )
        self._asks = Asks(out, self._tasks, self._turn_of, self._gated_calls, self._has_call, resumable=resumable)
        # Where the root graph stands: the last checkpoint told, and what would run next; None: nothing has told it.
        self._handles: AgMeta = {}
        self._next: list[str] | None = None
        self._has_tasks = False
        self._failed_ones: list[Failed] = []

    # The door

    def _plain(self, native: object) -> tuple[object, Part | None]:
        """Find out what a native event is; its data are converted where they are used, most of them never."""
        return native, read_part(native, self._stream_mode)

    def push(self, native: object) -> list[AgStreamEvent]:
        """Take one native event, or a sentinel of the driver; as `Normalizer.push`.

        Args:
            native: an element of the stream, or a sentinel.

        Returns:
            The events that it makes, perhaps none.
        """
        if type(native) is dict and not self._flushed:
            # The short way for tokens.
            try:
                if (
                    len(native) == 3
                    and native.get("type") == "messages"
                    and type(ns := native.get("ns")) is tuple
                    and self.out.is_open()
                    and self._on_message(ns, native.get("data"))
                ):
                    return self.out.drain()
            except Exception as error:
                self._failed(native, error)
                return self.out.drain()
        return super().push(native)

    def _on(self, native: tuple[object, Part | None]) -> None:
        whole, part = native
        if not self.out.is_open():
            self.unparsed(whole, "an event after the end of the turn")
            return
        self.out.turn_start()
        if part is None:
            self.unparsed(whole, "no part of a stream that is known; a stream of one mode needs its stream_mode")
        elif not _HANDLERS[part.mode](self, part):
            self.unparsed(whole, f"no {part.mode} that is known")
        elif more := unknown_members(whole, part):
            told: dict[str, JsonValue] = {"kind": f"{part.mode}.members", "ns": list(part.ns), "frame": jsonable(more)}
            self.out.ext("ext.langgraph.frame", told, turn_id=self._turn_of(part.ns))

    # The modes; each returns False for data that are none of its own

    def _on_message(self, ns: Namespace, data: Any) -> bool:
        read = self._door.message(data) or self._of_protocol(data)
        if read is None:
            return False
        message, meta, key = read
        scope = self._turns.scope(ns, meta)
        self._state.output()
        kind = message["type"]
        if kind == "remove":
            # The state tells it too, and when. Alone, this is all there is to know.
            id = message.get("id")
            if not self._state.is_told and isinstance(id, str) and id != REMOVE_ALL:
                self._runs.remove(id, scope=scope)
            return self._state.is_told or id != REMOVE_ALL
        if kind == "tool":
            self._tasks.raised.pop(message.get("tool_call_id") or "", None)
        if not self._state.is_history(data[0], message):
            self._runs.take(message, meta, key=key, scope=scope)
        return True

    def _of_protocol(self, data: Any) -> tuple[PlainMessage, dict[str, Any], Hashable | None] | None:
        chunk = self._protocol.chunk(data)
        return None if chunk is None else (chunk[0], self._door.meta(chunk[1]), chunk[2])

    def _on_messages(self, part: Part) -> bool:
        return self._on_message(part.ns, part.data)

    def _on_values(self, part: Part) -> bool:
        interrupts = part.interrupts
        if isinstance(part.data, dict):
            interrupts = interrupts or part.data.get("__interrupt__")
        if interrupts:
            self._asks.see(interrupts, part.ns)
        self._tell_failed()
        self._state.values(part.data, self._turns.scope(part.ns))
        return True

    def _on_updates(self, part: Part) -> bool:
        if isinstance(part.data, dict) and "__interrupt__" in part.data:
            interrupts = part.data["__interrupt__"]
            if interrupts:
                self._asks.see(interrupts, part.ns)
            else:
                self._asks.stopped = True
        self._state.updates(part.data, self._turns.scope(part.ns))
        self._steps_done(part.ns, self._tasks.take_cached(part.ns, part.data))
        return True

    def _on_tasks(self, part: Part) -> bool:
        data = part.data
        if not isinstance(data, dict) or not isinstance(data.get("id"), str):
            return False
        if "tasks" in self._tell:
            self.out.ext("ext.langgraph.task", told_task(part.ns, data), turn_id=self._turn_of(part.ns))
        self._has_tasks = True
        self._task(part.ns, data)
        return True

    def _task(self, ns: Namespace, data: dict[str, Any]) -> None:
        if "result" in data or "error" in data or "interrupts" in data:
            self._task_ends(self._tasks.end(ns, data), data)
            return
        task = self._tasks.start(ns, data)
        metadata = data.get("metadata")
        scope = self._turns.scope(ns, metadata if isinstance(metadata, dict) else None)
        if self._turns.owns(ns):
            self.out.step_start(task.id, step_name=task.name, turn_id=scope.turn_id)

    def _task_ends(self, task: Task, data: dict[str, Any]) -> None:
        scope = self._turns.scope(task.ns)
        interrupts, error = data.get("interrupts"), data.get("error")
        if interrupts:
            self._asks.see(interrupts, task.ns, task)
        message = None if error is None else error_text(error)
        self._state.result(task.name, data.get("result"), scope)
        self._runs.end_task(task.id, task.name, scope=scope)
        self._turns.end_task(task.ns, task.name, task.id, error=message, waits=bool(interrupts))
        if message is not None and not any(
            each.error is error or each.message == message for each in self._failed_ones
        ):
            # The graphs around tell it again.
            self._failed_ones.append(Failed(error, message, scope.turn_id, task.name))
        self._steps_done(task.ns, [task, *self._tasks.without_end(task.ns, task.name)])

    def _steps_done(self, ns: Namespace, tasks: Sequence[Task]) -> None:
        if self._turns.owns(ns):
            for task in tasks:
                self.out.step_done(task.id, step_name=task.name, turn_id=self._turn_of(ns))

    def _on_checkpoints(self, part: Part) -> bool:
        data = part.data
        if not isinstance(data, dict):
            return False
        if not part.ns:
            self._stand(data.get("config"), data.get("next"))
        if "checkpoints" in self._tell:
            self.out.ext("ext.langgraph.checkpoint", told_checkpoint(part.ns, data), turn_id=self._turn_of(part.ns))
        return True

    def _on_debug(self, part: Part) -> bool:
        data = part.data
        if not isinstance(data, dict) or not isinstance(payload := data.get("payload"), dict):
            return False
        if "debug" in self._tell:
            inner = told_checkpoint if data.get("type") == "checkpoint" else told_task
            told: dict[str, JsonValue] = {
                **{name: jsonable(value) for name, value in data.items() if name != "payload"},
                "payload": inner(part.ns, payload),
            }
            self.out.ext("ext.langgraph.debug", told, turn_id=self._turn_of(part.ns))
        if data.get("type") == "checkpoint":
            if not part.ns:
                self._stand(payload.get("config"), payload.get("next"))
        elif not self._has_tasks and isinstance(payload.get("id"), str):
            self._task(part.ns, payload)
        return True

    def _on_custom(self, part: Part) -> bool:
        if (verdict := read_verdict(part.data, self._turn_of(part.ns))) is not None:
            self.out.emit(verdict)
            return True
        if "custom" in self._tell:
            meta: AgMeta | None = {"langgraph/ns": list(part.ns)} if part.ns else None
            self.out.ext("ext.langgraph.custom", jsonable(part.data), turn_id=self._turn_of(part.ns), meta=meta)
        return True

    def _on_tools(self, part: Part) -> bool:
        data = part.data
        if not isinstance(data, dict) or not isinstance(call_id := data.get("tool_call_id"), str):
            return False
        kind = data.get("event")
        if kind == "tool-started":
            self._tasks.tool_started(part.ns, call_id)
        elif kind == "tool-finished":
            # The message that follows is the result: middleware may have changed it, and this may lack its id.
            self._tasks.tool_ended(part.ns, call_id)
        elif kind == "tool-error":
            self._tasks.tool_ended(part.ns, call_id)
            self._tasks.raised[call_id] = (error_text(data.get("message")), self._turn_of(part.ns))
        elif kind == "tool-output-delta":
            if "frames" in self._tell:
                told: dict[str, JsonValue] = {"kind": "tool-output-delta", "ns": list(part.ns), "frame": jsonable(data)}
                self.out.ext("ext.langgraph.frame", told, turn_id=self._turn_of(part.ns))
        else:
            return False
        return True

    def _on_server(self, part: Part) -> bool:
        event, data = part.data["event"], jsonable(part.data["data"])
        if event == "error":
            named = data if isinstance(data, dict) else {"message": data}
            message, code = named.get("message"), named.get("error")
            told = HostError(
                message if isinstance(message, str) else "the run failed", code if isinstance(code, str) else None
            )
            self._on_error(told)
        elif event != "end":
            self.out.ext("ext.langgraph.frame", {"kind": event, "frame": data}, turn_id=self.turn_id)
        return True

    # What other parts ask

    def _turn_of(self, ns: Namespace) -> str:
        return self._turns.scope(ns).turn_id

    def _has_call(self, call_id: str) -> bool:
        return self.out.has_call(call_id) or call_id in self._earlier_calls or call_id in self._renamed_calls

    def _gated_calls(self, seen: SeenInterrupt) -> Sequence[dict[str, Any]]:
        given = None if seen.task is None else seen.task.input
        return self._state.calls_in(given) or self._state.last_calls

    def _stand(self, config: Any, upcoming: Any) -> None:
        """Remember where the root graph stands."""
        where = config.get("configurable") if isinstance(config, Mapping) else None
        if isinstance(where, Mapping):
            for name, key in _PLACES.items():
                if isinstance(value := where.get(name), str):
                    self._handles[key] = value
        if isinstance(upcoming, (list, tuple)):
            self._next = [str(each) for each in upcoming]

    # Ends

    def _on_end(self, end: HostEnd) -> None:
        if not self.out.is_open():
            return
        self._read_detail(end.detail)
        self._settle()
        if self._state.is_told and not self._has_tasks:
            self._runs.end_rest(inside=self._state.has_updates)
        usage = end.usage or self._runs.usage(self.turn_id)
        if end.outcome is not None or end.finish_reason is not None:
            self._turns.close()
            super()._on_end(replace(end, usage=usage))
            return
        stopped = bool(self._next) or (self._asks.stopped and self._next is None)
        if not self._asks and stopped:
            self._asks.tell_stop(self._handles, self._next or ())
        self._turns.close()
        if self._asks or stopped:
            self.out.turn_paused(usage=usage, turn_id=self.turn_id)
        else:
            reason = self._runs.finish_reason(self.turn_id) or "stop"
            self.out.turn_done(finish_reason=reason, usage=usage, turn_id=self.turn_id)

    def _read_detail(self, detail: object) -> None:
        """Take what the driver knows of the graph's state at the end."""
        if isinstance(detail, Mapping):
            known: Mapping[str, Any] = detail
        elif hasattr(detail, "next") and hasattr(detail, "config"):
            known = {name: getattr(detail, name, None) for name in ("next", "config", "interrupts")}
        else:
            return
        self._stand(known.get("config") or {"configurable": known.get("checkpoint")}, known.get("next"))
        if known.get("interrupts"):
            self._asks.see(known["interrupts"], ())

    def _settle(self) -> None:
        """Let out what was held back until the end."""
        self._runs.release()
        self._tell_failed()
        if self._asks:
            self._asks.tell(self._handles)

    def _tell_failed(self) -> None:
        """Tell of tasks that failed without the graph failing with them."""
        failed, self._failed_ones = self._failed_ones, []
        for each in failed:
            code = self._describe(each.error).code if isinstance(each.error, BaseException) else None
            turn_id = each.turn_id if self.out.is_open(each.turn_id) else self.turn_id
            self.out.error(each.message, code=code, turn_id=turn_id, meta={"langgraph/node": each.name})

    def _on_error(self, error: HostError) -> None:
        raised = error.error
        names = {cls.__name__ for cls in type(raised).__mro__}
        if "GraphInterrupt" in names and isinstance(raised, BaseException):
            self._asks.see(raised.args[0] if raised.args else (), ())
            self._on_end(HostEnd(usage=error.usage, detail=error.detail))
            return
        if "GraphDrained" in names:
            self._on_abort(HostAbort("drained"))
            return
        if self.out.is_open():
            self._read_detail(error.detail)
            text = error_text(raised)
            self._failed_ones = [
                each for each in self._failed_ones if each.error is not raised and each.message != text
            ]
            self._settle()
            self._tell_raised()
        super()._on_error(error)

    def _tell_raised(self) -> None:
        """Land what tools raised: no message of theirs comes any more."""
        for call_id, (message, turn_id) in self._tasks.raised.items():
            if call_id in self._state.results or not self._has_call(call_id):
                continue
            self.out.tool_done(
                call_id,
                outcome="error",
                error_text=message,
                message_id=f"{self.out.call_id(call_id)}:result",
                turn_id=turn_id,
            )
        self._tasks.raised.clear()

    def _on_abort(self, abort: HostAbort) -> None:
        if self.out.is_open():
            self._settle()
        super()._on_abort(abort)

    def _on_flush(self) -> None:
        if self.out.is_open():
            self._settle()

    def _describe(self, error: BaseException) -> Failure:
        """What LangGraph says of a failure: its codes stand in links to its manual."""
        told = describe_failure(error)
        name = next((cls.__name__ for cls in type(error).__mro__ if cls.__name__ in _CODES), None)
        linked = _CODE.search(told.message)
        code = linked.group(1) if linked else _CODES.get(name or "", told.code)
        return Failure(told.message, code, True if name in _RETRIABLE else told.retriable)

    def _usage_so_far(self) -> AgUsage | None:
        return self._runs.usage(self.turn_id)


# Where a config says which place of which thread it is of, and how an ask says it.
_PLACES = {"thread_id": THREAD_ID, "checkpoint_id": CHECKPOINT_ID, "checkpoint_ns": CHECKPOINT_NS}

_HANDLERS: dict[str, Callable[[LangGraphNormalizer, Part], bool]] = {
    "checkpoints": LangGraphNormalizer._on_checkpoints,
    "custom": LangGraphNormalizer._on_custom,
    "debug": LangGraphNormalizer._on_debug,
    "messages": LangGraphNormalizer._on_messages,
    SERVER: LangGraphNormalizer._on_server,
    "tasks": LangGraphNormalizer._on_tasks,
    "tools": LangGraphNormalizer._on_tools,
    "updates": LangGraphNormalizer._on_updates,
    "values": LangGraphNormalizer._on_values,
}
