"""Generates valid streams: in every step one of the legal next events, in the end everything closed (spec §5.0)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

from agjson.testing import content_actions as content
from agjson.testing import side_actions as side
from agjson.testing.source import RandomSource, Source
from agjson.testing.writer import LEVELS, StreamOptions, StreamWriter
from agjson.types import AgStreamEvent

__all__ = ["generate_stream", "random_stream"]


class _Action(NamedTuple):
    weight: int
    level: str
    # The wire type that the action cannot do without.
    type: str
    ready: Callable[[StreamWriter], bool]
    run: Callable[[StreamWriter], None]
    # What is done instead where this is not legal yet: what it waits for.
    instead: str | None


def _can_begin_invoke(writer: StreamWriter) -> bool:
    return writer.seq > 0 and writer.invokes < writer.options.max_invokes


def _begin_invoke(writer: StreamWriter) -> None:
    _end_invoke(writer)
    writer.new_invoke()


def _end_invoke(writer: StreamWriter) -> None:
    if writer.options.truncated and writer.source.chance(25):
        writer.flush()
    else:
        writer.close_all()


_ACTIONS: Final[dict[str, _Action]] = {
    "open-turn": _Action(4, "CORE", "turn.start", content.can_open_turn, content.open_turn, "open-message"),
    "open-message": _Action(16, "CORE", "message.start", content.has_open_turn, content.open_message, "open-turn"),
    "start-text": _Action(14, "CORE", "text.start", content.can_write, content.start_text, "open-message"),
    "start-tool": _Action(10, "CORE", "tool.start", content.can_write, content.start_tool, "open-message"),
    "start-reasoning": _Action(
        12, "EXTENDED", "reasoning.start", content.can_write, content.start_reasoning, "open-message"
    ),
    "advance-block": _Action(40, "CORE", "text.delta", content.has_block, content.advance_block, "start-text"),
    "end-block": _Action(10, "CORE", "text.end", content.has_block, content.end_block, "start-text"),
    "advance-tool": _Action(24, "CORE", "tool.args.delta", content.has_unassembled, content.advance_tool, "start-tool"),
    "tool-result": _Action(20, "CORE", "tool.done", content.can_answer, content.tool_result, "advance-tool"),
    "content-block": _Action(10, "CORE", "content.block", content.can_write, content.content_block, "open-message"),
    "end-message": _Action(6, "CORE", "message.end", content.has_open_message, content.end_message, "open-message"),
    "close-turn": _Action(4, "CORE", "turn.done", content.has_open_turn, content.close_turn, "open-turn"),
    "remove-message": _Action(5, "CORE", "message.remove", content.has_message, content.remove_message, "open-message"),
    "open-subagent": _Action(
        4, "EXTENDED", "subagent.start", content.can_open_subagent, content.open_subagent, "open-turn"
    ),
    "begin-invoke": _Action(3, "CORE", "turn.start", _can_begin_invoke, _begin_invoke, "close-turn"),
    "snapshot": _Action(6, "CORE", "messages.snapshot", side.can_snapshot, side.snapshot, "end-message"),
    "error": _Action(2, "CORE", "error", side.has_turn, side.error, "open-turn"),
    "ext": _Action(2, "CORE", "ext", side.has_turn, side.ext, "open-turn"),
    "step": _Action(3, "EXTENDED", "step.start", content.has_open_turn, content.step, "open-turn"),
    "source": _Action(4, "EXTENDED", "source", side.has_turn, side.source_event, "open-turn"),
    "record": _Action(6, "EXTENDED", "handoff", side.has_turn, side.record, "open-turn"),
    "ask": _Action(4, "EXTENDED", "hitl.ask", content.has_open_turn, side.ask, "open-turn"),
    "write-memory": _Action(4, "EXTENDED", "memory.write", side.has_turn, side.write_memory, "open-turn"),
    "patch-memory": _Action(5, "EXTENDED", "memory.write", side.has_memory, side.patch_memory, "write-memory"),
    "metadata": _Action(
        4, "ADVANCED", "message.metadata", content.has_message, content.message_metadata, "open-message"
    ),
    "capabilities": _Action(
        1, "ADVANCED", "agent.capabilities", side.capabilities_unsent, side.capabilities, "open-turn"
    ),
    "host-context": _Action(2, "ADVANCED", "host.context", side.has_turn, side.host_context, "open-turn"),
    "start-artifact": _Action(3, "ADVANCED", "artifact.start", content.has_open_turn, side.start_artifact, "open-turn"),
    "advance-artifact": _Action(
        8, "ADVANCED", "artifact.delta", side.has_artifact, side.advance_artifact, "start-artifact"
    ),
    "set-state": _Action(3, "ADVANCED", "state.snapshot", side.has_turn, side.set_state, "open-turn"),
    "patch-state": _Action(6, "ADVANCED", "state.delta", side.has_state, side.patch_state, "set-state"),
    "merge-state": _Action(3, "ADVANCED", "state.delta", side.has_turn, side.merge_state, "open-turn"),
    "start-surface": _Action(2, "ADVANCED", "ui.surface.start", side.has_turn, side.start_surface, "open-turn"),
    "advance-surface": _Action(
        8, "ADVANCED", "ui.surface.update", side.has_surface, side.advance_surface, "start-surface"
    ),
}

# One step in so many ends the stream.
_MEAN_STEPS = 60


def generate_stream(source: Source, options: StreamOptions | None = None) -> list[AgStreamEvent]:
    """A valid stream: it passes `agjson.checker.check`, and no fold parks on it.

    Args:
        source: where the choices come from.
        options: what kind of stream is wanted; None for the default.

    Returns:
        The events of all invokes one after the other, each invoke with ``seq`` from 0.
    """
    options = options if options is not None else StreamOptions()
    writer = StreamWriter(source, options)
    level = LEVELS[options.profile]
    actions = {
        name: action
        for name, action in _ACTIONS.items()
        if LEVELS[action.level] <= level and action.type not in options.without
    }
    names = list(actions)
    factors = {"close-turn": 3} if options.resyncable else {}
    marks = list(accumulate(actions[name].weight * factors.get(name, 1) for name in names))
    total = marks[-1]
    stop = max(total // _MEAN_STEPS, 1)

    def step(low: int, high: int) -> bool:
        # A number names the same action in any step, and 0 names none: so Hypothesis can take any step out of a
        # failing stream and keep the others.
        mark = source.integer(low, high)
        if 0 < mark <= total:
            _run(writer, actions, names[bisect_right(marks, mark - 1)])
        return mark <= total

    for _ in range(options.max_events):
        if len(writer.events) >= options.max_events or not source.group(partial(step, 0, total + stop)):
            break
    for _ in range(4 * options.min_events):
        if len(writer.events) >= options.min_events:
            break
        source.group(partial(step, 1, total))
    _end_invoke(writer)
    return writer.events


def random_stream(seed: int | Random, options: StreamOptions | None = None) -> list[AgStreamEvent]:
    """A valid stream without Hypothesis, reproducible by its seed.

    Args:
        seed: a seed, or the generator to use.
        options: what kind of stream is wanted; None for the default.
    """
    options = options if options is not None else StreamOptions()
    return generate_stream(RandomSource(seed, surrogates=options.surrogates), options)


def _run(writer: StreamWriter, actions: dict[str, _Action], name: str | None) -> None:
    """Do an action, or what it waits for; nothing where that is left out of this stream."""
    while name is not None and name in actions:
        action = actions[name]
        if action.ready(writer):
            action.run(writer)
            return
        name = action.instead
