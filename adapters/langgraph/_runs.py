"""Every message that LangGraph streams or commits, told once (spec §5 partitioning, §8 items 1, 2, 15).

LangGraph tells the same message several times: in chunks, whole, in the update of its node, in the state, and again by
each graph around it. Chunks belong together by their run, for ids change inside one call of a model. Messages of one
turn that stream at the same time go out one after the other, as only one can be open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from agjson.adapters.langgraph._carry import COMMITTED, FIELDS, KWARGS, NAME, RESPONSE, RESULT
from agjson.adapters.langgraph._chunks import MessageWriter
from agjson.adapters.langgraph._content import read_blocks, rest_of_kwargs
from agjson.adapters.langgraph._prints import Print, print_of
from agjson.adapters.langgraph._results import result_fields
from agjson.adapters.langgraph._run import (
    MEMBERS,
    MESSAGE_ID,
    RESULT_MEMBERS,
    UNSTREAMED,
    USAGE,
    Run,
    Told,
    WaitingResult,
    attribution,
    calls_of,
    id_of,
    is_plain,
    role_of,
    says_something,
)
from agjson.adapters.langgraph._scope import Scope
from agjson.adapters.langgraph._usage import finish_reason, merge_usage, read_usage, sum_usage
from agjson.emitter import Emitter
from agjson.types import AgFinishReason, AgUsage, JsonValue, ToolCallBlock, ToolResultBlock

__all__ = ["MessageRuns"]

Native: TypeAlias = dict[str, Any]


class MessageRuns:
    """Every message that LangGraph streams or commits, told once.

    Args:
        out: what writes the events.
        denied: the calls that a person did not allow, by id, each with the reason; LangChain tells these as failed.
        drop_uncommitted: remove what a model has said in a task that has not put it into the state. Otherwise it stays,
            and its metadata tells it.
    """

    def __init__(
        self, out: Emitter, *, denied: Mapping[str, str] | None = None, drop_uncommitted: bool = False
    ) -> None:
        self._out = out
        self._denied = denied or {}
        self._drops = drop_uncommitted
        self._by_key: dict[Hashable, Run] = {}
        self._by_id: dict[str, Run] = {}
        self._told: dict[str, Told] = {}
        self._known: set[str] = set()
        # What models say in tasks that have not ended.
        self._running: dict[Run, None] = {}
        self._active: dict[str, Run] = {}
        self._waiting: dict[str, deque[Run | WaitingResult]] = {}
        # The tools of calls, by call id.
        self._names: dict[str, str] = {}
        # Messages that were changed where no event can change them.
        self._edited: dict[str, tuple[Mapping[str, Any], Scope]] = {}
        self._usage: dict[str, AgUsage | None] = {}
        self._reasons: dict[str, AgFinishReason | None] = {}

    # What LangGraph says

    def take(self, message: Mapping[str, Any], meta: Mapping[str, Any], *, key: Hashable | None, scope: Scope) -> None:
        """Take a message of ``messages`` mode.

        Args:
            message: a chunk or a whole message as plain data, in the shape of its pydantic dump.
            meta: LangGraph's metadata of it.
            key: the identity of its run; None where the input does not tell it.
            scope: where it comes from.
        """
        run = self._by_key.get(key) if key is not None else None
        if run is not None and (writer := run.writer) is not None and is_plain(message, run):
            content, fragments, kwargs = message["content"], message["tool_call_chunks"], message["additional_kwargs"]
            if kwargs:
                done = not fragments and not content and writer.feed_hot_reasoning(kwargs)
            elif fragments:
                done = writer.feed_hot_arguments(fragments, content)
            else:
                done = writer.feed_hot(content)
            if done:
                return
        kind = message.get("type")
        if kind == "tool":
            self._result(message, scope)
        elif kind == "AIMessageChunk":
            self._chunk(message, meta, key, scope)
        elif kind != "remove":
            self._whole(message, meta, scope, streamed=kind == "ai")

    def known(self, ids: Iterable[str]) -> None:
        """Note that messages are of the thread's history: they are not told again.

        Args:
            ids: their native ids.
        """
        for id in ids:
            self._known.add(id)
            if (told := self._told.get(id)) is not None:
                # A snapshot has brought it under its native id.
                told.emitted = ""

    def history(self, messages: Iterable[Mapping[str, Any]], scope: Scope) -> None:
        """Note that messages are of the thread's history, and what they say, so that a change of them is seen.

        Args:
            messages: whole messages as plain data.
            scope: the graph whose state holds them.
        """
        for message in messages:
            id = id_of(message)
            if id is not None:
                self._known.add(id)
                self._told[id] = Told("", scope.turn_id, _print_of(message))

    def commit(self, message: Mapping[str, Any], *, scope: Scope, node: str | None) -> None:
        """Take a message that a node has put into the state.

        Args:
            message: the whole message as plain data.
            scope: the graph.
            node: the node; None where the state tells the message.
        """
        kind = message.get("type")
        if kind == "tool":
            self._result(message, scope)
            return
        id = id_of(message)
        if kind == "remove":
            if id is not None:
                self.remove(id, scope=scope)
            return
        run = None if id is None else self._by_id.get(id)
        if run is None:
            meta = {} if node is None else {"langgraph_node": node}
            self._whole(message, meta, scope, streamed=False)
            return
        run.committed = True
        if run.closed:
            self._reconcile(run, message)
            return
        run.ended = True
        run.commit = message
        if run.writer is not None:
            self._finish(run)

    def remove(self, id: str, *, scope: Scope) -> None:
        """Take a message back.

        Args:
            id: its native id.
            scope: the graph.
        """
        self._edited.pop(id, None)
        self._known.discard(id)
        run = self._by_id.get(id)
        if run is not None and not run.closed:
            run.ended = True
            if run.writer is None:
                self._unqueue(run)
                self._forget(run)
                return
            self._finish(run)
        told = self._told.pop(id, None)
        emitted = told.emitted if told is not None and told.emitted else id
        self._out.message_remove(emitted, turn_id=scope.turn_id if told is None else told.turn_id)
        if run is not None:
            self._forget(run)

    def end_task(self, task_id: str, node: str, *, scope: Scope) -> None:
        """A task has ended, and with it all that was said in it.

        Args:
            task_id: the task.
            node: its node.
            scope: the graph.
        """
        over = [run for run in self._running if run.is_of(task_id)]
        for run in over:
            del self._running[run]
            if not run.closed:
                run.ended = True
                if run.writer is not None:
                    self._finish(run)
            if not run.committed:
                self._mark(run)
        self._by_key = {key: run for key, run in self._by_key.items() if not run.closed}

    def end_rest(self, *, inside: bool) -> None:
        """The turn has ended, and the ends of tasks were not told: what is in no state is in none.

        Args:
            inside: also of graphs inside the root, of which updates tell.
        """
        for run in [run for run in self._running if inside or not run.scope.ns]:
            del self._running[run]
            if not run.committed:
                self._mark(run)

    def release(self) -> None:
        """The stream has ended: what waits goes out, what is open ends, and no change is kept back any longer."""
        for queue in self._waiting.values():
            for item in queue:
                if isinstance(item, Run):
                    item.ended = True
        while self._active:
            self._finish(next(iter(self._active.values())))
        edited, self._edited = self._edited, {}
        for id, (message, scope) in edited.items():
            self._again(id, message, scope)

    def take_resync(self) -> bool:
        """Whether messages were changed that no event can change in their place: a ``messages.snapshot`` must follow.

        To be asked when one can be written; asking takes it that one is. What nobody asks for is told at `release`,
        as a removal and a new message at the end.
        """
        wanted = bool(self._edited)
        for id, (message, scope) in self._edited.items():
            self._told[id] = Told("", scope.turn_id, _print_of(message))
        self._edited = {}
        return wanted

    def usage(self, turn_id: str) -> AgUsage | None:
        """The tokens of all messages of a turn, committed or not.

        Args:
            turn_id: the turn.
        """
        total = self._usage.get(turn_id)
        run = self._active.get(turn_id)
        return total if run is None else sum_usage(total, read_usage(run.usage))

    def finish_reason(self, turn_id: str) -> AgFinishReason | None:
        """Why the last message of a turn that a model has written ended; None where it does not tell.

        Args:
            turn_id: the turn.
        """
        return self._reasons.get(turn_id)

    # Chunks

    def _chunk(self, chunk: Mapping[str, Any], meta: Mapping[str, Any], key: Hashable | None, scope: Scope) -> None:
        tags = meta.get("tags")
        if isinstance(tags, list) and not UNSTREAMED.isdisjoint(tag for tag in tags if isinstance(tag, str)):
            return
        id = id_of(chunk)
        place: Hashable = (scope.ns, str(meta.get("langgraph_checkpoint_ns"))) if key is None else key
        run = self._run_of(id, place, chunk, known=key is not None)
        if run is None:
            if not says_something(chunk):
                return
            run = Run(scope, meta, streamed=True)
            if key is None:
                place = (place, id)
            self._by_key[place] = run
            self._enter(run, id)
            run.pending.append(chunk)
            self._submit(run)
        else:
            self._enter(run, id)
            if run.closed:
                self._late(run, chunk)
            elif run.writer is None:
                run.pending.append(chunk)
            else:
                self._feed(run, chunk)
        if run.writer is None:
            run.calls.update(calls_of(chunk))
        if chunk.get("chunk_position") == "last" and not run.closed:
            run.ended = True
            if run.writer is not None:
                self._finish(run)

    def _run_of(self, id: str | None, place: Hashable, chunk: Mapping[str, Any], *, known: bool) -> Run | None:
        """The run of a chunk; None for a new one."""
        if known:
            run = self._by_key.get(place)
            if run is None or not run.closed:
                return run
            # What comes after the end is another message, unless it says nothing more.
            is_other = says_something(chunk, content=True) or (id is not None and id not in run.ids)
            return None if is_other else run
        run = None if id is None else self._by_id.get(id)
        if run is not None:
            return run if not run.closed or not says_something(chunk, content=True) else None
        here = [
            run
            for at, run in self._by_key.items()
            if isinstance(at, tuple) and at[0] == place and not run.closed and not run.ended
        ]
        if not here:
            return None
        if id is None:
            return here[-1]
        if id.startswith("lc_run-"):
            # The provider's id came first, and the run's own follows.
            fresh = [run for run in here if not any(each.startswith("lc_run-") for each in run.ids)]
            return fresh[-1] if fresh else None
        # The provider's id may come last, with a chunk that says nothing else.
        return here[0] if len(here) == 1 and not says_something(chunk, content=True) else None

    def _enter(self, run: Run, id: str | None) -> None:
        if id is not None and id not in run.ids:
            run.ids.append(id)
            if run.closed:
                return
            self._by_id[id] = run

    def _feed(self, run: Run, message: Mapping[str, Any]) -> None:
        writer = run.writer
        assert writer is not None
        metadata, usage, name = (message.get(key) for key in ("response_metadata", "usage_metadata", "name"))
        if isinstance(metadata, dict) and metadata and not metadata.items() <= run.metadata.items():
            run.metadata = {**run.metadata, **{key: value for key, value in metadata.items() if value is not None}}
        if isinstance(usage, dict):
            run.usage = merge_usage(run.usage, usage)
        if isinstance(name, str) and name:
            run.name = name
        if message.get("type") == "AIMessageChunk":
            writer.feed(message)
        else:
            writer.whole(message)
        for member in message.keys() - MEMBERS:
            if message[member] is not None:
                run.unknown[member] = message[member]

    def _late(self, run: Run, chunk: Mapping[str, Any]) -> None:
        """What a chunk tells after the message has ended: its usage, and the rest of its metadata."""
        usage, metadata = chunk.get("usage_metadata"), chunk.get("response_metadata")
        told: dict[str, JsonValue] = {}
        if isinstance(usage, dict) and usage:
            run.usage = merge_usage(run.usage, usage)
            turn = run.scope.turn_id
            self._usage[turn] = sum_usage(self._usage.get(turn), read_usage(usage))
            told[USAGE] = run.usage
        if isinstance(metadata, dict) and any(run.metadata.get(name) != value for name, value in metadata.items()):
            run.metadata = {**run.metadata, **metadata}
            told[RESPONSE] = run.metadata
        if told and self._out.has_message(run.emitted):
            self._out.message_metadata(told, message_id=run.emitted)

    # Whole messages

    def _whole(self, message: Mapping[str, Any], meta: Mapping[str, Any], scope: Scope, *, streamed: bool) -> None:
        """A whole message of any role but ``tool``: told, unless it is already."""
        id = id_of(message)
        run = None if id is None else self._by_id.get(id)
        if run is not None:
            if not run.closed:
                run.ended = True
                run.commit = message
                if run.writer is not None:
                    self._finish(run)
            elif not streamed:
                self._reconcile(run, message)
            return
        if id is not None and id in self._known:
            self._compare(id, message, scope)
            return
        run = Run(scope, meta, streamed=streamed)
        run.committed = not streamed
        self._enter(run, id)
        run.pending.append(message)
        run.calls.update(calls_of(message))
        run.ended = True
        self._submit(run)

    def _reconcile(self, run: Run, message: Mapping[str, Any]) -> None:
        """Compare what is told with what a node has made of it."""
        id = id_of(message) or run.native_id or run.emitted
        run.commit = None
        if run.marked:
            run.marked = False
            self._out.message_metadata({COMMITTED: True}, message_id=run.emitted)
        metadata = message.get("response_metadata")
        said = metadata.items() if isinstance(metadata, dict) else ()
        if more := {key: value for key, value in said if value is not None and key not in run.metadata}:
            run.metadata = {**run.metadata, **more}
            self._out.message_metadata({RESPONSE: run.metadata}, message_id=run.emitted)
        name = message.get("name")
        if isinstance(name, str) and name and name not in (run.name, run.scope.agent_name):
            run.name = name
            self._out.message_metadata({NAME: name}, message_id=run.emitted)
        self._compare(id, message, run.scope)

    def _compare(self, id: str, message: Mapping[str, Any], scope: Scope) -> None:
        told = self._told.get(id)
        if told is None or told.print.is_of(_print_of(message)):
            self._edited.pop(id, None)
            return
        # Told anew in the stream it would get another id, and stand at the end.
        self._edited[id] = (message, scope)

    def _again(self, id: str, message: Mapping[str, Any], scope: Scope) -> None:
        """Tell a changed message again, in place of what was told."""
        self.remove(id, scope=scope)
        if message.get("type") == "tool":
            self._result(message, scope)
        else:
            self._whole(message, {}, scope, streamed=False)

    # One after the other

    def _submit(self, run: Run) -> None:
        turn = run.scope.turn_id
        if run.streamed:
            self._running[run] = None
        while (active := self._active.get(turn)) is not None and active.is_before(run):
            self._finish(active)
        if active is not None:
            self._waiting.setdefault(turn, deque()).append(run)
        else:
            self._start(run)

    def _start(self, run: Run) -> None:
        """Open a message, say what it has said so far, and so on while messages are whole."""
        self._active[run.scope.turn_id] = run
        first = run.pending[0] if run.pending else {}
        scope, meta = run.scope, run.meta
        model = meta.get("ls_model_name")
        named = first.get("response_metadata")
        if isinstance(named, dict) and isinstance(named.get("model_name"), str):
            model = named["model_name"]
        role = role_of(first)
        whence = attribution(meta, scope) or None
        run.emitted = self._out.message_start(
            run.ids[0] if run.ids else None,
            role=role,
            turn_id=scope.turn_id,
            agent_name=scope.agent_name if role == "assistant" else None,
            model=model if isinstance(model, str) and model and role == "assistant" else None,
            meta=whence,
        )
        run.writer = MessageWriter(self._out, scope.turn_id, run.emitted, whence)
        pending, run.pending = run.pending, []
        for message in pending:
            self._feed(run, message)
        if run.ended:
            self._finish(run)

    def _finish(self, run: Run) -> None:
        """End the open message of a turn, and go on with those that wait."""
        writer, turn = run.writer, run.scope.turn_id
        if run.closed or writer is None:
            return
        run.closed = True
        try:
            writer.close()
            self._end(run, writer)
        finally:
            if self._active.get(turn) is run:
                del self._active[turn]
            self._go_on(turn)

    def _go_on(self, turn: str) -> None:
        queue = self._waiting.get(turn)
        while queue and turn not in self._active:
            item = queue.popleft()
            if isinstance(item, Run):
                self._start(item)
            else:
                self._result(item.message, item.scope)

    def _end(self, run: Run, writer: MessageWriter) -> None:
        told: dict[str, JsonValue] = {}
        if run.metadata:
            told[RESPONSE] = run.metadata
        if rest := rest_of_kwargs(writer.kwargs):
            told[KWARGS] = rest
        if run.unknown:
            told[FIELDS] = run.unknown
        if run.usage:
            told[USAGE] = run.usage
        native = run.native_id
        if native is not None and native != run.emitted:
            told[MESSAGE_ID] = native
        if run.name is not None and run.name != run.scope.agent_name:
            told[NAME] = run.name
        turn = run.scope.turn_id
        if told:
            self._out.message_metadata(told, message_id=run.emitted)
        usage = read_usage(run.usage)
        self._out.message_end(run.emitted, usage=usage)
        self._usage[turn] = sum_usage(self._usage.get(turn), usage)
        reason = finish_reason(run.metadata, calls=writer.has_calls, malformed=bool(writer.malformed))
        if run.streamed or reason is not None:
            self._reasons[turn] = reason
        self._names.update(
            (block.tool_call_id, block.name) for block in writer.blocks if isinstance(block, ToolCallBlock)
        )
        said = print_of(writer.blocks)
        for id in run.ids:
            self._told[id] = Told(run.emitted, turn, said)
        run.writer = None
        run.pending = []
        if run.commit is not None:
            self._reconcile(run, run.commit)

    def _unqueue(self, run: Run) -> None:
        queue = self._waiting.get(run.scope.turn_id)
        if queue is not None and run in queue:
            queue.remove(run)
        run.closed = True

    def _forget(self, run: Run) -> None:
        for id in run.ids:
            if self._by_id.get(id) is run:
                del self._by_id[id]
            self._told.pop(id, None)

    def _mark(self, run: Run) -> None:
        """Tell that a message is in no state."""
        if not run.closed or not run.emitted or not self._out.has_message(run.emitted):
            return
        run.marked = True
        if self._drops:
            self._out.message_remove(run.emitted, turn_id=run.scope.turn_id)
            self._forget(run)
        else:
            self._out.message_metadata({COMMITTED: False}, message_id=run.emitted)

    # Results

    def _result(self, message: Mapping[str, Any], scope: Scope) -> None:
        """A tool message: told when its call is told, once."""
        id, call = id_of(message), message.get("tool_call_id")
        if not isinstance(call, str) or not call:
            raise ValueError("a tool message names no call")
        if id is not None and (id in self._told or id in self._known):
            self._compare(id, message, scope)
            return
        queue = self._waiting.get(scope.turn_id)
        if queue and any(isinstance(item, Run) and call in item.calls for item in queue):
            queue.append(WaitingResult(message, scope))
            return
        active = self._active.get(scope.turn_id)
        if active is not None and active.writer is not None and active.writer.has_call(call):
            self._finish(active)
        fields = result_fields(message, self._denied)
        name = message.get("name")
        landed = self._out.tool_done(
            call,
            name=name if isinstance(name, str) and name else None,
            message_id=id,
            turn_id=scope.turn_id,
            **fields,
        )
        if landed is None:
            return
        if told := self._beside_result(message, call):
            self._out.message_metadata(told, message_id=landed)
        if id is not None:
            self._told[id] = Told(landed, scope.turn_id, _print_of(message))

    def _beside_result(self, message: Mapping[str, Any], call: str) -> dict[str, JsonValue]:
        """What a tool message says beside its result."""
        told: dict[str, JsonValue] = {}
        metadata, name = message.get("response_metadata"), message.get("name")
        if isinstance(metadata, dict) and (rest := {key: metadata[key] for key in metadata if key != RESULT}):
            told[RESPONSE] = rest
        if isinstance(name, str) and name and self._names.get(call, name) != name:
            told[NAME] = name
        if unknown := {each: message[each] for each in message.keys() - RESULT_MEMBERS if message[each] is not None}:
            told[FIELDS] = unknown
        return told


def _print_of(message: Mapping[str, Any]) -> Print:
    """What a whole message says.

    Args:
        message: a message as plain data.
    """
    if message.get("type") == "tool":
        return print_of([ToolResultBlock(tool_call_id="", **result_fields(message))])
    return print_of(read_blocks(message))
