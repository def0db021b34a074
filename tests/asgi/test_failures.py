"""What clients hear of failures: the code and a name; the log has the rest, without secrets (spec §13.2)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest

from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.agents import Invocation, MemoryThreadStore, Thread, ThreadStore
from agjson.middleware.asgi import AgentApp, Trust
from agjson.middleware.asgi.redaction import REDACTED, Redactor, secrets_of
from agjson.types import AgMessage, AgOpaque, AgReduceResult, AgRunConfig, ReasoningBlock, TextBlock, ToolCallBlock
from agjson.wire import to_dict
from tests.support.asgi_client import request, run
from tests.support.scripted import ScriptAgent, said, start, text
from tests.support.served import assert_same_as_stored

TOLD = re.compile(r"the agent failed \(error ([0-9a-f]{16})\)")


class ProviderError(Exception):
    """As clients of providers raise it: with the answer in its text and in attributes."""

    type = "overloaded_error"
    status_code = 529
    body = "host 10.0.0.7 is full"


def failing(error: BaseException) -> Callable[[Invocation], list[Any]]:
    return lambda _: [*text("one two")[:3], error]


async def test_an_exception_is_told_by_its_code_and_a_name(
    store: ThreadStore, caplog: pytest.LogCaptureFixture
) -> None:
    app = AgentApp(ScriptAgent(failing(ProviderError("host 10.0.0.7 is full"))), store=store)
    events = await run(app, start())
    told = to_dict(events[-1])
    match = TOLD.fullmatch(told.pop("message"))
    assert match is not None
    assert told == {
        "type": "turn.error",
        "seq": len(events) - 1,
        "turnId": "t",
        "code": "overloaded_error",
        "retriable": True,
    }
    assert "10.0.0.7" not in json.dumps([to_dict(event) for event in events])
    [record] = [record for record in caplog.records if match[1] in record.getMessage()]
    assert record.levelname == "ERROR"
    assert "host 10.0.0.7 is full" in record.getMessage()
    assert "Traceback (most recent call last)" in record.getMessage()
    assert "turn 't' of thread 'th'" in record.getMessage()
    # What is stored is what was streamed.
    await assert_same_as_stored(app, store, "th", events)


async def test_debug_tells_the_exception_itself(store: ThreadStore) -> None:
    app = AgentApp(ScriptAgent(failing(ValueError("a detail"))), store=store, debug=True)
    events = await run(app, start())
    assert re.fullmatch(r"a detail \(error [0-9a-f]{16}\)", to_dict(events[-1])["message"])
    await assert_same_as_stored(app, store, "th", events)


@pytest.mark.parametrize("code", ["sk-live-0123456789abcdef", "two words", "x" * 100, "", "line\nbreak"])
async def test_a_code_that_is_no_name_does_not_go_out(code: str) -> None:
    error = RuntimeError("x")
    error.code = code  # type: ignore[attr-defined]
    events = await run(AgentApp(ScriptAgent(failing(error))), start())
    assert to_dict(events[-1])["code"] == "RuntimeError"


async def test_a_fault_of_the_adapter_is_told_without_its_words(store: ThreadStore) -> None:
    natives = [*text("one")[:3], {"do": "no_such_method", "x": 1}, *text("one")[3:]]
    app = AgentApp(ScriptAgent(lambda _: natives), store=store)
    events = await run(app, start())
    told = [to_dict(event) for event in events if event.type in ("error", "ext.agjson.unparsed")]
    assert [event["type"] for event in told] == ["ext.agjson.unparsed", "error"]
    assert TOLD.fullmatch(told[0]["reason"]) and TOLD.fullmatch(told[1]["message"])
    assert told[1]["code"] == "normalizer_error"
    assert told[0]["raw"] == {"do": "no_such_method", "x": 1}
    await assert_same_as_stored(app, store, "th", events)


async def test_what_the_framework_says_in_its_stream_is_not_touched(store: ThreadStore) -> None:
    natives = [{"do": "turn_error", "message": "the model is overloaded", "code": "overloaded_error"}]
    events = await run(AgentApp(ScriptAgent(lambda _: natives), store=store), start())
    assert to_dict(events[-1])["message"] == "the model is overloaded"


async def test_a_thread_that_cannot_be_stored_is_told_without_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    class Full(MemoryThreadStore):
        def put(self, thread: Thread) -> None:
            if thread.result.messages:
                raise OSError("disk /dev/secret is full")
            super().put(thread)

    events = await run(AgentApp(ScriptAgent(lambda _: text("x")), store=Full()), start())
    told = to_dict(events[-1])
    assert (told["type"], told["code"]) == ("turn.error", "store_failed")
    assert TOLD.fullmatch(told["message"])
    assert "disk /dev/secret is full" in caplog.text
    assert [event.seq for event in events] == list(range(len(events)))


async def test_the_body_of_a_providers_answer_does_not_go_out() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        error = {"type": "authentication_error", "message": "invalid x-api-key sk-ant-0123456789"}
        return httpx2.Response(401, json={"type": "error", "error": error, "request_id": "req_secret"})

    http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(refuse))
    client = anthropic.AsyncAnthropic(api_key="sk-ant-0123456789", max_retries=0, http_client=http_client)
    agent = AnthropicAgent(client, model="claude-sonnet-5-5")
    events = await run(AgentApp(agent), start())
    whole = json.dumps([to_dict(event) for event in events])
    assert "sk-ant" not in whole and "req_secret" not in whole and "x-api-key" not in whole
    assert to_dict(events[-1])["code"] == "authentication_error"
    await http_client.aclose()


# Secrets planted everywhere

SECRET = {
    "opaque": "b3BhcXVlLXZhbHVlLW9mLXRoZS1zdG9yZWQtdGhyZWFk",
    "signature": "c2lnbmF0dXJlLW9mLWEtdG9vbC1jYWxs",
    "metadata": "cHJvdmlkZXItbWV0YWRhdGEtdG8tZWNobw",
    "push": "push-token-0123456789",
    "credentials": "push-credentials-0123456789",
    "live": "b3BhcXVlLXZhbHVlLW9mLXRoZS1ydW5uaW5nLXR1cm4",
    "delta": "c2lnbmVkLWluLXR3by1waWVjZXMtb2YtYS1zdHJlYW0",
    "key": "sk-ant-api03-0123456789abcdef",
    "bearer": "eyJhbGciOiJIUzI1NiJ9.e30.abc",
    "state": "request-state-0123456789",
    "password": "hunter2-of-the-database",
}


async def test_no_secret_of_a_run_gets_into_the_log(store: ThreadStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    reasoning = ReasoningBlock(text="hm", opaque=AgOpaque(kind="signature", value=SECRET["opaque"]))
    call = ToolCallBlock(tool_call_id="c0", name="n", input={}, signature=SECRET["signature"])
    spoken = TextBlock(text="hello", provider_metadata={"x/y": {"z": [SECRET["metadata"]]}})  # type: ignore[arg-type]
    history = AgMessage(id="a0", role="assistant", content=[reasoning, call, spoken])
    given = to_dict(start(history, said("hi", "u2"), run=AgRunConfig()))
    given["run"]["pushNotification"] = {
        "url": "https://example.org/",
        "token": SECRET["push"],
        "auth": {"scheme": "Bearer", "credentials": SECRET["credentials"]},
    }
    half = len(SECRET["delta"]) // 2
    quoted = [
        f"could not read {SECRET['opaque']!r}",
        # As validators quote it: the beginning and the end.
        f"input_value='{SECRET['signature'][:16]}...{SECRET['signature'][-14:]}'",
        json.dumps(json.dumps({"x": SECRET["metadata"]})),
        f"{SECRET['push']} {SECRET['credentials']} {SECRET['live']} {SECRET['delta']}",
        f"headers: {{'x-api-key': '{SECRET['key']}', 'Authorization': 'Bearer {SECRET['bearer']}'}}",
        f'{{"requestState": "{SECRET["state"]}"}} token={SECRET["push"]}',
        f"postgresql://app:{SECRET['password']}@db/threads",
        "an ordinary sentence with a detail",
    ]
    cause = ValueError(quoted[0])
    error = RuntimeError("\n".join(quoted[1:]))
    error.__cause__ = cause
    error.add_note(f"while replaying {SECRET['live']}")
    natives = [
        {"do": "message_start", "id": "m1"},
        {"do": "reasoning_start", "id": "r1"},
        {"do": "reasoning_opaque_delta", "id": "r1", "delta": SECRET["delta"][:half]},
        {"do": "reasoning_opaque_delta", "id": "r1", "delta": SECRET["delta"][half:]},
        {"do": "reasoning_opaque", "id": "r1"},
        {"do": "reasoning_end", "id": "r1"},
        {"do": "reasoning_start", "id": "r2"},
        {"do": "reasoning_opaque", "id": "r2", "kind": "signature", "value": SECRET["live"]},
        error,
    ]
    trust = Trust(
        roles={"user", "assistant"},
        blocks={"text", "reasoning", "tool-call"},
        opaque=True,
        provider_metadata=True,
        push_policy=lambda *_: True,
    )
    app = AgentApp(ScriptAgent(lambda _: natives), store=store, trust=trust)
    events = await run(app, given)
    assert to_dict(events[-1])["type"] == "turn.error"
    logged = "\n".join(record.getMessage() + str(record.exc_text or "") for record in caplog.records)
    for name, secret in SECRET.items():
        for at in range(0, len(secret) - 12):
            assert secret[at : at + 13] not in logged, name
    assert "an ordinary sentence with a detail" in logged
    assert "while replaying" in logged
    assert REDACTED in logged
    streamed = json.dumps([to_dict(event) for event in events if event.type == "turn.error"])
    assert not any(secret in streamed for secret in SECRET.values())


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("nothing to hide", "nothing to hide"),
        ("token='abc'", f"token={REDACTED}"),
        ('{"requestState": "abc", "x": 1}', f'{{"requestState": {REDACTED}, "x": 1}}'),
        ('{\\"signature\\": \\"abc\\"}', f'{{\\"signature\\": {REDACTED}}}'),
        ("Authorization: Bearer abcdefgh", f"Authorization: {REDACTED}"),
        ("https://user:pw@host/", f"https://user:{REDACTED}@host/"),
        ("12345 tokens were used", "12345 tokens were used"),
        ("the secret0123456789 and secret0123", f"the {REDACTED} and secret0123"),
        ("short1", REDACTED),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, redacted: str) -> None:
    assert Redactor(["secret0123456789", "short1"]).text(text) == redacted


def test_redaction_takes_no_time_to_speak_of_on_large_texts() -> None:
    secret = "".join(chr(97 + index * 7919 % 26) for index in range(50_000))
    text = "x" * 200_000 + secret
    began = time.perf_counter()
    assert Redactor([secret]).text(text).endswith(REDACTED)
    assert time.perf_counter() - began < 5


def test_the_secrets_of_a_thread_are_found() -> None:
    block = ReasoningBlock(
        opaque=AgOpaque(kind="signature", value="the-opaque-value"), provider_details={"a": ["detail-1"]}
    )
    message = AgMessage(id="m", role="assistant", content=[block])
    result = AgReduceResult(messages=[message], turns=[], artifacts=[], memory=[])
    found = secrets_of(start(said("not a secret")), Thread.of_result("th", result))
    assert found == {"the-opaque-value", "detail-1"}


@pytest.mark.parametrize("error", [RuntimeError, PermissionError, LookupError])
async def test_an_exception_before_the_first_event_is_a_fault_of_the_server(
    store: ThreadStore, caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    def prepare(_: Invocation) -> Any:
        raise error("could not replay 'b3BhcXVlLXZhbHVl' on 10.0.0.7")

    opaque = AgOpaque(kind="signature", value="b3BhcXVlLXZhbHVl")
    given = start(AgMessage(id="u", role="user", content=[TextBlock(text="x"), ReasoningBlock(opaque=opaque)]))
    trust = Trust(blocks={"text", "reasoning"}, opaque=True)
    app = AgentApp(ScriptAgent(lambda _: text("x"), prepare=prepare), store=store, trust=trust)
    status, body = await request(app, "POST", "/", given)
    assert (status, body["error"]["code"]) == (500, "internal_error")
    assert body["error"]["message"] == f"the server failed (error {body['error']['errorId']})"
    assert body["error"]["errorId"] in caplog.text
    assert "on 10.0.0.7" in caplog.text
    assert "b3BhcXVlLXZhbHVl" not in caplog.text
    assert await store.load("th") is None


@pytest.mark.parametrize("leaving", [SystemExit(2), GeneratorExit()])
@pytest.mark.parametrize("sync", [False, True])
async def test_an_agent_that_leaves_the_program_ends_its_turn_and_nothing_else(
    leaving: BaseException, sync: bool
) -> None:
    store = MemoryThreadStore()
    app = AgentApp(ScriptAgent(failing(leaving), blocking=sync, store=store))
    events = await run(app, start())
    assert events[-1].type in ("turn.abort", "turn.error")
    await assert_same_as_stored(app, store, "th", events)
    fine = AgentApp(ScriptAgent(lambda _: text("still here"), store=store))
    assert (await run(fine, start(said("x", "u2"), turn="t2")))[-1].type == "turn.done"
