"""Any conversation of the agent with the real client: each request is one that the API takes, each stream is sound."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from anthropic import Anthropic
from hypothesis import given
from hypothesis import strategies as st

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.agents import MemoryThreadStore
from agjson.types import AgInput, StartInput
from agjson.wire import encode
from tests.support.anthropic_agents import SEARCH, WEATHER, Tools
from tests.support.anthropic_rules import broken_rules
from tests.support.anthropic_wire import START, block, end
from tests.support.properties import examples
from tests.support.scripted import Session, results, said, start

Native = dict[str, Any]
TOKEN = "spend-me"
HIT = {"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "c2VhbA=="}

parts = st.lists(
    st.sampled_from(["text", "empty", "thinking", "redacted", "unsigned", "call", "run", "search"]), max_size=4
)
reasons = st.sampled_from([None, None, None, "max_tokens", "refusal", "not_a_reason_yet", "no reason"])
# Where an answer breaks off, counted from its end, and whether it does so with an error.
cuts = st.none() | st.tuples(st.integers(1, 8), st.booleans())
answers = st.tuples(parts, reasons, cuts)
# How much of what the turn waits for comes next; nothing: the user goes on, with words or without.
steps = st.sampled_from(["all", "first", "words", "nothing"])


class Provider:
    """Answers as the script says, and keeps to what the provider does: it pauses where a search is under way."""

    def __init__(self, script: list[Any], *, repeats_ids: bool) -> None:
        self.script = list(script)
        self.repeats_ids = repeats_ids
        self.made = 0
        self.runs = 0
        self.requests: list[Native] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        if not self.script:
            return self.streamed([START, *block({"type": "text", "text": "the end"}), *end()])
        said_parts, reason, cut = self.script.pop(0)
        last = body["messages"][-1]
        waits = last["content"][-1] if last["role"] == "assistant" and isinstance(last["content"], list) else {}
        blocks: list[list[Native]] = []
        if waits.get("type") == "server_tool_use":
            found = {"type": "web_search_tool_result", "tool_use_id": waits["id"], "content": [HIT]}
            blocks.append(block(found))
        stop = "end_turn"
        for part in said_parts:
            blocks.append(self.part(part, len(blocks)))
            if part in ("call", "run"):
                stop = "tool_use"
            if part == "search":
                stop = "pause_turn"
                break
        if stop == "pause_turn" and {"call", "run"} & set(said_parts):
            blocks, stop = blocks[:-1], "tool_use"
        natives = [START, *(event for each in blocks for event in each)]
        details = {"stop_details": {"type": "refusal", "fallback_credit_token": TOKEN}} if reason == "refusal" else {}
        natives += end(None if reason == "no reason" else reason or stop, **details)
        if cut is not None:
            natives = natives[: max(1, len(natives) - cut[0])]
            if cut[1]:
                natives.append({"type": "error", "error": {"type": "api_error", "message": "no"}})
        return self.streamed(natives)

    def part(self, kind: str, index: int) -> list[Native]:
        self.made += 1
        self.runs += kind == "run"
        id = 1 if self.repeats_ids and kind != "search" else self.made
        match kind:
            case "text" | "empty":
                said_text = f"words {self.made}" if kind == "text" else ""
                return block({"type": "text", "text": ""}, {"type": "text_delta", "text": said_text}, index=index)
            case "thinking" | "unsigned":
                signature = f"c2ln{self.made}" if kind == "thinking" else ""
                native = {"type": "thinking", "thinking": "hm", "signature": ""}
                return block(native, {"type": "signature_delta", "signature": signature}, index=index)
            case "redacted":
                return block({"type": "redacted_thinking", "data": f"c2Vh{self.made}"}, index=index)
            case "search":
                native = {"type": "server_tool_use", "id": f"srvtoolu_{id}", "name": "web_search", "input": {}}
                return block(native, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}, index=index)
        name, given_input = ("weather", '{"city": "Bonn"}') if kind == "call" else ("divide", '{"a": 6, "b": 3}')
        native = {"type": "tool_use", "id": f"toolu_{id}", "name": name, "input": {}}
        return block(native, {"type": "input_json_delta", "partial_json": given_input}, index=index)

    def streamed(self, natives: list[Native]) -> httpx2.Response:
        content = b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in natives)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=content)

    def broken(self, *, in_a_row: bool) -> list[str]:
        """The rules that any request breaks; the client's own loop sends a paused answer as a message of its own."""
        found = [fault for body in self.requests for fault in broken_rules(body["messages"])]
        return [fault for fault in found if in_a_row or "in a row" not in fault]


def next_input(session: Session, step: str, number: int) -> AgInput:
    store = session.agent.store
    assert isinstance(store, MemoryThreadStore)
    waits = session.thread().pending.open_calls if session.streams else []
    if waits and step in ("all", "first"):
        return results(*waits[: 1 if step == "first" else None], turn=f"t{number}")
    if step == "nothing" and session.streams:
        return StartInput(thread_id="th", turn_id=f"t{number}", messages=[])
    return start(said(f"question {number}", f"u{number}"), turn="t")


def converse(script: list[Any], how: list[str], *, loops: bool, repeats_ids: bool) -> tuple[Provider, Tools]:
    provider, tools, tokens = Provider(script, repeats_ids=repeats_ids), Tools(), list[str]()
    transport = httpx2.Client(transport=httpx2.MockTransport(provider))
    divide = tools.of(Anthropic) if loops else {"name": "divide", "input_schema": {"type": "object"}}
    with Anthropic(api_key="key", max_retries=0, http_client=transport) as client:
        agent = AnthropicAgent(
            client,
            model="claude-test",
            tools=[WEATHER, SEARCH, divide],
            max_iterations=6,
            on_fallback_credit=lambda run, token: tokens.append(token),
        )
        session = Session(agent)
        for number, step in enumerate(how):
            session.run_sync(next_input(session, step, number))
    session.verify()
    assert TOKEN.encode() not in b"".join(encode(event) for stream in session.streams for event in stream)
    assert TOKEN.encode() not in encode(session.thread().result)
    assert set(tokens) <= {TOKEN}
    return provider, tools


@examples(80)
@given(st.lists(answers, max_size=8), st.lists(steps, min_size=1, max_size=6), st.booleans())
def test_any_conversation_without_a_loop(script: list[Any], how: list[str], repeats_ids: bool) -> None:
    provider, _ = converse(script, how, loops=False, repeats_ids=repeats_ids)
    assert provider.broken(in_a_row=True) == []


@examples(80)
@given(st.lists(answers, max_size=8), st.lists(steps, min_size=1, max_size=6))
def test_any_conversation_with_the_loop_of_the_client(script: list[Any], how: list[str]) -> None:
    provider, tools = converse(script, how, loops=True, repeats_ids=False)
    assert provider.broken(in_a_row=False) == []
    assert len(tools.ran) <= provider.runs
