"""What holds of every history: it goes back as it must or is refused by its place, and nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from msgspec.structs import replace

from agjson.adapters.langgraph.messages import (
    NativeMessages,
    Provider,
    messages_from_native,
    messages_to_native,
)
from agjson.errors import ReplayError, ValidationError
from agjson.testing.strategies import blocks, json_values, messages, results
from agjson.types import AgBlock, AgMessage, AgReduceResult, ToolCallBlock, ToolResultBlock
from agjson.wire import decode_message, encode
from tests.support.langgraph_wire import Native, seen
from tests.support.properties import examples

PROVIDERS: tuple[Provider | None, ...] = ("anthropic", "openai-responses", "openai-chat", "google", "bedrock", None)

IDS = st.sampled_from(["c1", "c2", "c3"])


@st.composite
def _block(draw: st.DrawFn) -> AgBlock:
    """A block whose calls and results often belong together."""
    block = draw(blocks())
    if isinstance(block, ToolCallBlock):
        return replace(block, tool_call_id=draw(IDS), provider_executed=draw(st.sampled_from([None, None, True])))
    if isinstance(block, ToolResultBlock):
        return replace(block, tool_call_id=draw(IDS))
    return block


@st.composite
def _histories(draw: st.DrawFn) -> list[AgMessage]:
    """Histories of any messages, and ones whose blocks stand where they may."""
    if draw(st.booleans()):
        return draw(st.lists(messages(), max_size=5))
    history: list[AgMessage] = []
    for index in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from(["user", "assistant", "tool", "system", "notice"]))
        content = draw(st.lists(_block(), max_size=4))
        if role == "tool":
            content = [block for block in content if isinstance(block, ToolResultBlock)]
        elif role == "system":
            content = [block for block in content if block.type == "text"]
        message = draw(messages())
        history.append(replace(message, id=f"m{index}", role=role, content=content))
    return history


def _converted(history: Sequence[AgMessage], provider: Provider | None, **options: Any) -> NativeMessages | None:
    try:
        return messages_to_native(history, provider=provider, **options)
    except ReplayError as error:
        assert error.path.startswith("$")
        return None


@pytest.mark.parametrize("provider", PROVIDERS)
@given(history=_histories(), drop=st.booleans())
@examples(30)
def test_a_history_is_converted_or_refused_by_its_place(
    provider: Provider | None, history: list[AgMessage], drop: bool
) -> None:
    before = encode(history)
    native = _converted(history, provider, unsupported="drop" if drop else "refuse")
    assert encode(history) == before
    if native is None:
        return
    assert all(repair.path.startswith("$") for repair in native.repairs)
    _assert_sound(native)


def _assert_sound(native: Sequence[BaseMessage]) -> None:
    """Each id once, each result behind its own call, each call with its result."""
    ids = [message.id for message in native]
    assert len(set(ids)) == len(ids) and all(ids)
    open_calls: dict[str, str] = {}
    for message in native:
        if isinstance(message, AIMessage):
            assert not open_calls
            for call in (*message.tool_calls, *message.invalid_tool_calls):
                assert call["id"] and call["id"] not in open_calls
                open_calls[call["id"]] = call["name"] or ""
        elif isinstance(message, ToolMessage):
            open_calls.pop(message.tool_call_id)
        else:
            assert not open_calls
    assert not open_calls


@pytest.mark.parametrize("provider", PROVIDERS)
@given(history=_histories())
@examples(30)
def test_a_history_that_went_back_and_is_read_goes_back_the_same(
    provider: Provider | None, history: list[AgMessage]
) -> None:
    first = _converted(history, provider, unsupported="drop", plain=True)
    if first is None:
        return
    read = messages_from_native(first)
    second = messages_to_native(read, provider=provider, plain=True)
    assert second == first
    assert messages_from_native(second) == read


@given(result=results())
@examples(30)
def test_a_fold_goes_back_without_what_waits(result: AgReduceResult) -> None:
    native = _converted(result.messages, None, turns=result.turns, unsupported="drop")
    if native is not None:
        _assert_sound(native)


@given(history=_histories())
@examples(30)
def test_objects_and_plain_data_say_the_same(history: list[AgMessage]) -> None:
    plain = _converted(history, None, unsupported="drop", plain=True)
    built = _converted(history, None, unsupported="drop")
    if plain is not None and built is not None:
        assert messages_from_native(plain) == messages_from_native(built)
        assert plain.repairs == built.repairs


KNOWN = {
    "anthropic": {
        "text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking", "compaction",
        "server_tool_use", "mcp_tool_use", "web_search_tool_result", "container_upload", "search_result",
    },
    "openai-chat": {"text", "image_url", "file", "input_audio", "refusal", "function"},
    "openai-responses": {
        "message", "input_text", "input_image", "input_file", "output_text", "refusal", "reasoning", "summary_text",
        "function_call", "function_call_output", "compaction",
    },
}  # fmt: skip


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "openai-chat", "google"])
def test_no_block_of_another_kind_is_on_the_wire(provider: Provider) -> None:
    with seen(provider) as body:

        @given(history=_histories())
        @examples(30)
        def each(history: list[AgMessage]) -> None:
            native = _converted(history, provider, unsupported="drop")
            if native and any(message.type != "system" for message in native):
                sent = body(native)
                if provider == "google":
                    assert '"type"' not in encode([_without_data(turn) for turn in sent["contents"]]).decode()
                else:
                    assert set(_types(sent)) <= KNOWN[provider]

        each()


def _types(sent: Native) -> list[str]:
    """The types of the blocks of a request; not of what a call or a result says."""
    found: list[str] = []
    for turn in sent.get("messages", sent.get("input", [])):
        for name in ("content", "output", "summary", "tool_calls"):
            parts = turn.get(name)
            for part in parts if isinstance(parts, list) else []:
                found.append(part["type"])
                inner = part.get("content") if part["type"] == "tool_result" else None
                found += [each["type"] for each in inner] if isinstance(inner, list) else []
        if "type" in turn:
            found.append(turn["type"])
    return found


def _without_data(turn: Native) -> Native:
    """A turn without what calls and results say."""
    kept = ("text", "thought", "thoughtSignature", "inlineData", "fileData", "executableCode", "codeExecutionResult")
    return {"parts": [{name: part[name] for name in kept if name in part} for part in turn["parts"]]}


_PARTS = st.sampled_from(
    [
        "text", "thinking", "redacted_thinking", "reasoning", "reasoning_content", "tool_use", "tool_call",
        "function_call", "custom_tool_call", "computer_call", "web_search_call", "mcp_call", "image", "image_url",
        "file", "audio", "input_audio", "document", "refusal", "non_standard", "server_tool_call",
        "server_tool_result", "compaction", "executable_code", "code_execution_result", "web_search_tool_result", "x",
    ]
)  # fmt: skip
_MEMBERS = st.sampled_from(
    [
        "text", "id", "call_id", "name", "input", "args", "arguments", "summary", "signature", "extras", "source",
        "base64", "url", "file_id", "mime_type", "image_url", "value", "reasoning", "content", "tool_use_id", "data",
        "annotations", "citations", "encrypted_content", "output", "tool_call_id", "index",
    ]
)  # fmt: skip
_parts = st.one_of(
    json_values(max_depth=1),
    st.builds(
        lambda kind, members: {"type": kind, **members},
        _PARTS,
        st.dictionaries(_MEMBERS, json_values(max_depth=2), max_size=4),
    ),
)
_natives = st.one_of(
    json_values(),
    st.builds(
        lambda kind, members: {"type": kind, **members},
        st.sampled_from(["human", "ai", "AIMessageChunk", "tool", "system", "constructor", "function", "remove"]),
        st.fixed_dictionaries(
            {"content": st.one_of(st.text(max_size=3), st.lists(_parts, max_size=3), json_values(max_depth=1))},
            optional={
                "id": json_values(max_depth=1),
                "name": json_values(max_depth=1),
                "tool_calls": st.one_of(json_values(max_depth=1), st.lists(_parts, max_size=2)),
                "invalid_tool_calls": st.one_of(json_values(max_depth=1), st.lists(_parts, max_size=2)),
                "tool_call_id": st.one_of(IDS, json_values(max_depth=1)),
                "status": json_values(max_depth=1),
                "artifact": json_values(max_depth=1),
                "usage_metadata": json_values(max_depth=2),
                "additional_kwargs": st.one_of(json_values(max_depth=1), st.dictionaries(st.text(max_size=2), _parts)),
                "response_metadata": st.one_of(
                    json_values(max_depth=1),
                    st.fixed_dictionaries(
                        {"model_provider": st.sampled_from(["anthropic", "openai", "google_genai", "bedrock", "x"])}
                    ),
                ),
                "kwargs": json_values(max_depth=1),
                "data": json_values(max_depth=1),
            },
        ),
    ),
)


@given(native=st.lists(_natives, max_size=3))
@examples(300)
def test_whatever_is_no_message_is_refused_by_its_place(native: list[Any]) -> None:
    before = encode(native)
    try:
        read = messages_from_native(native)
    except ValidationError as error:
        assert error.path.startswith("$[")
        return
    finally:
        assert encode(native) == before
    assert [decode_message(encode(message)) for message in read] == read
    _converted(read, None, unsupported="drop")
