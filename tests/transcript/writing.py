"""Short ways to write histories, and to see what is left of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agjson.transcript import Prepared
from agjson.types import (
    AgBlock,
    AgHitlAnswer,
    AgMessage,
    AgOpaque,
    AgPausedAsk,
    AgRole,
    AgTurnRecord,
    PausedOutcome,
    ReasoningBlock,
    SuccessOutcome,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

SEALED = AgOpaque(kind="signature", value="c2VhbA==")


def message(role: AgRole, id: str, *content: AgBlock | str, **fields: Any) -> AgMessage:
    """A message; texts may be plain strings."""
    blocks = [TextBlock(text=block) if isinstance(block, str) else block for block in content]
    return AgMessage(id=id, role=role, content=blocks, **fields)


def user(id: str, *content: AgBlock | str, **fields: Any) -> AgMessage:
    return message("user", id, *(content or (f"{id}?",)), **fields)


def assistant(id: str, *content: AgBlock | str, **fields: Any) -> AgMessage:
    return message("assistant", id, *content, **fields)


def tool(block: ToolResultBlock, id: str | None = None, **fields: Any) -> AgMessage:
    """The message of one result."""
    kind = "pending" if block.outcome == "input_required" else "result"
    return message("tool", id or f"{block.tool_call_id}:{kind}", block, **fields)


def call(id: str, name: str = "send", **fields: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=id, name=name, input={"of": id}, **fields)


def result(id: str, text: str = "done", **fields: Any) -> ToolResultBlock:
    return ToolResultBlock(tool_call_id=id, content=[TextBlock(text=text)], **fields)


def waits(id: str) -> ToolResultBlock:
    """A placeholder: the call waits."""
    return ToolResultBlock(tool_call_id=id, content=[], outcome="input_required")


def reasoning(text: str = "thinking", opaque: AgOpaque | None = SEALED, **fields: Any) -> ReasoningBlock:
    return ReasoningBlock(text=text, opaque=opaque, **fields)


def ask(id: str, call_id: str | None = None, **fields: Any) -> AgPausedAsk:
    return AgPausedAsk(ask_id=id, kind=fields.pop("kind", "approval"), tool_call_id=call_id, **fields)


def paused(turn_id: str, *asks: AgPausedAsk, **fields: Any) -> AgTurnRecord:
    """The record of a turn that waits for answers."""
    return AgTurnRecord(
        turn_id=turn_id, thread_id="thread", asks=list(asks), outcome=PausedOutcome(asks=list(asks)), **fields
    )


def ended(turn_id: str, **fields: Any) -> AgTurnRecord:
    return AgTurnRecord(turn_id=turn_id, thread_id="thread", outcome=SuccessOutcome(), **fields)


def yes(ask_id: str, **fields: Any) -> AgHitlAnswer:
    return AgHitlAnswer(ask_id=ask_id, status="resolved", **fields)


def no(ask_id: str, reason: str | None = None) -> AgHitlAnswer:
    return AgHitlAnswer(ask_id=ask_id, status="declined", reason=reason)


def shown(block: AgBlock) -> str:
    """A block in a few characters: ``c1`` calls, ``c1=done`` results, ``~thinking`` reasoning."""
    if isinstance(block, ToolCallBlock):
        return f"{block.tool_call_id}()"
    if isinstance(block, ToolResultBlock):
        told = "".join(each.text for each in block.content if isinstance(each, TextBlock))
        return f"{block.tool_call_id}={block.outcome if block.outcome in ('denied', 'input_required') else told}"
    if isinstance(block, ReasoningBlock):
        return f"~{block.text}"
    return block.text if isinstance(block, TextBlock) else block.type


def view(messages: Iterable[AgMessage]) -> list[str]:
    """A history in one line for each message: ``assistant: ~thinking c1()``."""
    return [f"{each.role}: {' '.join(map(shown, each.content))}" for each in messages]


def pairs(prepared: Prepared) -> list[tuple[str, str]]:
    """The completed calls that a model knows: the input of each, and its result."""
    return [(str(made.input), shown(got)) for made, got in prepared.pairs]


def ids(messages: Sequence[AgMessage]) -> list[str]:
    return [each.id for each in messages]
