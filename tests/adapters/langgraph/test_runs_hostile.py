"""Messages of any shape break nothing, and what LangChain adds up of any sound chunks is what the stream folds to."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from agjson.adapters.langgraph._content import ANTHROPIC_TYPES
from tests.support.langgraph_messages import ROOT, Native, Stream, chunk, committed, last, part, streamed

TYPES = (
    *sorted(ANTHROPIC_TYPES),
    "apply_patch_call",
    "code_execution_result",
    "code_interpreter_call",
    "custom_tool_call",
    "document",
    "executable_code",
    "file",
    "file_search_call",
    "function_call",
    "image",
    "image_generation_call",
    "image_url",
    "input_audio",
    "input_json_delta",
    "invalid_tool_call",
    "mcp_call",
    "media",
    "non_standard",
    "odd",
    "reasoning",
    "reasoning_content",
    "refusal",
    "server_tool_call",
    "server_tool_call_chunk",
    "server_tool_result",
    "tool_call",
    "tool_call_chunk",
    "web_search_call",
    "web_search_tool_result",
)
MEMBERS = (
    *("text", "thinking", "reasoning", "reasoning_content", "id", "name", "input", "args", "arguments", "call_id"),
    *("index", "partial_json", "signature", "data", "summary", "encrypted_content", "content", "citations"),
    *("annotations", "extras", "value", "source", "image_url", "url", "base64", "mime_type", "output", "tool_call_id"),
    *("tool_use_id", "status", "error", "outputs", "queries", "results", "action", "code", "language", "outcome"),
    *("result", "refusal", "server_label", "caller", "source_type", "file_id", "input_audio"),
)
TEXTS = ("", "a", "{}", '{"x":1', "c1", "lc_1", "rs_1", "\ud83d", "\U0001f600", "data:image/png;base64,AAAA")


def any_value(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value, often a block."""
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(TEXTS)
    if kind < 0.5 or depth > 2:
        return rng.choice((0, 1, -1, 1.5, True, False, None))
    if kind < 0.75:
        return [any_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return any_block(rng, depth + 1)


def any_block(rng: random.Random, depth: int = 0) -> Native:
    """An object that may pass for a block."""
    block: Native = {"type": rng.choice(TYPES) if rng.random() < 0.95 else any_value(rng, depth + 1)}
    for _ in range(rng.randint(0, 5)):
        block[rng.choice(MEMBERS)] = any_value(rng, depth + 1)
    if rng.random() < 0.5:
        block["index"] = rng.choice((0, 1, "lc_1"))
    if rng.random() < 0.5:
        block |= {"id": rng.choice(("c1", "c2")), "name": rng.choice(("f", "g"))}
    return block


def any_message(rng: random.Random) -> Native:
    """A message with an id, and members of any shape."""
    kind = rng.choice(("AIMessageChunk",) * 6 + ("ai", "tool", "human", "system", "chat", "function", "remove"))
    content = rng.choice((any_value(rng), [any_block(rng) for _ in range(rng.randint(0, 3))], "hello"))
    message: Native = {"type": kind, "content": content}
    message["id"] = rng.choice(("lc_run--1", "lc_run--2", "m1", "tm1", None))
    fragment = part(rng.choice(("f", None)), rng.choice(('{"x"', "{}", None)), rng.choice(("c1", "c2", None)), 0)
    call = {"name": "f", "args": {}, "id": "c1"}
    beside = {rng.choice(("reasoning_content", "reasoning", "refusal")): any_value(rng)}
    metadata = {"model_provider": rng.choice(("anthropic", "openai", "google_genai", "bedrock_converse", 7))}
    for name, usual in (
        ("tool_call_chunks", [fragment]),
        ("tool_calls", [call]),
        ("invalid_tool_calls", [{**call, "args": "{x"}]),
        ("additional_kwargs", beside),
        ("response_metadata", metadata),
        ("usage_metadata", {"input_tokens": 1}),
        ("chunk_position", "last"),
        ("status", "error"),
        ("artifact", {"x": 1}),
    ):
        if rng.random() < 0.3:
            message[name] = usual if rng.random() < 0.7 else any_value(rng)
    if rng.random() < 0.1:
        message["response_metadata"] = {
            "agjson/result": {name: any_value(rng) for name in ("outcome", "added", "uiData")}
        }
    if kind == "tool":
        message["tool_call_id"] = rng.choice(("c1", "c2", "c9"))
    return message


@pytest.mark.parametrize("seed", range(250))
def test_messages_of_any_shape_make_a_sound_stream(seed: int) -> None:
    rng = random.Random(seed)
    stream = Stream(drop_uncommitted=rng.random() < 0.3)

    for _ in range(rng.randint(1, 14)):
        message, step = any_message(rng), rng.random()
        if step < 0.6:
            stream.take(message, key=rng.choice((1, 2, None)))
        elif step < 0.9:
            stream.commit(message)
        elif step < 0.95:
            stream.runs.end_task("task-1", "model", scope=ROOT)
        else:
            stream.runs.remove(rng.choice(("m1", "lc_run--1")), scope=ROOT)

    stream.end()


# What LangChain adds up


def pieces(rng: random.Random, text: str) -> list[str]:
    """A text in pieces."""
    cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(0, 4)))
    return [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def called(rng: random.Random, id: str, index: int) -> list[Native]:
    """The fragments of a call, for the list beside the content."""
    args = json.dumps({"q": rng.choice(("x", "\U0001f600", [1, {"y": None}]))})
    return [part("look", "", id, index), *(part(None, each, None, index) for each in pieces(rng, args))]


def of_anthropic(rng: random.Random) -> list[Native]:
    """Chunks in the manner of the Messages API."""
    said: Native = {"response_metadata": {"model_provider": "anthropic"}}
    found: list[Native] = []
    for index in range(rng.randint(1, 5)):
        kind = rng.choice(("text", "thinking", "call"))
        if kind == "text":
            found += [chunk([{"type": "text", "text": each, "index": index}], **said) for each in pieces(rng, "Hello.")]
        elif kind == "thinking":
            for each in pieces(rng, "Hm, well."):
                found.append(chunk([{"type": "thinking", "thinking": each, "index": index}], **said))
            found.append(chunk([{"type": "thinking", "thinking": "", "signature": "c2ln==", "index": index}], **said))
        else:
            opening, *more = called(rng, f"c{index}", index)
            native = {"type": "tool_use", "id": f"c{index}", "name": "look", "input": {}, "index": index}
            found.append(chunk([native], tool_call_chunks=[opening], **said))
            for each in more:
                delta = {"type": "input_json_delta", "partial_json": each["args"], "index": index}
                found.append(chunk([delta], tool_call_chunks=[each], **said))
    return found


def of_responses(rng: random.Random) -> list[Native]:
    """Chunks in the manner of the Responses API."""
    said: Native = {"response_metadata": {"model_provider": "openai"}}
    found = [chunk("", "resp_1", **said)]
    for index in range(rng.randint(1, 4)):
        kind = rng.choice(("text", "reasoning", "call"))
        if kind == "text":
            found += [chunk([{"type": "text", "text": each, "index": index}], **said) for each in pieces(rng, "Hello.")]
            found.append(chunk([{"type": "text", "text": "", "id": f"msg_{index}", "index": index}], **said))
        elif kind == "reasoning":
            found.append(chunk([{"type": "reasoning", "id": f"rs_{index}", "summary": [], "index": index}], **said))
            for place in range(rng.randint(0, 2)):
                for each in pieces(rng, "Because."):
                    summary = [{"index": place, "type": "summary_text", "text": each}]
                    found.append(chunk([{"type": "reasoning", "summary": summary, "index": index}], **said))
            if rng.random() < 0.5:
                sealed = {"type": "reasoning", "encrypted_content": "gAA=", "index": index}
                found.append(chunk([sealed], **said))
        else:
            opening, *more = called(rng, f"c{index}", index)
            item = {"type": "function_call", "name": "look", "arguments": "", "call_id": f"c{index}", "index": index}
            found.append(chunk([{**item, "id": f"fc_{index}"}], tool_call_chunks=[opening], **said))
            for each in more:
                delta = {"type": "function_call", "arguments": each["args"], "index": index}
                found.append(chunk([delta], tool_call_chunks=[each], **said))
    return found


def of_completions(rng: random.Random) -> list[Native]:
    """Chunks in the manner of chat completions, with parallel calls whose fragments alternate."""
    said: Native = {"response_metadata": {"model_provider": "deepseek"}}
    found: list[Native] = []
    if rng.random() < 0.5:
        found += [chunk(additional_kwargs={"reasoning_content": each}, **said) for each in pieces(rng, "Let me see.")]
    if rng.random() < 0.7:
        found += [chunk(each, **said) for each in pieces(rng, "Hello.")]
    queues = [called(rng, f"c{index}", index) for index in range(rng.randint(0, 3))]
    found += [chunk(tool_call_chunks=[queue.pop(0)], **said) for queue in queues]
    while any(queues):
        queue = rng.choice([queue for queue in queues if queue])
        found.append(chunk(tool_call_chunks=[queue.pop(0)], **said))
    return found


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("make", [of_anthropic, of_responses, of_completions])
def test_a_stream_folds_to_what_langchain_adds_up(make: Any, seed: int) -> None:
    rng = random.Random(seed)
    chunks = [*make(rng), last()]
    natives = [AIMessageChunk.model_validate(each) for each in chunks]
    total = natives[0]
    for each in natives[1:]:
        total = total + each
    whole = json.loads(json.dumps(message_chunk_to_message(total).model_dump()))

    assert streamed(chunks) == committed(whole)

    stream = Stream()
    stream.take(*chunks)
    assert stream.commit(whole) == []
    assert not stream.runs.take_resync()
