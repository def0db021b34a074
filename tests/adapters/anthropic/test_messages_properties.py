"""Any history becomes one that the Messages API takes, or is refused; nothing sealed is lost without a word."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any

from anthropic.types import MessageParam, TextBlockParam
from hypothesis import assume, given
from hypothesis import strategies as st

from agjson import AgMessage, ReplayError
from agjson.adapters.anthropic import NativeMessages, messages_from_native, messages_to_native
from agjson.testing import messages as any_message
from agjson.types import (
    AgBlock,
    AgEmbeddedResource,
    AgOpaque,
    AgOpaqueKind,
    AgProviderMeta,
    AgRole,
    Base64Source,
    CompactionBlock,
    DocumentBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    ResourceBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from benchmarks.measure import fastest
from tests.support.anthropic_rules import REASONING, broken_rules
from tests.support.anthropic_types import fits
from tests.support.properties import examples

PNG = base64.b64encode(b"\x89PNG\r\n").decode()
TEXT = base64.b64encode(b"a text").decode()


def raw_types(messages: list[AgMessage]) -> set[str]:
    """The types of native blocks that are carried whole, of which the API's rules cannot be known."""
    found: set[str] = set()
    for message in messages:
        for block in message.content:
            for each in (block, *(block.content if isinstance(block, ToolResultBlock) else ())):
                if isinstance(each, ProviderRawBlock) and isinstance(each.raw, dict):
                    found.add(str(each.raw.get("type")))
    return found


def lost_reasoning(messages: list[AgMessage], native: NativeMessages) -> list[str]:
    """The seals of reasoning that neither went back nor stood in a place that a repair names."""
    sent: list[str] = []
    for message in native:
        blocks = message["content"] if isinstance(message["content"], list) else []
        sent += [block.get("signature") or block.get("data") for block in blocks if block["type"] in REASONING]
    named = [repair.path for repair in native.repairs]
    if any(repair.code == "compacted_dropped" for repair in native.repairs):
        return []
    owed: Counter[str] = Counter()
    for at, message in enumerate(messages):
        for index, block in enumerate(message.content):
            place = f"$[{at}].content[{index}]"
            if not isinstance(block, ReasoningBlock) or block.opaque is None or message.role == "notice":
                continue
            if place not in named and f"$[{at}]" not in named:
                owed[block.opaque.value] += 1
    return sorted((owed - Counter(sent)).elements())


def check(messages: list[AgMessage], **options: Any) -> NativeMessages | None:
    try:
        native = messages_to_native(messages, **options)
    except ReplayError as error:
        assert error.path.startswith("$[")
        return None
    assert broken_rules(native, raw_types=raw_types(messages)) == []
    assert lost_reasoning(messages, native) == []
    return native


@examples(150)
@given(st.lists(any_message(), max_size=4), st.sampled_from(["refuse", "drop"]))
def test_any_history_is_mended_or_refused(messages: list[AgMessage], unsupported: str) -> None:
    check(messages, unsupported=unsupported)


def bag(**values: Any) -> AgProviderMeta:
    return AgProviderMeta({name.replace("__", "/"): value for name, value in values.items()})


# A few ids that meet each other: of clients, of this provider's servers, and of other providers.
CLIENT_IDS = ["toolu_1", "toolu_2", "call.3:x", ""]
SERVER_IDS = ["srvtoolu_1", "srvtoolu_2", "ws_1"]
MCP_IDS = ["mcptoolu_1"]
NAMES = ["look", "a.b", "web_search"]

texts = st.sampled_from(["hello", "bye \n", " ", "", "ünï \U0001f600"]).map(lambda text: TextBlock(text=text))


def sealed(kind: AgOpaqueKind, value: str, provider: str | None) -> ReasoningBlock:
    return ReasoningBlock(text="hm", opaque=AgOpaque(kind=kind, value=value, provider=provider), provider=provider)


reasoning = st.one_of(
    st.builds(
        sealed,
        st.sampled_from(["signature", "redacted", "ciphertext"]),
        st.sampled_from(["sig1", "sig2", "sig3", ""]),
        st.sampled_from(["anthropic", "anthropic", None, "openai"]),
    ),
    st.just(ReasoningBlock(text="unsigned", provider="anthropic")),
)
client_calls = st.builds(
    lambda id, name, given, caller, native: ToolCallBlock(
        tool_call_id=id,
        name=name,
        input=given,
        provider_metadata=bag(
            **({"caller": {"type": "code_execution_20250825", "tool_id": caller}} if caller else {}),
            **({"agjson__nativeToolCallId": native} if native else {}),
        ),
    ),
    st.sampled_from(CLIENT_IDS),
    st.sampled_from(NAMES),
    st.sampled_from([{}, {"q": 1}, None, "text"]),
    st.sampled_from([None, None, "srvtoolu_1"]),
    st.sampled_from([None, None, "toolu_1"]),
)
server_calls = st.one_of(
    st.builds(
        lambda id, name: ToolCallBlock(tool_call_id=id, name=name, input={}, provider_executed=True),
        st.sampled_from(SERVER_IDS),
        st.sampled_from(["web_search", "code_execution"]),
    ),
    st.just(
        ToolCallBlock(tool_call_id="mcptoolu_1", name="ask", input={}, provider_executed=True, server_name="deepwiki")
    ),
)


def server_result(id: str, whole: bool) -> ToolResultBlock:
    ran = {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}
    native = {"type": "code_execution_tool_result", "tool_use_id": id, "content": ran}
    metadata = bag(anthropic__block=native) if whole else None
    return ToolResultBlock(tool_call_id=id, content=[], outcome="ok", provider_metadata=metadata)


server_results = st.builds(
    server_result, st.sampled_from([*SERVER_IDS, *MCP_IDS]), st.sampled_from([True, True, True, False])
)
media = st.sampled_from(
    [
        ImageBlock(source=Base64Source(media_type="image/png", data=PNG)),
        ImageBlock(source=UrlSource(url=f"data:image/png;base64,{PNG}")),
        ImageBlock(source=UrlSource(url="gs://bucket/a.png")),
        DocumentBlock(source=Base64Source(media_type="text/markdown", data=TEXT), title="notes"),
        DocumentBlock(source=UrlSource(url="https://example.com/a.pdf")),
        FileBlock(source=FileSource(file_id="file_1")),
        ResourceBlock(resource=AgEmbeddedResource(uri="ui://chart", mime_type="text/html;profile=mcp-app")),
        ResourceBlock(resource=AgEmbeddedResource(uri="file:///a.txt", text="a text")),
    ]
)
client_results = st.builds(
    lambda id, content, outcome, partial, structured, error: ToolResultBlock(
        tool_call_id=id,
        content=content,
        outcome=outcome,
        preliminary=partial,
        error_text=error,
        ui_data={"seen": "by the surface alone"},
        side_data="for the app alone",
        **structured,
    ),
    st.sampled_from(CLIENT_IDS),
    st.lists(st.one_of(texts, media), max_size=2),
    st.sampled_from([None, "ok", "error", "denied", "input_required"]),
    st.sampled_from([None, None, True]),
    st.sampled_from([{}, {"structured_content": {"a": 1}}, {"structured_content": None}]),
    st.sampled_from([None, "it broke"]),
)
raws = st.sampled_from(
    [
        ProviderRawBlock(vendor="anthropic", raw={"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
        ProviderRawBlock(vendor="anthropic", raw={"type": "mcp_tool_listing", "mcp_server_name": "a", "tools": []}),
        ProviderRawBlock(vendor="anthropic", raw={"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}}),
        ProviderRawBlock(vendor="anthropic", raw={"type": "tool_result", "tool_use_id": "toolu_2", "content": "raw"}),
        ProviderRawBlock(vendor="anthropic", raw={"type": "tool_use"}),
        ProviderRawBlock(vendor="anthropic", raw=None),
        ProviderRawBlock(vendor="google", raw={"type": "text", "text": "theirs"}),
    ]
)
compactions = st.sampled_from(
    [
        CompactionBlock(text="so far", provider="anthropic"),
        CompactionBlock(provider="anthropic", meta={"anthropic/compaction": {"type": "compaction", "content": None}}),
        CompactionBlock(text="so far", opaque=AgOpaque(kind="signature", value="s"), provider="anthropic"),
        CompactionBlock(text="so far", provider="openai"),
    ]
)


def message_of(role: AgRole, content: list[AgBlock], candidate: int | None) -> AgMessage:
    return AgMessage(id="m", role=role, content=content, candidate_index=candidate)


candidates = st.sampled_from([None, None, None, None, 0, 1])
said = st.one_of(texts, texts, reasoning, client_calls, server_calls, server_results, client_results, raws, compactions)
histories = st.lists(
    st.one_of(
        st.builds(message_of, st.just("assistant"), st.lists(said, max_size=6), candidates),
        st.builds(
            message_of, st.just("tool"), st.lists(st.one_of(client_results, server_results), max_size=3), candidates
        ),
        st.builds(message_of, st.just("user"), st.lists(st.one_of(texts, media), max_size=3), candidates),
        st.builds(message_of, st.sampled_from(["system", "notice"]), st.lists(texts, max_size=2), st.none()),
    ),
    max_size=7,
)


@examples(400)
@given(histories, st.sampled_from([(), ("server-side-fallback-2026-07-01",)]), st.booleans())
def test_histories_full_of_calls(messages: list[AgMessage], betas: tuple[str, ...], citations: bool) -> None:
    native = check(messages, unsupported="drop", betas=betas, document_citations=citations)
    assert native is not None
    if not betas:
        assert "fallback" not in [block["type"] for message in native for block in message["content"]]


@examples(150)
@given(histories)
def test_plain_histories_fit_the_types_of_the_sdk(messages: list[AgMessage]) -> None:
    native = messages_to_native(messages, unsupported="drop")
    assume(native and not native.beta)
    for message in native:
        fits(MessageParam, message)
    for block in native.system:
        fits(TextBlockParam, block)


@examples(300)
@given(histories)
def test_what_the_api_takes_comes_back_as_it_was(messages: list[AgMessage]) -> None:
    native = messages_to_native(messages, unsupported="drop")
    again = messages_to_native(messages_from_native(native, system=native.system))
    assert again == native
    assert again.system == native.system
    assert again.repairs == []


def _search_results_that_come_late(count: int) -> list[AgMessage]:
    found = AgProviderMeta({"anthropic/block": {"type": "web_search_tool_result", "content": []}})
    ids = [f"srvtoolu_{number}" for number in range(count)]
    history: list[AgMessage] = []
    for id in ids:
        call = ToolCallBlock(tool_call_id=id, name="web_search", input={}, provider_executed=True)
        history.append(AgMessage(id=f"u-{id}", role="user", content=[TextBlock(text="?")]))
        history.append(AgMessage(id=f"a-{id}", role="assistant", content=[call, TextBlock(text="x")]))
    results = [ToolResultBlock(tool_call_id=id, content=[], provider_metadata=found) for id in ids]
    return [*history, AgMessage(id="late", role="assistant", content=list[AgBlock](results))]


def test_a_long_history_with_everything_out_of_place_costs_linear_time() -> None:
    histories = [_search_results_that_come_late(count) for count in (500, 4_000)]
    native = messages_to_native(histories[0])
    assert [block["type"] for block in native[1]["content"]] == ["server_tool_use", "web_search_tool_result", "text"]
    times = fastest({str(len(each)): lambda each=each: messages_to_native(each) for each in histories}, 4)
    short, long = times.values()
    assert long < 24 * short  # 8 if it is linear, 64 if it is quadratic
