"""The request that leaves: it fits the SDK's own types, and the real client sends it as it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, get_type_hints

import anthropic
import pydantic
import pytest
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_create_params

from agjson import StartInput, ToolResultInput
from agjson.adapters.anthropic import AnthropicCall, to_native
from agjson.adapters.anthropic.inbound import BETA_PARAMS
from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgOpaque,
    AgProviderMeta,
    AgReasoningConfig,
    AgResponseFormat,
    AgRunConfig,
    AgToolDef,
    AgToolResult,
    Base64Source,
    CompactionBlock,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlCitation,
    UrlSource,
)
from tests.support.anthropic_history import message
from tests.support.anthropic_types import fits

SEARCH = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "title": "A", "url": "u", "encrypted_content": "E==", "page_age": None}],
}
CITED = UrlCitation(url="u", title="A", cited_text="so", encrypted_index="E==")
HISTORY = [
    message("system", "Be kind."),
    message(
        "user",
        "look at these",
        ImageBlock(source=Base64Source(media_type="image/png", data="iVBORw==")),
        DocumentBlock(source=UrlSource(url="https://a.example/a.pdf"), title="A"),
    ),
    message(
        "assistant",
        ReasoningBlock(text="hm", opaque=AgOpaque(kind="signature", value="s==", provider="anthropic")),
        ToolCallBlock(tool_call_id="srvtoolu_1", name="web_search", input={"query": "a"}, provider_executed=True),
        ToolResultBlock(
            tool_call_id="srvtoolu_1", content=[], provider_metadata=AgProviderMeta({"anthropic/block": SEARCH})
        ),
        TextBlock(text="so", citations=[CITED]),
        ToolCallBlock(tool_call_id="toolu_1", name="look", input={"city": "Bern"}),
    ),
]
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


def rich_call(**options: Any) -> AnthropicCall:
    ag_input = StartInput(
        thread_id="thread",
        turn_id="turn",
        messages=[message("user", "and?")],
        capabilities=AgClientCapabilities(frontend_tools=[AgFrontendTool(name="pick", input_schema=SCHEMA)]),
        run=AgRunConfig(
            model="claude-test",
            system="Be short.",
            tools=[AgToolDef(name="look", description="Looks.", input_schema=SCHEMA, strict=True)],
            tool_choice="auto",
            response_format=AgResponseFormat(schema=SCHEMA),
            reasoning=AgReasoningConfig(mode="enabled", budget_tokens=2000, effort="high"),
            max_tokens=3000,
            temperature=1,
            stop_sequences=["END"],
            context=[TextBlock(text="Today is Monday.")],
        ),
        metadata={"anthropic/containerId": "container_1"},
    )
    return to_native(ag_input, history=HISTORY, **options)


def test_the_types_of_the_sdk_tell_a_wrong_request() -> None:
    good: dict[str, Any] = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    fits(message_create_params.MessageCreateParamsNonStreaming, good)
    for wrong in (
        {**good, "temperature": 1},
        {**good, "messages": [{"role": "user", "content": "hi", "id": "x"}]},
        {**good, "messages": [{"role": "tool", "content": "hi"}]},
        {**good, "messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]},
    ):
        with pytest.raises(pydantic.ValidationError):
            fits(message_create_params.MessageCreateParamsNonStreaming, wrong)


def test_a_plain_request_fits_the_types_of_the_sdk() -> None:
    found = rich_call()
    assert found.beta is False

    params = {name: value for name, value in found.params.items() if name != "extra_body"}
    fits(message_create_params.MessageCreateParamsNonStreaming, params)
    assert found.params.keys() <= arguments(anthropic.Anthropic(api_key="x").messages.create)


def test_a_beta_request_fits_the_types_of_the_sdk() -> None:
    compaction = CompactionBlock(text="so far", provider="anthropic")
    ag_input = StartInput(thread_id="thread", turn_id="turn", messages=[message("user", "go on")])
    found = to_native(
        ag_input,
        history=[*HISTORY[:2], message("assistant", compaction, "well")],
        model="claude-test",
        defaults={"betas": ["compact-2026-01-12"]},
    )
    assert found.beta is True

    fits(beta_create_params.MessageCreateParamsNonStreaming, found.params)
    assert found.params.keys() <= arguments(anthropic.Anthropic(api_key="x").beta.messages.create)


def test_the_arguments_of_the_beta_endpoint_alone_are_known() -> None:
    plain = set(get_type_hints(message_create_params.MessageCreateParamsBase))
    beta = set(get_type_hints(beta_create_params.MessageCreateParamsBase))

    assert beta - plain == BETA_PARAMS


def arguments(function: Any) -> set[str]:
    return set(function.__wrapped__.__code__.co_varnames)


# The real client against a server of our own


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, dict[str, str], Any]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, _Server)
        self.server.asked.append((self.path, dict(self.headers), json.loads(body)))
        answer = json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-test",
                "content": [{"type": "text", "text": "ok"}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_the_client_sends_what_the_call_says(server: _Server) -> None:
    found = rich_call()
    with anthropic.Anthropic(api_key="x", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0) as client:
        answer = found.endpoint(client).create(**found.params)

    assert answer.content[0].text == "ok"
    ((path, _, body),) = server.asked
    assert path == "/v1/messages"
    sent = {name: value for name, value in found.params.items() if name != "extra_body"}
    assert body == {**sent, "temperature": 1}
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "s=="}
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text", "text"]


def test_the_beta_endpoint_gets_the_betas(server: _Server) -> None:
    ag_input = ToolResultInput(
        thread_id="thread",
        turn_id="turn",
        results=[AgToolResult(tool_call_id="toolu_1", content=[TextBlock(text="21 °C \U0001f600")])],
    )
    found = to_native(ag_input, history=HISTORY, model="claude-test", defaults={"betas": ["context-1m-2025-08-07"]})
    with anthropic.Anthropic(api_key="x", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0) as client:
        found.endpoint(client).create(**found.params)

    ((path, headers, body),) = server.asked
    assert path.partition("?")[0] == "/v1/messages"
    assert headers["anthropic-beta"] == "context-1m-2025-08-07"
    assert body["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "21 °C \U0001f600"}]}
    ]
