"""What a model on Amazon Bedrock said, as ChatBedrockConverse keeps it."""

from __future__ import annotations

from agjson.adapters.langgraph._out_answer import Answer
from agjson.adapters.langgraph._out_blocks import Native
from agjson.adapters.langgraph._out_carried import carried_fields
from agjson.adapters.langgraph._out_openai import write_chat
from agjson.adapters.langgraph._out_repairs import Repairs
from agjson.types import AgBlock, ReasoningBlock, ToolCallBlock

__all__ = ["write_bedrock"]

_BEDROCK = "bedrock"


def write_bedrock(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    """Add a block to an answer for ChatBedrockConverse.

    Args:
        block: a block that the assistant said.
        path: its JSON path.
        answer: the answer.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    if isinstance(block, ReasoningBlock):
        native = _reasoning(block, path, repairs)
        if native is not None:
            answer.content.append(native)
        return
    before = len(answer.tool_calls)
    write_chat(block, path, answer, repairs)
    if isinstance(block, ToolCallBlock) and not block.provider_executed:
        # The chat model keeps the order of what it said by these blocks.
        args = answer.tool_calls[-1]["args"] if len(answer.tool_calls) > before else {}
        answer.content.append({"type": "tool_use", "id": answer.call_id, "name": answer.call_name, "input": args})


def _reasoning(block: ReasoningBlock, path: str, repairs: Repairs) -> Native | None:
    opaque = block.opaque
    if {block.provider, None if opaque is None else opaque.provider} - {None, _BEDROCK}:
        repairs.note("reasoning_dropped", path, "another provider's reasoning means nothing to this one")
        return None
    if opaque is None or not opaque.value:
        repairs.note("reasoning_dropped", path, "reasoning without a signature is refused by the provider")
        return None
    fields = carried_fields(block.provider_metadata)
    if opaque.kind == "redacted":
        held: Native = {"redacted_content": opaque.value}
    else:
        held = {"text": block.text or "", "signature": opaque.value}
    return {**fields, "type": "reasoning_content", "reasoning_content": held}
