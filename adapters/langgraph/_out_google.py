"""What a Gemini model said, as ChatGoogleGenerativeAI keeps it (spec §10 item 4)."""

from __future__ import annotations

from agjson.adapters.langgraph._carry import SIGNATURES
from agjson.adapters.langgraph._out_answer import Answer
from agjson.adapters.langgraph._out_blocks import Native, spoken
from agjson.adapters.langgraph._out_carried import carried_fields, hosted_call, whole_block
from agjson.adapters.langgraph._out_media import is_base64, media
from agjson.adapters.langgraph._out_repairs import Repairs
from agjson.types import (
    AgBlock,
    AudioBlock,
    Base64Source,
    CodeBlock,
    CodeResultBlock,
    FileBlock,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)

__all__ = ["write_google"]

_GOOGLE = "google"


def write_google(block: AgBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    """Add a block to an answer for ChatGoogleGenerativeAI.

    Args:
        block: a block that the assistant said.
        path: its JSON path.
        answer: the answer.
        repairs: where they are noted.

    Raises:
        ReplayError: there is no place for it.
    """
    native: Native | None = None
    if isinstance(block, ToolCallBlock):
        _call(block, path, answer, repairs)
    elif isinstance(block, ReasoningBlock):
        native = _thought(block, path, repairs)
    elif isinstance(block, TextBlock):
        native = _text(block, path, answer, repairs)
    elif isinstance(block, (ImageBlock, AudioBlock, FileBlock)):
        native = _media(block, path, answer, repairs)
    elif isinstance(block, (CodeBlock, CodeResultBlock)) and answer.own:
        native = _code(block)
    elif isinstance(block, ProviderRawBlock) and block.vendor == _GOOGLE and isinstance(block.raw, dict):
        native = dict(block.raw) if isinstance(block.raw.get("type"), str) else None
    elif isinstance(block, ToolResultBlock):
        native = whole_block(block) if answer.own else None
    else:
        native = spoken(block, path, repairs)
    if native is not None:
        answer.content.append(native)


def _text(block: TextBlock, path: str, answer: Answer, repairs: Repairs) -> Native | None:
    fields = carried_fields(block.provider_metadata) if answer.own else {}
    extras = fields.get("extras")
    signature = extras.get("signature") if isinstance(extras, dict) else None
    # The chat model sends what it decodes of a signature.
    if signature is not None and not (isinstance(signature, str) and is_base64(signature)):
        repairs.note("signature_dropped", path, "the signature is no base64, and so none of this provider")
        del fields["extras"]
    elif not block.text and signature:
        # A part may be there for its signature alone.
        return {"type": "text", "text": "", **fields}
    native = spoken(block, path, repairs)
    return None if native is None else {**native, **fields}


def _thought(block: ReasoningBlock, path: str, repairs: Repairs) -> Native | None:
    opaque = block.opaque
    if {block.provider, None if opaque is None else opaque.provider} - {None, _GOOGLE}:
        repairs.note("reasoning_dropped", path, "another provider's reasoning means nothing to this one")
        return None
    if opaque is None or not opaque.value:
        repairs.note("reasoning_dropped", path, "reasoning without a signature does not go back")
        return None
    if not is_base64(opaque.value):
        repairs.note("reasoning_dropped", path, "the signature is no base64, and so none of this provider")
        return None
    fields = carried_fields(block.provider_metadata)
    return {**fields, "type": "thinking", "thinking": block.text or "", "signature": opaque.value}


def _call(block: ToolCallBlock, path: str, answer: Answer, repairs: Repairs) -> None:
    if block.provider_executed:
        native = hosted_call(block) if answer.own else None
        if native is None:
            repairs.note("server_call_dropped", path, "another provider ran this call, with tools of its own")
        else:
            answer.content.append(native)
        return
    id = answer.call_id
    if answer.add_call(block, id, answer.call_name) is None and block.signature:
        repairs.note("signature_dropped", path, "a call whose arguments are no object does not go back")
    elif block.signature:
        if block.provider in (None, _GOOGLE) and is_base64(block.signature):
            answer.kwargs.setdefault(SIGNATURES, {})[id] = block.signature
        else:
            repairs.note("opaque_dropped", path, "another provider's signature of the call means nothing to this one")


def _media(block: ImageBlock | AudioBlock | FileBlock, path: str, answer: Answer, repairs: Repairs) -> Native | None:
    native = media(block, "google", path, repairs)
    if native is None or not isinstance(block, ImageBlock) or not isinstance(block.source, Base64Source):
        return native
    fields = carried_fields(block.provider_metadata) if answer.own else {}
    url = f"data:{block.source.media_type};base64,{block.source.data}"
    return {**fields, "type": "image_url", "image_url": {"url": url}}


def _code(block: CodeBlock | CodeResultBlock) -> Native:
    whole = whole_block(block)
    if whole is not None:
        return whole
    if isinstance(block, CodeBlock):
        return {"type": "executable_code", "executable_code": block.code, "language": block.language}
    outcome = 1 if block.outcome == "ok" else 2
    return {"type": "code_execution_result", "code_execution_result": block.output, "outcome": outcome}
