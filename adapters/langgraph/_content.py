"""What the content of a LangChain message says, as blocks: native content of a provider and LangChain's own (spec §2).

Live messages are read by the same functions, from what their chunks add up to, so that a stream and its stored message
say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias, cast

from agjson.adapters.anthropic._in_blocks import block_from_native
from agjson.adapters.langgraph._calls import CALL_TYPES, Calls, hosted_item, read_call, server_call, server_result_block
from agjson.adapters.langgraph._carry import BLOCK, FIELDS, FROM, PARTS, SIGNATURES, VENDOR, provider_name
from agjson.adapters.langgraph._citations import read_annotations
from agjson.adapters.langgraph._media import MEDIA_TYPES, read_media
from agjson.types import (
    AgBlock,
    AgOpaque,
    AgProviderMeta,
    Base64Source,
    CodeBlock,
    CodeResultBlock,
    CompactionBlock,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    TextBlock,
)

__all__ = [
    "ANTHROPIC_TYPES",
    "Reading",
    "beside_content",
    "read_blocks",
    "read_content",
    "reasoning_beside",
    "rest_of_kwargs",
]

Native: TypeAlias = dict[str, Any]

ANTHROPIC_TYPES = frozenset(
    (
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "compaction",
        "container_upload",
        "mcp_tool_listing",
        "fallback",
        "search_result",
    )
)
"""Native block types of the Messages API that an answer may hold, beside results of server tools."""

# Of them, those that no other provider of LangChain uses, so that they are known without its name.
_ANTHROPIC_ALONE = ANTHROPIC_TYPES - {"text", "thinking", "compaction"}


class Reading:
    """What is known of a message while its blocks are read.

    Args:
        message: the message; nothing but ``response_metadata``, ``tool_calls``, ``invalid_tool_calls`` and
            ``additional_kwargs`` is looked at.

    Attributes:
        provider: the provider's name, if the message tells it.
        calls: the calls that the message lists, and which of them a block has told.
    """

    __slots__ = ("calls", "provider")

    def __init__(self, message: Mapping[str, Any]) -> None:
        said = message.get("response_metadata")
        self.provider = provider_name(said.get("model_provider")) if isinstance(said, dict) else None
        kwargs = message.get("additional_kwargs")
        signatures = kwargs.get(SIGNATURES) if isinstance(kwargs, dict) else None
        self.calls = Calls(message.get("tool_calls"), message.get("invalid_tool_calls"), signatures)


def read_blocks(message: Mapping[str, Any]) -> list[AgBlock]:
    """The blocks of a whole message: reasoning beside its content, its content, the calls that no content told.

    A call that the provider ran is followed by its result where the message holds that too.

    Args:
        message: a message as plain data, in the shape of its pydantic dump; of any role but ``tool``.
    """
    reading = Reading(message)
    before, after = beside_content(message.get("additional_kwargs"), reading)
    blocks = before
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        blocks += read_content(part, reading)
    blocks += reading.calls.untold()
    return blocks + after


def read_content(part: Any, reading: Reading) -> list[AgBlock]:
    """The blocks of one part of the content; none for an empty text, several for a call with its result.

    Args:
        part: a text or a native block.
        reading: what is known of the message; a call that the part tells is marked in it.
    """
    if isinstance(part, str):
        return [TextBlock(text=part)] if part else []
    if part is None:
        return []
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        return [_raw(part, reading)]
    if kind in CALL_TYPES:
        call = read_call(part, reading.provider, reading.calls)
        return [_raw(_cleaned(part), reading)] if call is None else [call]
    if _is_anthropic(kind, part, reading.provider):
        # A chunk may hold a citation or a signature alone.
        growing = {kind: ""} if kind in ("text", "thinking") else {}
        return _nothing_empty(block_from_native({**growing, **_cleaned(part)}))
    reader = _READERS.get(kind)
    found = None if reader is None else reader(part, reading)
    if found is None and kind in MEDIA_TYPES:
        media = read_media(part)
        found = None if media is None else [media]
    if found is None:
        found = hosted_item(_cleaned(part))
    return [_raw(_cleaned(part), reading)] if found is None else found


def _cleaned(part: Mapping[str, Any]) -> Native:
    """A native block without what LangChain has added to it for merging, and without members that say nothing."""
    keep_null = part.get("type") == "compaction"
    return {
        name: value
        for name, value in part.items()
        if name not in ("index", "partial_json") and (value is not None or (keep_null and name == "content"))
    }


def _is_anthropic(kind: str, part: Native, provider: str | None) -> bool:
    if kind in _ANTHROPIC_ALONE or (kind.endswith("_tool_result") and "tool_use_id" in part):
        return True
    if kind in ("image", "document") and isinstance(part.get("source"), dict):
        return True
    if provider == "anthropic":
        return kind in ANTHROPIC_TYPES and "annotations" not in part
    return kind == "thinking" and provider in (None, "bedrock")


def _nothing_empty(block: AgBlock) -> list[AgBlock]:
    """The block, unless it is a text that says nothing at all."""
    if isinstance(block, TextBlock) and not block.text and not block.citations and block.provider_metadata is None:
        return []
    return [block]


def _raw(native: Any, reading: Reading) -> AgBlock:
    return ProviderRawBlock(vendor=reading.provider or VENDOR, raw=native)


def _bag(part: Mapping[str, Any], said: Collection[str], **more: Any) -> AgProviderMeta | None:
    """The bag of a block: native members that its neutral form does not say (those but `said`), and `more` entries."""
    rest = {
        name: value
        for name, value in part.items()
        if name not in ("type", "index") and name not in said and value is not None and value != [] and value != {}
    }
    bag = {**more, FIELDS: rest} if rest else more
    return AgProviderMeta(bag) if bag else None


# Text


def _text(part: Native, reading: Reading) -> list[AgBlock] | None:
    text, annotations = part.get("text", ""), part.get("annotations")
    if text is None:
        text = ""
    if not isinstance(text, str):
        return None
    citations = read_annotations(annotations, text) if isinstance(annotations, list) else []
    block = TextBlock(text=text, citations=citations or None, provider_metadata=_bag(part, ("text",)))
    return _nothing_empty(block)


def _refusal(part: Native, reading: Reading) -> list[AgBlock] | None:
    text = part.get("refusal")
    if not isinstance(text, str):
        return None
    return [TextBlock(text=text, provider_metadata=AgProviderMeta({BLOCK: _cleaned(part)}))]


# Reasoning


def _opaque(value: object, kind: str, provider: str | None) -> AgOpaque | None:
    sealed = isinstance(value, str) and bool(value)
    return AgOpaque(kind=cast(Any, kind), value=cast(str, value), provider=provider) if sealed else None


def _reasoning(part: Native, reading: Reading) -> list[AgBlock] | None:
    if "summary" in part or "encrypted_content" in part:
        return _reasoning_item(part, reading)
    text, extras = part.get("reasoning", ""), part.get("extras")
    extras = dict(extras) if isinstance(extras, dict) else {}
    if not isinstance(text, str):
        return None
    provider = reading.provider
    opaque = _opaque(extras.get("signature"), "signature", provider)
    if opaque is not None:
        del extras["signature"]
    elif (opaque := _opaque(extras.get("encrypted_content"), "encrypted", provider)) is not None:
        del extras["encrypted_content"]
    extras = {name: value for name, value in extras.items() if value is not None and value != []}
    item_id = part.get("id")
    named = isinstance(item_id, str) and bool(item_id)
    said = ("reasoning", "extras", "id") if named else ("reasoning", "extras")
    rest = {name: value for name, value in part.items() if name not in said}
    if extras:
        rest["extras"] = extras
    return [
        ReasoningBlock(
            text=text,
            opaque=opaque,
            provider=provider,
            item_id=cast(str, item_id) if named else None,
            provider_metadata=_bag(rest, ()),
        )
    ]


def _summary_texts(summary: object) -> list[str] | None:
    """The texts of the summary parts of a reasoning item, in the order of the parts; None if it is no such list."""
    if not isinstance(summary, list):
        return None
    texts: list[tuple[float, str]] = []
    for place, each in enumerate(summary):
        text = each.get("text", "") if isinstance(each, dict) else None
        if not isinstance(text, str):
            return None
        index = each.get("index")
        texts.append((index if type(index) is int else place, text))
    return [text for _, text in sorted(texts, key=lambda each: each[0])]


def _reasoning_item(part: Native, reading: Reading, **more: Any) -> list[AgBlock] | None:
    """A reasoning item of the Responses API. Its summary parts are one text, as the fold joins them."""
    texts = _summary_texts(part.get("summary", []))
    if texts is None:
        return None
    provider = reading.provider or "openai"
    item_id = part.get("id")
    named = isinstance(item_id, str) and bool(item_id)
    said = ["summary", "encrypted_content"] + (["id"] if named else [])
    if len(texts) > 1:
        more[PARTS] = [len(text) for text in texts]
    return [
        ReasoningBlock(
            text="".join(texts),
            opaque=_opaque(part.get("encrypted_content"), "encrypted", provider),
            provider=provider,
            item_id=cast(str, item_id) if named else None,
            provider_metadata=_bag(part, said, **more),
        )
    ]


def _thinking(part: Native, reading: Reading) -> list[AgBlock] | None:
    """Gemini's thinking: it has the form of Anthropic's, but it is not signed by the same hand."""
    text = part.get("thinking", "")
    if not isinstance(text, str):
        return None
    opaque = _opaque(part.get("signature"), "signature", reading.provider)
    said = ("thinking", "signature") if opaque is not None else ("thinking",)
    bag = _bag(part, said)
    return [ReasoningBlock(text=text, opaque=opaque, provider=reading.provider, provider_metadata=bag)]


def _reasoning_content(part: Native, reading: Reading) -> list[AgBlock] | None:
    """Reasoning of Bedrock's Converse API."""
    inner = part.get("reasoning_content")
    if not isinstance(inner, dict):
        return None
    provider = reading.provider or "bedrock"
    text = inner.get("text", "")
    if not isinstance(text, str):
        return None
    opaque = _opaque(inner.get("signature"), "signature", provider)
    said = ["text", "type"] if inner.get("type") in (None, "text") else ["text"]
    if opaque is not None:
        said.append("signature")
    elif (opaque := _opaque(inner.get("redacted_content"), "redacted", provider)) is not None:
        said.append("redacted_content")
    left = {name: value for name, value in inner.items() if name not in said}
    rest = {name: value for name, value in part.items() if name != "reasoning_content"}
    if left:
        rest["reasoning_content"] = left
    return [ReasoningBlock(text=text, opaque=opaque, provider=provider, provider_metadata=_bag(rest, ()))]


def _compaction(part: Native, reading: Reading) -> list[AgBlock] | None:
    """What the Responses API has compacted; Anthropic's is read by its own adapter."""
    provider = reading.provider or "openai"
    opaque = _opaque(part.get("encrypted_content"), "encrypted", provider)
    if opaque is None:
        return None
    return [CompactionBlock(opaque=opaque, provider=provider, meta={BLOCK: _cleaned(part)})]


# Code


def _code(part: Native, reading: Reading) -> list[AgBlock] | None:
    code, language = part.get("executable_code"), part.get("language")
    if not isinstance(code, str):
        return None
    named = language if isinstance(language, str) and language else "PYTHON"
    return [CodeBlock(language=named.lower(), code=code, meta={BLOCK: _cleaned(part)})]


_CODE_OUTCOMES = {1: "ok", 2: "failed", 3: "deadline_exceeded"}


def _code_result(part: Native, reading: Reading) -> list[AgBlock] | None:
    output, outcome = part.get("code_execution_result"), part.get("outcome")
    if output is None:
        output = ""
    told = _CODE_OUTCOMES.get(outcome, "ok") if type(outcome) is int else None
    if told is None:
        named = str(outcome).rpartition("OUTCOME_")[2].lower() if isinstance(outcome, str) else "ok"
        told = named if named in ("failed", "deadline_exceeded") else "ok"
    if not isinstance(output, str):
        return None
    return [CodeResultBlock(outcome=cast(Any, told), output=output, meta={BLOCK: _cleaned(part)})]


# The rest


def _image_call(part: Native, reading: Reading) -> list[AgBlock] | None:
    """An image that the Responses API has made."""
    data = part.get("result")
    if not isinstance(data, str) or not data:
        return None
    form = part.get("output_format")
    kind = f"image/{form}" if isinstance(form, str) and form else _image_type(data)
    bag = AgProviderMeta({BLOCK: {name: value for name, value in _cleaned(part).items() if name != "result"}})
    return [ImageBlock(source=Base64Source(media_type=kind, data=data), provider_metadata=bag)]


def _image_type(data: str) -> str:
    """What base64 text of an image begins with tells its type."""
    for head, kind in (("/9j/", "image/jpeg"), ("UklGR", "image/webp"), ("R0lGOD", "image/gif")):
        if data.startswith(head):
            return kind
    return "image/png"


def _non_standard(part: Native, reading: Reading) -> list[AgBlock] | None:
    value = part.get("value")
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or value["type"] == "non_standard":
        return None
    found = read_content(value, reading)
    return None if any(isinstance(block, ProviderRawBlock) for block in found) else found


def _server_call(part: Native, reading: Reading) -> list[AgBlock] | None:
    call = server_call(part, reading.provider)
    return None if call is None else [call]


def _server_result(part: Native, reading: Reading) -> list[AgBlock] | None:
    result = server_result_block(part, reading.provider)
    return None if result is None else [result]


_READERS: dict[str, Callable[[Native, Reading], list[AgBlock] | None]] = {
    "text": _text,
    "refusal": _refusal,
    "reasoning": _reasoning,
    "thinking": _thinking,
    "reasoning_content": _reasoning_content,
    "compaction": _compaction,
    "executable_code": _code,
    "code_execution_result": _code_result,
    "image_generation_call": _image_call,
    "non_standard": _non_standard,
    "server_tool_call": _server_call,
    "server_tool_call_chunk": _server_call,
    "server_tool_result": _server_result,
}


# Beside the content


def beside_content(kwargs: object, reading: Reading) -> tuple[list[AgBlock], list[AgBlock]]:
    """The blocks that ``additional_kwargs`` hold: what comes before the content, and what comes after it.

    Args:
        kwargs: ``additional_kwargs`` of the message.
        reading: what is known of the message.
    """
    if not isinstance(kwargs, dict) or not kwargs:
        return [], []
    before = list(_reasoning_beside(kwargs, reading))
    after: list[AgBlock] = []
    refusal = kwargs.get("refusal")
    if isinstance(refusal, str) and refusal:
        after.append(TextBlock(text=refusal, provider_metadata=AgProviderMeta({FROM: "additional_kwargs"})))
    return before, after


def _reasoning_beside(kwargs: Native, reading: Reading) -> Iterator[AgBlock]:
    item = kwargs.get("reasoning")
    if isinstance(item, dict):
        yield from _reasoning_item(item, reading, **{FROM: "additional_kwargs"}) or ()
    text = kwargs.get("reasoning_content")
    if isinstance(text, str) and text:
        yield reasoning_beside(text, reading)


def reasoning_beside(text: str, reading: Reading) -> ReasoningBlock:
    """Reasoning that a model of the OpenAI kind tells in ``additional_kwargs.reasoning_content``.

    Args:
        text: the reasoning.
        reading: what is known of the message.
    """
    bag = AgProviderMeta({FROM: "additional_kwargs"})
    return ReasoningBlock(text=text, provider=reading.provider or VENDOR, provider_metadata=bag)


def rest_of_kwargs(kwargs: object) -> Native:
    """What of ``additional_kwargs`` no block says.

    Args:
        kwargs: ``additional_kwargs`` of the message.
    """
    if not isinstance(kwargs, dict):
        return {}
    said = {SIGNATURES, "function_call", "tool_calls"}
    said.update(name for name in ("refusal", "reasoning_content") if isinstance(kwargs.get(name), str))
    if isinstance(kwargs.get("reasoning"), dict):
        said.add("reasoning")
    return {name: value for name, value in kwargs.items() if name not in said and value is not None and value != {}}
