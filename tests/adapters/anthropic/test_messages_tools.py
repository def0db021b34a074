"""Calls and results on their way back to the Messages API: pairing, channels, server tools (spec §2.1, §10.3)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson import AgMessage, ReplayError
from agjson.adapters.anthropic import messages_to_native
from agjson.types import (
    AgEmbeddedResource,
    AgOpaque,
    AgProviderMeta,
    AudioBlock,
    FileBlock,
    FileSource,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    ResourceBlock,
    SearchResultBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from tests.support.anthropic_history import answer, call, message, repaired, result, text, use


def native_result(block: ToolResultBlock, **options: Any) -> dict[str, Any]:
    """What a result of a client's tool becomes."""
    history = [message("user", "?"), message("assistant", call()), message("tool", block)]
    return messages_to_native(history, **options)[2]["content"][0]


# Ids, names, inputs


def test_the_native_id_goes_back() -> None:
    renamed = call("toolu_1#2", provider_metadata=AgProviderMeta({"agjson/nativeToolCallId": "toolu_1"}))
    native = messages_to_native(
        [message("user", "?"), message("assistant", renamed), message("tool", result("toolu_1#2", "x"))]
    )

    assert native[1]["content"] == [use("toolu_1")]
    assert native[2]["content"] == [answer("toolu_1", text("x"))]
    assert native.repairs == []


def test_an_id_that_the_provider_used_twice_is_told_apart() -> None:
    renamed = call("call_0#2", provider_metadata=AgProviderMeta({"agjson/nativeToolCallId": "call_0"}))
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", call("call_0")),
            message("tool", result("call_0", "one")),
            message("assistant", renamed),
            message("tool", result("call_0#2", "two")),
        ]
    )

    assert [each["content"][0].get("id") for each in native[1::2]] == ["call_0", "call_0_2"]
    assert native[4]["content"] == [answer("call_0_2", text("two"))]
    assert repaired(native) == [("id_changed", "$[3].content[0]")]


@pytest.mark.parametrize(("id", "native"), [("functions.Bash:0", "functions_Bash_0"), ("a|b", "a_b"), ("", "call")])
def test_an_id_of_another_provider_is_written_so_that_the_api_takes_it(id: str, native: str) -> None:
    history = [message("user", "?"), message("assistant", call(id)), message("tool", result(id, "x"))]
    found = messages_to_native(history)

    assert found[1]["content"] == [use(native)]
    assert found[2]["content"] == [answer(native, text("x"))]
    assert repaired(found) == [("id_changed", "$[1].content[0]")]


def test_a_name_and_an_input_that_the_api_would_refuse_are_mended() -> None:
    native = messages_to_native(
        [message("user", "?"), message("assistant", call("toolu_1", "a.b/c", input=["x"]), call("toolu_2", input=None))]
    )

    assert native[1]["content"] == [use("toolu_1", "a_b_c", input={"value": ["x"]}), use("toolu_2")]
    assert [code for code, _ in repaired(native)][:3] == ["name_changed", "input_wrapped", "input_wrapped"]


def test_caller_and_toolset_go_back() -> None:
    metadata = AgProviderMeta({"caller": {"type": "direct"}, "toolset_name": "browser", "agjson/nativeToolCallId": "b"})
    native = messages_to_native(
        [message("user", "?"), message("assistant", call(provider_metadata=metadata)), message("tool", result())]
    )

    assert native[1]["content"] == [use("b", caller={"type": "direct"}, toolset_name="browser")]
    assert native[2]["content"] == [answer("b", toolset_name="browser")]


def test_what_another_provider_says_of_its_call_stays_behind() -> None:
    theirs = call(signature="thought", provider="google", provider_metadata=AgProviderMeta({"caller": {"type": "x"}}))
    native = messages_to_native([message("user", "?"), message("assistant", theirs), message("tool", result())])

    assert native[1]["content"] == [use()]
    assert repaired(native) == [("opaque_dropped", "$[1].content[0]")]


# The four channels (spec §2.1, §10 item 3)


def test_content_and_structured_content_reach_the_model_and_nothing_else() -> None:
    block = result(
        "toolu_1",
        "21 degrees",
        structured_content={"degrees": 21},
        ui_data={"chart": "for the surface"},
        side_data={"row": "for the app"},
        tool_metadata={"of": "the host"},
        meta={"traceparent": "00-1"},
    )

    assert native_result(block) == answer("toolu_1", text("21 degrees"), text('{"degrees":21}'))


@pytest.mark.parametrize("words", ['{"degrees": 21}', '{\n  "degrees": 21\n}'])
def test_structured_content_that_the_text_says_already_is_not_said_twice(words: str) -> None:
    block = result("toolu_1", words, structured_content={"degrees": 21})

    assert native_result(block) == answer("toolu_1", text(words))


def test_null_is_a_structured_result_and_absence_is_none() -> None:
    assert native_result(result("toolu_1", structured_content=None)) == answer("toolu_1", text("null"))
    assert native_result(result("toolu_1")) == answer("toolu_1")


@pytest.mark.parametrize(
    ("fields", "native"),
    [
        ({"outcome": "ok"}, {}),
        ({"outcome": "ok", "is_error": False}, {"is_error": False}),
        ({"outcome": "error"}, {"content": [text("The call failed.")], "is_error": True}),
        ({"outcome": "error", "error_text": "boom"}, {"content": [text("boom")], "is_error": True}),
        ({"outcome": "error", "error_code": "E1"}, {"content": [text("E1")], "is_error": True}),
        ({"outcome": "denied"}, {"content": [text("The call was denied.")], "is_error": True}),
        ({"is_error": True}, {"content": [text("The call failed.")], "is_error": True}),
    ],
)
def test_outcomes(fields: dict[str, Any], native: dict[str, Any]) -> None:
    assert native_result(result("toolu_1", **fields)) == {**answer("toolu_1"), **native}


def test_the_words_of_an_error_are_added_where_the_content_lacks_them() -> None:
    said = result("toolu_1", "it said: boom", outcome="error", error_text="boom")
    unsaid = result("toolu_1", "partial", outcome="error", error_text="boom")

    assert native_result(said) == answer("toolu_1", text("it said: boom"), is_error=True)
    assert native_result(unsaid) == answer("toolu_1", text("partial"), text("boom"), is_error=True)


def test_a_result_holds_media_and_native_parts() -> None:
    reference = {"type": "tool_reference", "tool_name": "look"}
    block = result(
        "toolu_1",
        ImageBlock(source=UrlSource(url="https://a.example/a.png")),
        ProviderRawBlock(vendor="anthropic", raw=reference),
        ResourceBlock(resource=AgEmbeddedResource(uri="ui://chart")),
        " ",
    )

    assert native_result(block) == answer(
        "toolu_1", {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}, reference
    )


@pytest.mark.parametrize(
    "part",
    [
        AudioBlock(source=FileSource(file_id="f")),
        FileBlock(source=FileSource(file_id="f")),
        ReasoningBlock(text="x"),
        result("toolu_2", "nested"),
    ],
)
def test_a_result_with_a_part_that_the_api_refuses_is_refused(part: Any) -> None:
    with pytest.raises(ReplayError) as error:
        native_result(result("toolu_1", "so", part))
    assert error.value.path == "$[2].content[0].content[1]"
    assert native_result(result("toolu_1", "so", part), unsupported="drop") == answer("toolu_1", text("so"))


# Tools that the provider runs

SEARCH = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "title": "A", "url": "u", "encrypted_content": "E==", "page_age": None}],
    "caller": {"type": "direct"},
}
RAN = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "encrypted_code_execution_result", "encrypted_stdout": "E==", "return_code": 0},
}


def searched(id: str = "srvtoolu_1", name: str = "web_search", **fields: Any) -> ToolCallBlock:
    return call(id, name, provider_executed=True, **fields)


def found(native: dict[str, Any] = SEARCH) -> ToolResultBlock:
    return result(native["tool_use_id"], outcome="ok", provider_metadata=AgProviderMeta({"anthropic/block": native}))


def server_use(id: str = "srvtoolu_1", name: str = "web_search", **fields: Any) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": id, "name": name, "input": {}, **fields}


def test_call_and_result_go_back_inside_the_assistants_message() -> None:
    mcp = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []}
    native = messages_to_native(
        [
            message("user", "?"),
            message(
                "assistant",
                "let me see",
                searched(provider_metadata=AgProviderMeta({"caller": {"type": "direct"}})),
                found(),
                searched("mcptoolu_1", "ask", server_name="deepwiki"),
                found(mcp),
                "so",
            ),
        ]
    )

    assert native[1]["content"] == [
        text("let me see"),
        server_use(caller={"type": "direct"}),
        SEARCH,
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "input": {}, "server_name": "deepwiki"},
        mcp,
        text("so"),
    ]
    assert native.repairs == []
    assert native.beta is True


def test_a_call_of_a_paused_turn_may_stand_last() -> None:
    native = messages_to_native([message("user", "?"), message("assistant", "wait", searched())])

    assert native[1]["content"] == [text("wait"), server_use()]
    assert native.repairs == []


def test_elsewhere_a_call_without_result_stays_behind_and_reasoning_that_is_last_then() -> None:
    thought = ReasoningBlock(text="", opaque=AgOpaque(kind="signature", value="s"))
    native = messages_to_native(
        [message("user", "?"), message("assistant", "wait", thought, searched()), message("user", "stop")]
    )

    assert native[1]["content"] == [text("wait")]
    assert repaired(native) == [
        ("server_call_dropped", "$[1].content[2]"),
        ("trailing_reasoning_dropped", "$[1].content[1]"),
    ]


def test_a_result_that_came_in_a_message_of_its_own_joins_its_call() -> None:
    native = messages_to_native(
        [message("user", "?"), message("assistant", searched(), "so"), message("user", "!"), message("tool", found())]
    )

    assert native[1]["content"] == [server_use(), SEARCH, text("so")]
    assert native[2]["content"] == [text("!")]
    assert repaired(native) == [("result_moved", "$[3].content[0]")]


def test_a_result_before_its_call_stays_behind() -> None:
    native = messages_to_native([message("user", "?"), message("assistant", found(), searched(), "so")])

    assert native[1]["content"] == [text("so")]
    assert repaired(native) == [("result_dropped", "$[1].content[0]"), ("server_call_dropped", "$[1].content[1]")]


def test_code_that_waits_for_a_client_stands_without_result() -> None:
    by_code = AgProviderMeta({"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}})
    waiting: list[AgMessage] = [
        message("user", "?"),
        message("assistant", searched(name="code_execution"), call("toolu_1", provider_metadata=by_code)),
        message("tool", result("toolu_1", "one")),
    ]

    native = messages_to_native(waiting)
    assert native[1]["content"] == [
        server_use(name="code_execution"),
        use(caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}),
    ]
    assert native[2]["content"] == [answer("toolu_1", text("one"))]
    assert native.repairs == []

    # It goes on in the next message of the assistant.
    native = messages_to_native([*waiting, message("assistant", found(RAN), "so")])
    assert native[3]["content"] == [RAN, text("so")]
    assert native.repairs == []

    # Once the user speaks it cannot: it is left out, with the calls that it made.
    native = messages_to_native([*waiting, message("user", "stop")])
    assert native == [{"role": "user", "content": [text("?"), text("stop")]}]
    assert sorted(code for code, _ in repaired(native)) == [
        "result_dropped",
        "server_call_dropped",
        "server_call_dropped",
    ]


def test_a_call_made_by_code_that_is_gone_is_made_by_nobody() -> None:
    by_code = AgProviderMeta({"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}})
    native = messages_to_native(
        [message("user", "?"), message("assistant", call(provider_metadata=by_code)), message("tool", result())]
    )

    assert native[1]["content"] == [use()]
    assert repaired(native) == [("caller_dropped", "$[1].content[0]")]


def test_a_search_without_its_native_form_is_written_again_from_its_sealed_hits() -> None:
    hit = SearchResultBlock(url="u", title="A", opaque=AgOpaque(kind="ciphertext", value="E==", provider="anthropic"))
    failed = result("srvtoolu_2", outcome="error", error_code="max_uses_exceeded")
    native = messages_to_native(
        [
            message("user", "?"),
            message("assistant", searched(), result("srvtoolu_1", hit), searched("srvtoolu_2"), failed, "so"),
        ]
    )

    assert native[1]["content"] == [
        server_use(),
        {name: value for name, value in SEARCH.items() if name != "caller"},
        server_use("srvtoolu_2"),
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_2",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
        text("so"),
    ]
    assert native.repairs == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("code_execution", TextBlock(text="4")),
        ("web_search", TextBlock(text="4")),
        ("web_search", SearchResultBlock(url="u", title="unsealed")),
        ("web_search", SearchResultBlock(title="nowhere", opaque=AgOpaque(kind="ciphertext", value="E=="))),
        ("web_search", SearchResultBlock(url="u", opaque=AgOpaque(kind="ciphertext", value="E", provider="openai"))),
    ],
)
def test_a_result_that_cannot_be_written_again_takes_its_call_along(name: str, part: Any) -> None:
    native = messages_to_native(
        [message("user", "?"), message("assistant", searched(name=name), result("srvtoolu_1", part), "so")]
    )

    assert native[1]["content"] == [text("so")]
    assert sorted(code for code, _ in repaired(native)) == ["result_dropped", "server_call_dropped"]


@pytest.mark.parametrize(
    "theirs",
    [searched("ws_1"), searched("srvtoolu_1", provider="openai"), searched("srvtoolu_1", server_name="deepwiki")],
)
def test_a_call_that_another_provider_ran_stays_behind_with_its_result(theirs: ToolCallBlock) -> None:
    native = messages_to_native(
        [message("user", "?"), message("assistant", theirs, result(theirs.tool_call_id, "x"), "so")]
    )

    assert native[1]["content"] == [text("so")]
    assert repaired(native) == [("server_call_dropped", "$[1].content[0]"), ("result_dropped", "$[1].content[1]")]


# Server-side fallbacks

SEAM = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}}


def handed_over() -> list[AgMessage]:
    """One model thinks, speaks, searches, calls, and declines; another goes on."""
    first = ReasoningBlock(text="1", opaque=AgOpaque(kind="signature", value="s1"))
    second = ReasoningBlock(text="2", opaque=AgOpaque(kind="signature", value="s2"))
    return [
        message("user", "?"),
        message(
            "assistant",
            first,
            "let me see",
            searched(),
            found(),
            searched("srvtoolu_2"),
            call("toolu_1"),
            ProviderRawBlock(vendor="anthropic", raw=SEAM),
            second,
            call("toolu_2"),
        ),
        message("tool", result("toolu_1", "unwanted"), result("toolu_2", "wanted")),
    ]


def test_the_seam_stays_where_the_request_asks_for_fallbacks() -> None:
    native = messages_to_native(handed_over(), betas=["server-side-fallback-2026-07-01"])

    assert native[1]["content"] == [
        text("let me see"),
        server_use(),
        SEARCH,
        SEAM,
        {"type": "thinking", "thinking": "2", "signature": "s2"},
        use("toolu_2"),
    ]
    assert native[2]["content"] == [answer("toolu_2", text("wanted"))]
    assert repaired(native) == [
        ("declined_dropped", "$[1].content[0]"),
        ("declined_dropped", "$[1].content[4]"),
        ("declined_dropped", "$[1].content[5]"),
        ("result_dropped", "$[2].content[0]"),
    ]


def test_elsewhere_the_seam_is_stripped_and_a_message_of_seams_alone_left_out() -> None:
    native = messages_to_native(handed_over())
    assert "fallback" not in [block["type"] for block in native[1]["content"]]
    assert ("fallback_dropped", "$[1].content[6]") in repaired(native)

    alone = message("assistant", ProviderRawBlock(vendor="anthropic", raw=SEAM))
    native = messages_to_native([message("user", "?"), alone, message("user", "!")])
    assert native == [{"role": "user", "content": [text("?"), text("!")]}]
