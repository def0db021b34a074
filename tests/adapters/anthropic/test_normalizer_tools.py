"""Tool calls, tools that the provider runs, and results that the host pushes (spec §2.1, §8 items 1, 2, 15)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson.known_ids import KnownIds
from agjson.types import AgStreamEvent
from tests.support.anthropic_wire import (
    START,
    STOP,
    Native,
    block,
    content,
    end,
    message,
    normalize,
    plain,
    sound,
    text,
    view,
)

CALL: Native = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


def call(*parts: str, index: int = 0, **fields: Any) -> list[Native]:
    deltas = ({"type": "input_json_delta", "partial_json": part} for part in parts)
    return block({**CALL, **fields}, *deltas, index=index)


def errors(events: list[AgStreamEvent]) -> list[str]:
    return [event["code"] for event in plain(events) if event["type"] == "error"]


def test_a_streamed_call() -> None:
    caller = {"type": "direct"}
    events = normalize([START, *call("", '{"q": ', '"x"}', caller=caller, toolset_name="eyes"), *end("tool_use")])

    assert plain(events)[2:6] == [
        {
            "type": "tool.start",
            "toolCallId": "toolu_1",
            "name": "look",
            "index": 0,
            "providerMetadata": {"caller": caller, "toolset_name": "eyes"},
        },
        {"type": "tool.args.delta", "toolCallId": "toolu_1", "delta": '{"q": '},
        {"type": "tool.args.delta", "toolCallId": "toolu_1", "delta": '"x"}'},
        {"type": "tool.args.assembled", "toolCallId": "toolu_1", "input": {"q": "x"}},
    ]
    assert content(events) == [
        {
            "type": "tool-call",
            "toolCallId": "toolu_1",
            "name": "look",
            "input": {"q": "x"},
            "providerMetadata": {"caller": caller, "toolset_name": "eyes"},
        }
    ]
    assert view(sound(events))["turns"][0]["finishReason"] == "tool_call"


@pytest.mark.parametrize(
    ("start", "parts", "assembled"),
    [
        ({}, [""], {}),
        ({}, [], {}),
        ({"q": 1}, [], {"q": 1}),
        ({"q": 1}, [" "], {"q": 1}),
        ({"q": 1}, ['{"q": 2}'], {"q": 2}),
    ],
)
def test_the_input_of_the_start_holds_where_no_delta_says_more(
    start: Native, parts: list[str], assembled: Native
) -> None:
    (found,) = content(normalize([START, *call(*parts, input=start), *end("tool_use")]))

    assert found["input"] == assembled


def test_parallel_calls_take_their_own_arguments() -> None:
    one, other = call('{"n": ', "1}"), call('{"n": ', "2}", index=1, id="toolu_2")
    mixed = [event for pair in zip(one, other, strict=True) for event in pair]
    found = content(normalize([START, *mixed, *end("tool_use")]))

    assert [(each["toolCallId"], each["input"]) for each in found] == [("toolu_1", {"n": 1}), ("toolu_2", {"n": 2})]


@pytest.mark.parametrize("broken", ['{"path": "report', '{"a": 1}}', "NaN", '{"a": 1e999x}'])
def test_arguments_that_are_no_json_are_kept_and_reported(broken: str) -> None:
    events = normalize([START, *call(broken), *end("max_tokens")])

    assert content(events)[0]["input"] == {"INVALID_JSON": broken}
    assert errors(events) == ["malformed_tool_call"]
    assert view(sound(events))["turns"][0]["finishReason"] == "token_limit"


def test_a_call_id_that_the_thread_has_is_renamed_and_kept() -> None:
    events = normalize([START, *call("{}"), *end("tool_use")], known_ids=frozenset(("toolu_1",)))

    (found,) = view(sound(events, frozenset(("toolu_1",))))["messages"][0]["content"]
    assert found["toolCallId"] == "toolu_1#2"
    assert found["providerMetadata"] == {"agjson/nativeToolCallId": "toolu_1"}


# Tools that the provider runs


def server(kind: str, result: Any, name: str = "t", **fields: Any) -> tuple[Native, Native]:
    """The call of a server tool as a stream, and the native result."""
    used = {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": {}}
    return used, {"type": kind, "tool_use_id": "srvtoolu_1", "content": result, **fields}


def landed(kind: str, result: Any, **fields: Any) -> Native:
    """The neutral result of a server tool, read from a stream; its native form is checked and left out."""
    used, native = server(kind, result, **fields)
    events = normalize(
        [START, *block(used, {"type": "input_json_delta", "partial_json": "{}"}), *block(native, index=1), *end()]
    )
    (done,) = [event for event in plain(events) if event["type"] == "tool.done"]
    assert "messageId" not in done or done["messageId"] == "msg_1"
    asked, found = content(events)
    assert asked["providerExecuted"] is True
    assert found["toolCallId"] == "srvtoolu_1"
    assert found.pop("providerMetadata") == {"anthropic/block": native}
    whole = content(normalize([message({**used, "input": {}}, native)]))
    assert whole[1]["content"] == found["content"]
    return {name: value for name, value in found.items() if name not in ("type", "toolCallId")}


def test_hits_of_a_web_search() -> None:
    hits = [
        {
            "type": "web_search_result",
            "url": "https://a.example",
            "title": "A",
            "encrypted_content": "EqgfCi==",
            "page_age": "2 days",
        },
        {
            "type": "web_search_result",
            "url": "https://b.example",
            "title": "B",
            "encrypted_content": "",
            "page_age": None,
        },
    ]

    assert landed("web_search_tool_result", hits) == {
        "outcome": "ok",
        "content": [
            {
                "type": "search-result",
                "url": "https://a.example",
                "title": "A",
                "opaque": {"kind": "ciphertext", "value": "EqgfCi==", "provider": "anthropic"},
                "pageAge": "2 days",
            },
            {"type": "search-result", "url": "https://b.example", "title": "B"},
        ],
    }


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("web_search_tool_result", {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}, None),
        ("web_fetch_tool_result", {"type": "web_fetch_tool_result_error", "error_code": "url_too_long"}, None),
        ("code_execution_tool_result", {"type": "code_execution_tool_result_error", "error_code": "unavailable"}, None),
        (
            "bash_code_execution_tool_result",
            {"type": "bash_code_execution_tool_result_error", "error_code": "output_file_too_large"},
            None,
        ),
        (
            "text_editor_code_execution_tool_result",
            {
                "type": "text_editor_code_execution_tool_result_error",
                "error_code": "file_not_found",
                "error_message": "No such file.",
            },
            "No such file.",
        ),
        (
            "tool_search_tool_result",
            {"type": "tool_search_tool_result_error", "error_code": "too_many_requests", "error_message": None},
            None,
        ),
        ("advisor_tool_result", {"type": "advisor_tool_result_error", "error_code": "prompt_too_long"}, None),
    ],
)
def test_errors_of_server_tools(kind: str, error: Native, text: str | None) -> None:
    assert landed(kind, error) == {
        "outcome": "error",
        "content": [],
        "errorCode": error["error_code"],
        "errorText": text or error["error_code"],
    }


def test_a_fetched_page() -> None:
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "Page."},
        "title": "P",
        "citations": {"enabled": True},
    }
    fetched = {"type": "web_fetch_result", "url": "https://a.example", "retrieved_at": None, "content": document}

    assert landed("web_fetch_tool_result", fetched)["content"] == [
        {"type": "resource-link", "uri": "https://a.example", "mimeType": "text/plain"},
        {"type": "text", "text": "Page."},
    ]


def test_a_fetched_pdf() -> None:
    document = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
        "title": "P",
    }
    fetched = {"type": "web_fetch_result", "url": "https://a.example/p.pdf", "content": document}

    assert landed("web_fetch_tool_result", fetched)["content"] == [
        {"type": "resource-link", "uri": "https://a.example/p.pdf", "mimeType": "application/pdf"},
        {
            "type": "document",
            "source": {"type": "base64", "mediaType": "application/pdf", "data": "JVBERg=="},
            "title": "P",
        },
    ]


@pytest.mark.parametrize("tool", ["code_execution", "bash_code_execution"])
@pytest.mark.parametrize(("code", "outcome"), [(0, "ok"), (1, "failed")])
def test_code_that_ran(tool: str, code: int, outcome: str) -> None:
    ran = {
        "type": f"{tool}_result",
        "stdout": "out\n",
        "stderr": "err\n",
        "return_code": code,
        "content": [{"type": f"{tool}_output", "file_id": "file_1"}],
    }

    assert landed(f"{tool}_tool_result", ran) == {
        "outcome": "ok",
        "content": [
            {"type": "code-result", "outcome": outcome, "output": "out\nerr\n"},
            {"type": "file", "source": {"type": "file", "fileId": "file_1"}},
        ],
    }


def test_sealed_output_stays_sealed() -> None:
    ran = {
        "type": "encrypted_code_execution_result",
        "encrypted_stdout": "Eo8B",
        "stderr": "",
        "return_code": 0,
        "content": [],
    }

    assert landed("code_execution_tool_result", ran)["content"] == [
        {"type": "code-result", "outcome": "ok", "output": ""}
    ]


def test_a_viewed_file() -> None:
    viewed = {
        "type": "text_editor_code_execution_view_result",
        "file_type": "text",
        "content": "line",
        "num_lines": 1,
        "start_line": 1,
        "total_lines": 1,
    }

    assert landed("text_editor_code_execution_tool_result", viewed)["content"] == [{"type": "text", "text": "line"}]


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("text_editor_code_execution", {"type": "text_editor_code_execution_create_result", "is_file_update": True}),
        (
            "text_editor_code_execution",
            {"type": "text_editor_code_execution_str_replace_result", "lines": ["-a", "+b"], "old_start": 1},
        ),
        ("tool_search", {"type": "tool_search_tool_search_result", "tool_references": []}),
        (
            "tool_search",
            {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
            },
        ),
    ],
)
def test_structured_results(kind: str, result: Native) -> None:
    data = {name: value for name, value in result.items() if name != "type"}

    assert landed(f"{kind}_tool_result", result)["content"] == [{"type": "data", "name": result["type"], "data": data}]


def test_advice() -> None:
    advice = {"type": "advisor_result", "text": "Do it.", "stop_reason": "end_turn"}

    assert landed("advisor_tool_result", advice)["content"] == [{"type": "text", "text": "Do it."}]


def test_sealed_advice_is_shown_as_what_it_is() -> None:
    sealed = {"type": "advisor_redacted_result", "encrypted_content": "Eo8B", "stop_reason": None}

    assert landed("advisor_tool_result", sealed)["content"] == [
        {"type": "provider-raw", "vendor": "anthropic", "raw": sealed}
    ]


def test_a_result_of_a_server_tool_that_is_not_known_yet() -> None:
    result = {"type": "tea_result", "leaves": 3}

    assert landed("tea_tool_result", result, toast=True) == {
        "outcome": "ok",
        "content": [{"type": "provider-raw", "vendor": "anthropic", "raw": result}],
    }


@pytest.mark.parametrize(
    ("answer", "blocks"),
    [
        ("plain", [{"type": "text", "text": "plain"}]),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a"}]),
        ([], []),
    ],
)
@pytest.mark.parametrize(("failed", "outcome"), [(False, "ok"), (True, "error")])
def test_an_mcp_tool(answer: Any, blocks: list[Native], failed: bool, outcome: str) -> None:
    used = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "wiki", "input": {"q": "x"}}
    native = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": failed, "content": answer}
    found = content(normalize([START, *block(used), *block(native, index=1), *end()]))

    assert found == [
        {
            "type": "tool-call",
            "toolCallId": "mcptoolu_1",
            "name": "ask",
            "input": {"q": "x"},
            "serverName": "wiki",
            "providerExecuted": True,
        },
        {
            "type": "tool-result",
            "toolCallId": "mcptoolu_1",
            "content": blocks,
            "outcome": outcome,
            "isError": failed,
            "providerMetadata": {"anthropic/block": native},
        },
    ]


def test_a_result_in_the_message_after_a_pause_keeps_its_place() -> None:
    used, native = server("web_search_tool_result", [])
    first = [START, *block(used), *end("pause_turn")]
    second_start = {"type": "message_start", "message": {**START["message"], "id": "msg_2"}}
    events = normalize([*first, second_start, *block(native), *text("Done.", index=1), *end()], multi=True)

    (done,) = [event for event in plain(events) if event["type"] == "tool.done"]
    assert (done["toolCallId"], done["outcome"], "messageId" in done) == (used["id"], "ok", False)
    paused, resumed = view(sound(events))["messages"]
    assert [each["type"] for each in paused["content"]] == ["tool-call"]
    assert [each["type"] for each in resumed["content"]] == ["tool-result", "text"]
    assert resumed["content"][0]["providerMetadata"] == {"anthropic/block": native}


def test_a_result_in_the_turn_after_a_pause_keeps_its_place() -> None:
    used, native = server("web_search_tool_result", [])
    known = KnownIds(turns={"t0"}, messages={"msg_0"}, calls={used["id"]})
    events = normalize([START, *block(native), *text("Done.", index=1), *end()], known_ids=known)

    assert [event["type"] for event in plain(events)][1:3] == ["message.start", "tool.done"]
    (resumed,) = view(sound(events, known))["messages"]
    assert [(each["type"], each.get("toolCallId")) for each in resumed["content"]] == [
        ("tool-result", used["id"]),
        ("text", None),
    ]


# Results that the host pushes


def results(*natives: Native) -> Native:
    return {"role": "user", "content": list(natives)}


def test_results_of_client_tools_get_messages_of_their_own() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}}
    pushed = results(
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "12 °C"},
        {
            "type": "tool_result",
            "tool_use_id": "toolu_2",
            "content": [{"type": "text", "text": "no"}, image],
            "is_error": True,
        },
    )
    again = {"type": "message_start", "message": {**START["message"], "id": "msg_2"}}
    events = normalize(
        [START, *call("{}"), *call("{}", index=1, id="toolu_2"), *end("tool_use"), pushed, again, *text("So."), *end()],
        multi=True,
    )

    asked, one, other, answered = view(sound(events))["messages"]
    assert [each["toolCallId"] for each in asked["content"]] == ["toolu_1", "toolu_2"]
    assert (one["id"], one["role"]) == ("toolu_1:result", "tool")
    assert (other["id"], other["role"]) == ("toolu_2:result", "tool")
    assert one["content"][0]["outcome"] == "ok"
    assert one["content"][0]["content"][0]["text"] == "12 °C"
    assert other["content"][0]["outcome"] == "error"
    assert [each["type"] for each in other["content"][0]["content"]] == ["text", "image"]
    assert answered["content"] == [{"type": "text", "text": "So."}]


def test_a_loop_is_one_turn_and_costs_the_sum() -> None:
    pushed = results({"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"})
    again = message({"type": "text", "text": "So."}, id="msg_2", usage={"input_tokens": 30, "output_tokens": 7})
    events = normalize([START, *call("{}"), *end("tool_use"), pushed, again], multi=True)

    result = view(sound(events))
    assert [each["usage"]["inputTokens"] for each in result["messages"] if "usage" in each] == [10, 30]
    (turn,) = result["turns"]
    # The sum is no figure of the provider's, so it is no running total of it either.
    assert turn["usage"] == {"inputTokens": 40, "outputTokens": 12}
    assert turn["finishReason"] == "stop"


def test_a_loop_that_breaks_off_tells_what_it_has_cost_by_then() -> None:
    started = {"usage": {"input_tokens": 30, "cache_read_input_tokens": 4, "output_tokens": 1}}
    again = {"type": "message_start", "message": {**START["message"], "id": "msg_2", **started}}
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = normalize([START, *call("{}"), *end("tool_use"), again, failed], multi=True)

    (turn,) = view(sound(events))["turns"]
    assert turn["usage"] == {"inputTokens": 40, "outputTokens": 6, "cacheReadTokens": 4}


def test_one_request_is_told_as_the_provider_counts_it() -> None:
    events = normalize([START, *text("x"), *end()], multi=True)

    (turn,) = view(sound(events))["turns"]
    assert turn["usage"] == {"inputTokens": 10, "outputTokens": 5, "cumulative": True}


def test_the_result_of_a_call_of_an_earlier_invoke() -> None:
    pushed = results({"type": "tool_result", "tool_use_id": "toolu_0", "content": "1"})
    known = frozenset(("toolu_0", "msg_0"))
    events = normalize([pushed, START, *text("So."), *end()], multi=True, known_ids=known)

    first, second = view(sound(events, known))["messages"]
    assert first["id"] == "toolu_0:result"
    assert second["id"] == "msg_1"


def test_the_result_of_a_renamed_call_names_it_as_the_thread_does() -> None:
    known = frozenset(("toolu_1",))
    pushed = results({"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"})
    events = normalize([START, *call("{}"), *end("tool_use"), pushed], multi=True, known_ids=known)

    _, landed = view(sound(events, known))["messages"]
    assert landed["id"] == "toolu_1#2:result"
    assert landed["content"][0]["toolCallId"] == "toolu_1#2"


def test_words_beside_the_results_are_a_message_of_the_user() -> None:
    pushed = results({"type": "tool_result", "tool_use_id": "toolu_1"}, {"type": "text", "text": "Hurry."})
    events = normalize([START, *call("{}"), *end("tool_use"), pushed], multi=True)

    roles = [(each["role"], [part["type"] for part in each["content"]]) for each in view(sound(events))["messages"]]
    assert roles == [("assistant", ["tool-call"]), ("tool", ["tool-result"]), ("user", ["text"])]


def test_a_result_after_the_turn_has_ended_is_refused_visibly() -> None:
    pushed = results({"type": "tool_result", "tool_use_id": "toolu_1", "content": "too late"})
    events = normalize([START, *call("{}"), *end("tool_use"), pushed])

    assert errors(events) == ["turn_closed"]
    assert "too late" in str(plain(events)[-1])


def test_the_end_of_a_loop_needs_the_host() -> None:
    natives = [START, *text("x"), *end()]

    assert normalize(natives, multi=True, host_end=False)[-1].type == "turn.abort"
    assert normalize(natives, multi=True)[-1].type == "turn.done"
    assert normalize([*natives[:-1]], multi=True)[-1].type == "turn.abort"
    assert normalize([*natives, STOP], multi=True)[-1].type == "turn.done"
