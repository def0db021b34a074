"""The conversation as it comes: each event written where it belongs, with the turn and the speaker it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agjson.cli.show_blocks import Limits, Line, block_lines, citation_line, result_lines
from agjson.cli.show_screen import Screen, StyleName
from agjson.cli.show_side import ask_lines, side_lines
from agjson.cli.show_state import Block, Message, Recent, Turn
from agjson.cli.show_values import shown_json, shown_size, shown_usage
from agjson.cli.terminal import shown_text, shown_word
from agjson.types import (
    UNSET,
    AgMessage,
    ArtifactDelta,
    ArtifactEnd,
    ArtifactStart,
    ContentBlock,
    ErrorOutcome,
    HitlAsk,
    MessageEnd,
    MessageRemove,
    MessagesSnapshot,
    MessageStart,
    PausedOutcome,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningOpaque,
    ReasoningOpaqueDelta,
    ReasoningStart,
    RejectedOutcome,
    SubagentDone,
    SubagentStart,
    SuccessOutcome,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ToolArgsAssembled,
    ToolArgsDelta,
    ToolDone,
    ToolStart,
    TurnAbort,
    TurnDone,
    TurnError,
    TurnStart,
    UnknownEvent,
)

__all__ = ["Viewer"]

_OPEN_TURNS = 1024
_POINTERS = 64
_REPLACEMENT = "\ufffd"


class Viewer:
    """Shows a stream, one event at a time. It remembers a bounded number of names, never text.

    Args:
        screen: where to write.
        full: long values are not cut.
    """

    def __init__(self, screen: Screen, *, full: bool = False) -> None:
        self._screen = screen
        self._limits = Limits(full=full)
        self._turns: Recent[Turn] = Recent()
        self._messages: Recent[Message] = Recent()
        self._blocks: Recent[Block] = Recent()
        self._calls: Recent[tuple[str, Turn]] = Recent()
        self._asked: Recent[bool] = Recent()
        self._artifacts: Recent[str] = Recent()
        self._open: list[Turn] = []
        # Stands in where an event leads to no turn: nothing calls it by a name.
        self._nowhere = Turn("")
        self._turn = self._nowhere
        self._message: Message | None = None
        self._running: str | None = None  # the block or call whose line is being written
        self._last_seq: float | None = None
        self._handlers: Mapping[str, Callable[[Any], None]] = {
            TurnStart.type: self._turn_start,
            TurnDone.type: self._turn_done,
            TurnError.type: self._turn_error,
            TurnAbort.type: self._turn_abort,
            SubagentStart.type: self._subagent_start,
            SubagentDone.type: self._subagent_done,
            MessageStart.type: self._message_start,
            MessageEnd.type: self._message_end,
            MessageRemove.type: self._message_remove,
            MessagesSnapshot.type: self._snapshot,
            TextStart.type: self._text_start,
            TextDelta.type: self._text_delta,
            TextEnd.type: self._text_end,
            ReasoningStart.type: self._reasoning_start,
            ReasoningDelta.type: self._reasoning_delta,
            ReasoningEnd.type: self._reasoning_end,
            ReasoningOpaque.type: self._opaque,
            ReasoningOpaqueDelta.type: self._nothing,
            ToolStart.type: self._tool_start,
            ToolArgsDelta.type: self._nothing,
            ToolArgsAssembled.type: self._tool_input,
            ToolDone.type: self._tool_done,
            ContentBlock.type: self._content,
            ArtifactStart.type: self._artifact_start,
            ArtifactDelta.type: self._artifact_delta,
            ArtifactEnd.type: self._artifact_end,
            HitlAsk.type: self._ask,
        }

    def push(self, event: Any) -> None:
        """Show one event, as `ingest_event` returns it."""
        last, self._last_seq = self._last_seq, event.seq
        if last is not None and event.seq > last + 1:
            self._missing(int(last) + 1, event.seq - 1)
        show = None if isinstance(event, UnknownEvent) else self._handlers.get(event.type)
        if show is not None:
            show(event)
            return
        lines = list(side_lines(event, self._limits))
        if lines:
            if not isinstance(event, UnknownEvent):
                self._speak(self._owner(event))
            self._lines(lines)

    def notice(self, text: str) -> None:
        """Say something about the stream itself, in its place."""
        self._end()
        self._screen.line(shown_word(text), prefix="!! ", style="warning")

    def skip(self) -> None:
        """Take note that an event could not be read: the ordinal that it had is not missing."""
        self._last_seq = None

    def finish(self) -> None:
        """End the line that is being written, and say which turns are still open."""
        self._end()
        for turn in self._open:
            self.notice(f"The stream ends and {turn.title} is still open")

    def _missing(self, first: int, last: float) -> None:
        which = f"event {first} is" if last <= first else f"events {first} to {last} are"
        self.notice(f"{which.capitalize()} missing: what follows may be incomplete until the next snapshot")

    # Turns

    def _turn_start(self, event: TurnStart) -> None:
        if self._known(event.turn_id):
            return
        words = f"turn {shown_word(event.turn_id)} · thread {shown_word(event.thread_id)}"
        if event.trigger is not None and event.trigger.kind != "user":
            words += f" · by {event.trigger.kind}"
            words += f" {shown_word(event.trigger.ref)}" if event.trigger.ref else ""
        self._open_turn(Turn(event.turn_id), words)

    def _subagent_start(self, event: SubagentStart) -> None:
        if self._known(event.turn_id):
            return
        parent = self._turns.get(event.parent_turn_id)
        name = event.agent_name or event.agent_id
        turn = Turn(event.turn_id, name=name, depth=1 if parent is None else parent.depth + 1)
        self._open_turn(turn, turn.title)

    def _subagent_done(self, event: SubagentDone) -> None:
        turn = self._turns.get(event.turn_id)
        if turn is not None and turn.open:
            self._close(turn, "ended")

    def _known(self, turn_id: str) -> bool:
        turn = self._turns.get(turn_id)
        return turn is not None and turn.open

    def _open_turn(self, turn: Turn, words: str) -> None:
        self._turns.put(turn.id, turn)
        self._open.append(turn)
        if len(self._open) > _OPEN_TURNS:
            del self._open[0]
        self._heading(turn, words)
        self._turn = turn
        self._message = None

    def _close(self, turn: Turn, words: str, style: StyleName = "heading", lines: Iterable[Line] = ()) -> None:
        self._end()
        self._turn = turn
        self._message = None
        self._lines(lines)
        if turn is not self._nowhere:
            words = f"{turn.title} {words}"
        self._heading(turn, words, style)
        turn.open = False
        turn.pointers.clear()
        self._open = [each for each in self._open if each is not turn]

    def _turn_done(self, event: TurnDone) -> None:
        outcome = event.outcome
        reason: object = event.finish_reason
        if reason == "unknown" and event.meta is not None:
            reason = event.meta.get("agjson/finishReason", reason)
        style: StyleName = "heading"
        lines: list[Line] = []
        words = "done"
        match outcome:
            case SuccessOutcome():
                pass
            case ErrorOutcome():
                style, words = "bad", f"failed: {shown_word(outcome.message)}"
                words += f" ({shown_word(outcome.code)})" if outcome.code else ""
            case RejectedOutcome():
                style, words = "bad", "rejected"
                words += f": {shown_word(outcome.reason)}" if outcome.reason else ""
            case PausedOutcome():
                for ask in outcome.asks:
                    if ask.ask_id not in self._asked:
                        lines += ask_lines(ask, self._limits)
                names = ", ".join(shown_word(ask.ask_id) for ask in outcome.asks)
                style, words = "warning", f"paused, waits for {names}" if names else "paused"
            case _:
                style, words = "bad", "aborted"
                words += f": {shown_word(outcome.reason)}" if outcome.reason else ""
        result = getattr(outcome, "result", UNSET)
        if result is not UNSET:
            lines.append(("plain", f"result: {shown_json(result, self._limits.value)}"))
        words += f" · {shown_word(str(reason))}" if reason != outcome.type else ""
        words += f" · {shown_word(event.task_state)}" if event.task_state else ""
        words += _usage(event)
        words += f" · safety: {', '.join(shown_word(each.category) for each in event.safety)}" if event.safety else ""
        self._close(self._owner(event), words, style, lines)

    def _turn_error(self, event: TurnError) -> None:
        words = f"failed: {shown_word(event.message)}"
        words += f" ({shown_word(event.code)})" if event.code else ""
        words += " · may be tried again" if event.retriable else ""
        self._close(self._owner(event), words + _usage(event), "bad")

    def _turn_abort(self, event: TurnAbort) -> None:
        words = f"aborted: {shown_word(event.reason)}" if event.reason else "aborted"
        self._close(self._owner(event), words, "bad")

    # Messages

    def _message_start(self, event: MessageStart) -> None:
        turn = self._owner(event)
        self._speak(turn)
        message = Message(event.id, turn, _title(event))
        self._messages.put(event.id, message)
        if len(turn.pointers) >= _POINTERS:
            turn.pointers.clear()
        turn.pointers[event.candidate_index or 0] = message
        self._message = message
        self._line(message.title, turn.prefix, "speaker")

    def _message_end(self, event: MessageEnd) -> None:
        message = self._messages.get(event.id)
        words = _usage(event)
        if words:
            self._speak(self._owner(event) if message is None else message.turn, message)
            self._lines([("faint", f"({words.removeprefix(' · ')})")])

    def _message_remove(self, event: MessageRemove) -> None:
        self._speak(self._owner(event))
        what = f"message {shown_word(event.id)} is" if event.id != "*" else "all messages of this turn are"
        self._lines([("warning", f"[{what} removed]")])
        self._messages.drop(event.id)

    def _snapshot(self, event: MessagesSnapshot) -> None:
        self._end()
        self._turn = self._nowhere
        self._message = None
        for turn in self._open:
            turn.pointers.clear()
        for record in event.turns or ():
            if record.outcome is None and not self._known(record.turn_id):
                self._turns.put(record.turn_id, turn := Turn(record.turn_id))
                self._open.append(turn)
        fresh = [message for message in event.messages if message.id not in self._messages]
        words = f"snapshot · {shown_size(len(event.messages), 'messages')}"
        words += f", {len(fresh)} of them not shown before" if len(fresh) < len(event.messages) else ""
        self._heading(self._nowhere, words)
        for message in fresh:
            title = _title(message)
            self._messages.put(message.id, Message(message.id, self._nowhere, title))
            self._line(title, "", "speaker")
            for block in message.content:
                self._lines(block_lines(block, self._limits))

    # Text and reasoning

    def _text_start(self, event: TextStart) -> None:
        self._begin(event, "")

    def _reasoning_start(self, event: ReasoningStart) -> None:
        block = self._blocks.get(event.id)
        if block is None or event.part_index is None:
            self._begin(event, "~ ")
        elif self._running == event.id:
            self._end()

    def _begin(self, event: Any, mark: str) -> Block:
        turn = self._owner(event)
        block = Block(turn, self._message_of(event, turn), mark)
        self._blocks.put(event.id, block)
        return block

    def _text_delta(self, event: TextDelta) -> None:
        self._delta(event, "plain", "")

    def _reasoning_delta(self, event: ReasoningDelta) -> None:
        self._delta(event, "faint", "~ ")

    def _delta(self, event: Any, style: StyleName, mark: str) -> None:
        block = self._blocks.get(event.id)
        if block is None:
            self.notice(f"A delta for a block that was not opened: {event.id}")
            block = self._begin(event, mark)
        self._run(event.id, block, shown_text(block.joined(event.delta)), style)

    def _run(self, id: str, block: Block, text: str, style: StyleName) -> None:
        """Go on with the text of a block, on a new line if something else was written in between."""
        if not text:
            return
        if self._running != id:
            self._end()
            self._speak(block.turn, block.message)
            self._running = id
        block.written = True
        self._screen.text(text, prefix=block.turn.inside + block.mark, style=style)

    def _text_end(self, event: TextEnd) -> None:
        self._finish_block(event, "plain")
        if event.citations:
            turn = self._owner(event)
            self._speak(turn, self._message_of(event, turn))
            self._lines(citation_line(citation) for citation in event.citations)

    def _reasoning_end(self, event: ReasoningEnd) -> None:
        self._finish_block(event, "faint")

    def _finish_block(self, event: Any, style: StyleName) -> None:
        block = self._blocks.get(event.id)
        if block is not None:
            self._run(event.id, block, _REPLACEMENT if block.held else "", style)
            self._blocks.drop(event.id)
        if self._running == event.id:
            self._end()

    def _opaque(self, event: ReasoningOpaque) -> None:
        block = self._blocks.get(event.id)
        turn = self._owner(event) if block is None else block.turn
        self._speak(turn, self._message_of(event, turn) if block is None else block.message)
        self._lines([("faint", f"~ ({event.kind}, {shown_size(len(event.value), 'characters')})")])

    def _nothing(self, event: Any) -> None:
        """An event whose content comes whole in a later one."""

    # Tools and blocks

    def _tool_start(self, event: ToolStart) -> None:
        turn = self._owner(event)
        name = shown_word(event.name)
        self._calls.put(event.tool_call_id, (name, turn))
        self._end()
        self._speak(turn, self._message_of(event, turn))
        words = [f"→ {name}"]
        words += [f'"{shown_word(event.title)}"'] if event.title else []
        notes = [f"of {shown_word(event.server_name)}"] if event.server_name else []
        notes += ["run by the provider"] if event.provider_executed else []
        notes += ["needs approval"] if event.requires_approval else []
        notes += ["takes long"] if event.long_running else []
        words += [f"({', '.join(notes)})"] if notes else []
        self._running = event.tool_call_id
        self._screen.text(" ".join(words), prefix=turn.inside, style="tool")

    def _tool_input(self, event: ToolArgsAssembled) -> None:
        shown = shown_json(event.input, self._limits.value, hide=False)
        if self._running == event.tool_call_id:
            self._screen.text(f" {shown}", style="plain")
            self._end()
            return
        name, turn = self._call(event)
        self._speak(turn)
        self._lines([("tool", f"→ {name} {shown}")])

    def _tool_done(self, event: ToolDone) -> None:
        name, turn = self._call(event)
        self._speak(turn)
        self._lines(result_lines(event, name, self._limits))

    def _call(self, event: ToolArgsAssembled | ToolDone) -> tuple[str, Turn]:
        """The name of the call that an event is about, and the turn where it is shown."""
        known = self._calls.get(event.tool_call_id)
        if event.turn_id is not None or known is None:
            name = shown_word(event.tool_call_id) if known is None else known[0]
            return name, self._turn_named(event.turn_id) if event.turn_id is not None else self._default_turn()
        return known

    def _content(self, event: ContentBlock) -> None:
        turn = self._owner(event)
        self._speak(turn, self._message_of(event, turn))
        self._lines(block_lines(event.block, self._limits))

    # Artifacts

    def _artifact_start(self, event: ArtifactStart) -> None:
        name = f"{event.name} ({event.artifact_id})" if event.name else event.artifact_id
        self._artifacts.put(event.artifact_id, shown_word(name))
        turn = self._owner(event)
        self._speak(turn)
        about = f": {shown_text(event.description)}" if event.description else ""
        self._lines([("speaker", f"[artifact {shown_word(name)}]{about}")])

    def _artifact_delta(self, event: ArtifactDelta) -> None:
        key = f"artifact {event.artifact_id}"
        block = self._blocks.get(key)
        if block is None:
            block = Block(self._owner(event), None, "| ")
            self._blocks.put(key, block)
        if isinstance(event.part, TextBlock):
            if not event.append and self._running == key:
                self._end()
            self._run(key, block, shown_text(block.joined(event.part.text)), "plain")
        else:
            self._end()
            self._speak(block.turn)
            self._lines(block_lines(event.part, self._limits), mark="| ")

    def _artifact_end(self, event: ArtifactEnd) -> None:
        key = f"artifact {event.artifact_id}"
        block = self._blocks.get(key)
        self._blocks.drop(key)
        self._speak(self._owner(event) if block is None else block.turn)
        name = self._artifacts.get(event.artifact_id) or shown_word(event.artifact_id)
        self._lines([("faint", f"[artifact {name} is complete]")])

    def _ask(self, event: HitlAsk) -> None:
        self._asked.put(event.ask_id, True)
        self._speak(self._owner(event))
        self._lines(ask_lines(event, self._limits))

    # Whose words, and where they stand

    def _owner(self, event: Any) -> Turn:
        """The turn of an event (spec §5.0 INV-OWNER)."""
        if event.turn_id is not None:
            return self._turn_named(event.turn_id)
        if event.message_id is not None:
            message = self._messages.get(event.message_id)
            if message is not None:
                return message.turn
        block = self._blocks.get(event.id) if event.id is not None else None
        return self._default_turn() if block is None else block.turn

    def _turn_named(self, turn_id: str) -> Turn:
        turn = self._turns.get(turn_id)
        if turn is None:
            turn = Turn(turn_id)
            self._open_turn(turn, f"{turn.title} · not opened in this stream")
        return turn

    def _default_turn(self) -> Turn:
        return self._open[-1] if self._open else self._nowhere

    def _message_of(self, event: Any, turn: Turn) -> Message | None:
        message = self._messages.get(event.message_id) if event.message_id is not None else None
        if message is not None and message.turn is turn:
            return message
        return turn.pointers.get(getattr(event, "candidate_index", None) or 0)

    def _speak(self, turn: Turn, message: Message | None = None) -> None:
        """Say whose words follow, if they are not those of the turn and message that spoke last."""
        if turn is not self._turn:
            if turn is not self._nowhere:
                who = f" · {message.title}" if message is not None else ""
                self._heading(turn, f"{turn.title}, continued{who}")
            self._turn = turn
            self._message = message
        elif message is not None and message is not self._message:
            self._line(f"{message.title}, continued", turn.prefix, "speaker")
            self._message = message

    def _heading(self, turn: Turn, words: str, style: StyleName = "heading") -> None:
        self._line(f"── {words}", turn.prefix, style)

    def _lines(self, lines: Iterable[Line], mark: str = "") -> None:
        prefix = f"{self._turn.inside}{mark}"
        for style, text in lines:
            self._line(text, prefix, style)

    def _line(self, text: str, prefix: str, style: StyleName) -> None:
        self._end()
        self._screen.line(text, prefix=prefix, style=style)

    def _end(self) -> None:
        self._running = None
        self._screen.end_line()


def _title(message: MessageStart | AgMessage) -> str:
    words: list[str] = [message.role]
    name = message.agent_name or message.agent_id
    words += [shown_word(name)] if name else []
    words += [shown_word(message.model)] if message.model else []
    words += [f"candidate {message.candidate_index}"] if message.candidate_index else []
    return " · ".join(words)


def _usage(event: Any) -> str:
    words = shown_usage(event.usage) if event.usage is not None else ""
    return f" · {words}" if words else ""
