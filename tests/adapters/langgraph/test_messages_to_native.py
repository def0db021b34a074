"""`messages_to_native`: stored messages as LangChain messages (spec §3.2, §8.0 item 7, §10 items 3, 4, 5, 13)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph.message import add_messages

from agjson.adapters.langgraph.messages import Provider, messages_from_native, messages_to_native
from agjson.emitter import NATIVE_CALL_ID
from agjson.errors import ReplayError
from agjson.transcript import TranscriptError
from agjson.types import (
    AgBlock,
    AgMessage,
    AgOpaque,
    AgPausedAsk,
    AgProviderMeta,
    AgRole,
    AgTurnRecord,
    AgUsage,
    AudioBlock,
    Base64Source,
    ImageBlock,
    ProviderRawBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from agjson.wire import encode


def said(id: str, role: AgRole, *content: AgBlock | str, **fields: Any) -> AgMessage:
    blocks = [TextBlock(text=block) if isinstance(block, str) else block for block in content]
    return AgMessage(id=id, role=role, content=blocks, **fields)


def call(id: str, name: str = "look", **fields: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=id, name=name, input={"at": "sky"}, **fields)


def result(id: str, text: str, **fields: Any) -> ToolResultBlock:
    return ToolResultBlock(tool_call_id=id, content=[TextBlock(text=text)] if text else [], **fields)


def told(messages: list[Any]) -> list[tuple[str, str]]:
    """The type and the id of each message."""
    return [(message.type, message.id) for message in messages]


def codes(native: Any) -> list[tuple[str, str]]:
    return [(repair.code, repair.path) for repair in native.repairs]


def test_real_messages_with_the_ids_of_the_thread() -> None:
    native = messages_to_native(
        [
            said("s1", "system", "Be brief."),
            said("u1", "user", "Look."),
            said("a1", "assistant", "I look.", call("c1"), model="m-1", agent_name="scout"),
            said("t1", "tool", result("c1", "Blue.", side_data={"rgb": [0, 0, 9]})),
            said("a2", "assistant", "It is blue.", usage=AgUsage(input_tokens=7, output_tokens=3, cache_read_tokens=2)),
        ]
    )
    assert native == [
        SystemMessage("Be brief.", id="s1"),
        HumanMessage("Look.", id="u1"),
        AIMessage(
            "I look.",
            id="a1",
            name="scout",
            tool_calls=[{"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "sky"}}],
            response_metadata={"model_name": "m-1"},
        ),
        ToolMessage("Blue.", id="t1", tool_call_id="c1", name="look", artifact={"rgb": [0, 0, 9]}),
        AIMessage(
            "It is blue.",
            id="a2",
            usage_metadata={
                "input_tokens": 7,
                "output_tokens": 3,
                "total_tokens": 10,
                "input_token_details": {"cache_read": 2},
            },
        ),
    ]
    assert all(isinstance(message, BaseMessage) for message in native)
    assert native.repairs == []


def test_history_that_a_thread_has_already_is_taken_for_the_same_messages() -> None:
    history = [
        said("u1", "user", "Look."),
        said("a1", "assistant", call("c1")),
        said("t1", "tool", result("c1", "Blue.")),
    ]
    state = list(messages_to_native(history))
    merged = add_messages(state, list(messages_to_native([*history, said("u2", "user", "And now?")])))  # pyright: ignore
    assert told(merged) == [("human", "u1"), ("ai", "a1"), ("tool", "t1"), ("human", "u2")]  # pyright: ignore


def test_plain_data_for_tools() -> None:
    native = messages_to_native([said("u1", "user", "Look."), said("a1", "assistant", call("c1"))], plain=True)
    assert native == [
        {"type": "human", "content": "Look.", "id": "u1"},
        {
            "type": "ai",
            "content": "",
            "id": "a1",
            "tool_calls": [{"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "sky"}}],
            "invalid_tool_calls": [],
            "additional_kwargs": {},
            "response_metadata": {},
        },
        {
            "type": "tool",
            "content": "The call was interrupted: it has no result.",
            "tool_call_id": "c1",
            "id": "c1:result",
            "name": "look",
            "status": "error",
        },
    ]
    assert codes(native) == [("result_added", "$[1].content[0]")]


def test_plain_data_needs_no_langchain() -> None:
    code = (
        "import sys\n"
        "from agjson.adapters.langgraph.messages import messages_from_native, messages_to_native\n"
        "messages = messages_from_native([{'type': 'human', 'content': 'Hi.'}])\n"
        "assert messages_to_native(messages, plain=True)[0]['content'] == 'Hi.'\n"
        "assert not [name for name in sys.modules if name.startswith(('langchain', 'langgraph'))]\n"
        "sys.modules['langchain_core'] = sys.modules['langchain_core.messages'] = None\n"
        "from agjson.errors import MissingExtraError\n"
        "try:\n"
        "    messages_to_native(messages)\n"
        "except MissingExtraError as error:\n"
        "    assert \"pip install 'agjson[langgraph]'\" in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Results


@pytest.mark.parametrize(
    ("block", "content", "status"),
    [
        (result("c1", "Blue.", outcome="ok"), "Blue.", "success"),
        (result("c1", "Broken.", outcome="error"), "Broken.", "error"),
        (result("c1", "", outcome="error", error_text="No sky."), "No sky.", "error"),
        (result("c1", "", outcome="denied"), "The call was denied.", "error"),
        (result("c1", "", is_error=True, error_code="gone"), "gone", "error"),
        (result("c1", "", outcome="error"), "The call failed.", "error"),
        (result("c1", "", structured_content={"n": 1}), '{"n":1}', "success"),
        (result("c1", '{"n":1}', structured_content={"n": 1}), '{"n":1}', "success"),
        (result("c1", ""), "", "success"),
    ],
)
def test_what_a_model_reads_of_a_result(block: ToolResultBlock, content: str, status: str) -> None:
    native = messages_to_native([said("a1", "assistant", call("c1")), said("t1", "tool", block)])
    assert (native[1].content, native[1].status, native[1].id) == (content, status, "t1")


def test_what_no_model_reads_of_a_result_is_kept_and_comes_back() -> None:
    block = result(
        "c1",
        "Blue.",
        outcome="denied",
        structured_content={"n": 1},
        ui_data={"shown": True},
        side_data=[1],
        error_text="Not now.",
    )
    history = [said("a1", "assistant", call("c1")), said("t1", "tool", block)]
    native = messages_to_native(history)
    assert native[1].artifact == [1]
    assert [part["text"] for part in native[1].content] == ["Blue.", '{"n":1}', "Not now."]
    back = messages_from_native(native)[1].content[0]
    assert isinstance(back, ToolResultBlock)
    assert (back.outcome, back.ui_data, back.side_data) == ("denied", {"shown": True}, [1])
    assert (back.structured_content, back.content) == ({"n": 1}, [TextBlock(text="Blue.")])


def test_nothing_is_kept_that_no_model_reads_if_that_is_not_wanted() -> None:
    block = result("c1", "Blue.", ui_data={"shown": "HIDDEN"}, side_data="HIDDEN", outcome="denied")
    native = messages_to_native([said("a1", "assistant", call("c1")), said("t1", "tool", block)], hidden=False)
    assert native[1].artifact is None
    assert native[1].response_metadata == {}
    assert "HIDDEN" not in str(native)


def test_results_in_one_message_become_tool_messages_of_their_own() -> None:
    asked = said("a1", "assistant", call("c1"), call("c2"))
    native = messages_to_native([asked, said("t1", "tool", result("c1", "One."), result("c2", "Two."))])
    assert [(each.id, each.tool_call_id, each.content) for each in native[1:]] == [
        ("t1", "c1", "One."),
        ("c2:result", "c2", "Two."),
    ]
    native = messages_to_native([asked, said("t1", "tool", result("c2", "Two."), result("c1", "One."))])
    assert [(each.id, each.tool_call_id, each.content) for each in native[1:]] == [
        ("c1:result", "c1", "One."),
        ("c2:result", "c2", "Two."),
    ]


def test_results_inside_an_answer_stand_behind_it() -> None:
    history = [
        said("a1", "assistant", "First.", call("c1"), result("c1", "One."), "Then.", call("c2")),
        said("u", "user", "?"),
    ]
    native = messages_to_native(history)
    assert told(native) == [
        ("ai", "a1"),
        ("tool", "c1:result"),
        ("ai", "a1#2"),
        ("tool", "c2:result"),
        ("human", "u"),
    ]
    assert ("message_split", "$[0]") in codes(native)


def test_results_come_right_behind_the_message_that_made_the_call() -> None:
    history = [
        said("a1", "assistant", call("c1")),
        said("a2", "assistant", "I am waiting."),
        said("t1", "tool", result("c1", "One.")),
    ]
    native = messages_to_native(history)
    assert told(native) == [("ai", "a1"), ("tool", "t1"), ("ai", "a2")]
    assert codes(native) == [("result_moved", "$[2].content[0]")]


# Calls


def test_the_id_that_the_provider_gave_goes_back() -> None:
    block = call("c1#2", provider_metadata=AgProviderMeta({NATIVE_CALL_ID: "c1"}))
    native = messages_to_native([said("a1", "assistant", block), said("t1", "tool", result("c1#2", "Blue."))])
    assert (native[0].tool_calls[0]["id"], native[1].tool_call_id) == ("c1", "c1")


def test_an_id_is_used_once() -> None:
    again = call("c1#2", provider_metadata=AgProviderMeta({NATIVE_CALL_ID: "c1"}))
    history = [
        said("a1", "assistant", call("c1")),
        said("t1", "tool", result("c1", "One.")),
        said("a2", "assistant", again),
        said("t2", "tool", result("c1#2", "Two.")),
    ]
    native = messages_to_native(history)
    assert [native[2].tool_calls[0]["id"], native[3].tool_call_id] == ["c1#2", "c1#2"]
    assert codes(native) == [("id_changed", "$[2].content[0]")]


def test_the_same_block_twice_in_a_history_is_two_calls() -> None:
    block, answer = call("c1"), result("c1", "One.")
    history = [
        said("a1", "assistant", block),
        said("t1", "tool", answer),
        said("a2", "assistant", block),
        said("t2", "tool", answer),
    ]
    native = messages_to_native(history)
    assert [native[0].tool_calls[0]["id"], native[1].tool_call_id] == ["c1", "c1"]
    assert [native[2].tool_calls[0]["id"], native[3].tool_call_id] == ["c1_2", "c1_2"]


def test_arguments_that_are_no_object_go_back_as_they_came() -> None:
    broken = ToolCallBlock(
        tool_call_id="c1",
        name="look",
        input='{"at": "s',
        provider_metadata=AgProviderMeta({"langgraph/invalid": "cut off"}),
    )
    native = messages_to_native([said("a1", "assistant", broken), said("t1", "tool", result("c1", "What?"))])
    assert native[0].tool_calls == []
    assert native[0].invalid_tool_calls == [
        {"type": "invalid_tool_call", "id": "c1", "name": "look", "args": '{"at": "s', "error": "cut off"}
    ]


def test_a_name_that_no_provider_takes() -> None:
    history = [said("a1", "assistant", call("c1", name="look up/now")), said("t1", "tool", result("c1", "Blue."))]
    native = messages_to_native(history, provider="google")
    assert (native[0].tool_calls[0]["name"], native[1].name) == ("look_up_now", "look_up_now")
    assert codes(native) == [("name_changed", "$[0].content[0]")]
    assert messages_to_native(history)[0].tool_calls[0]["name"] == "look up/now"


def test_the_name_of_an_agent_goes_where_the_provider_takes_it() -> None:
    history = [said("a1", "assistant", "Hi.", agent_name="Weather Agent")]
    assert messages_to_native(history)[0].name == "Weather Agent"
    assert messages_to_native(history, provider="openai-chat")[0].name is None


# What does not go


def test_what_waits_for_people_does_not_go_without_their_answers() -> None:
    turns = [
        AgTurnRecord(turn_id="t1", thread_id="th", asks=[AgPausedAsk(ask_id="k", kind="approval", tool_call_id="c1")])
    ]
    history = [
        said("u1", "user", "Mail."),
        said("a1", "assistant", "I mail.", call("c1"), turn_id="t1"),
        said("u2", "user", "What time is it?"),
    ]
    native = messages_to_native(history, turns=turns)
    assert told(native) == [("human", "u1"), ("human", "u2")]
    assert codes(native) == [("pending", "$[1]")]


def test_calls_that_an_app_made_and_notices_do_not_go() -> None:
    history = [
        said("u1", "user", "Hi."),
        said("n1", "notice", "Quota is low."),
        said("a1", "assistant", "Hello.", call("c1", ui_visibility=["app"])),
        said("t1", "tool", result("c1", "Refreshed.")),
    ]
    native = messages_to_native(history)
    assert told(native) == [("human", "u1"), ("ai", "a1")]
    assert native[1].tool_calls == []


def test_what_the_graph_has_not_put_into_its_state_does_not_go() -> None:
    route = said("r", "assistant", "BILLING", metadata={"langgraph/committed": False})
    kept = said("a", "assistant", "Hi.", metadata={"langgraph/committed": True})
    native = messages_to_native([route, said("u", "user", "hi"), kept, said("s", "tool", result("c", "sun"))])

    assert [(message.type, message.content) for message in native] == [("human", "hi"), ("ai", "Hi.")]
    assert codes(native) == [("uncommitted", "$[0]"), ("stray_result", "$[3].content[0]")]
    # A graph that keeps its answers elsewhere has no other one of this turn.
    assert [message.content for message in messages_to_native([said("u", "user", "hi"), route])] == ["hi", "BILLING"]


def test_calls_without_results_and_results_without_calls() -> None:
    history = [said("u1", "user", "Hi."), said("a1", "assistant", call("c1")), said("u2", "user", "Go on.")]
    with pytest.raises(TranscriptError) as refused:
        messages_to_native(history, unanswered="refuse")
    assert (refused.value.code, refused.value.path) == ("unanswered_call", "$[1].content[0]")
    assert told(messages_to_native(history, unanswered="leave_out")) == [("human", "u1"), ("human", "u2")]
    stray = [said("u1", "user", "Hi."), said("t1", "tool", result("c9", "?"))]
    assert codes(messages_to_native(stray)) == [("stray_result", "$[1].content[0]")]
    with pytest.raises(TranscriptError) as refused:
        messages_to_native(stray, stray="refuse")
    assert refused.value.path == "$[1].content[0]"


def test_empty_texts_and_messages_are_left_out() -> None:
    native = messages_to_native([said("u1", "user", "Hi.", " "), said("a1", "assistant", ""), said("u2", "user", "?")])
    assert told(native) == [("human", "u1"), ("human", "u2")]
    assert codes(native) == [
        ("text_dropped", "$[0].content[1]"),
        ("text_dropped", "$[1].content[0]"),
        ("message_dropped", "$[1]"),
    ]


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_sound_that_a_provider_does_not_take(provider: Provider) -> None:
    sound = AudioBlock(source=Base64Source(media_type="audio/wav", data="UklGRg=="))
    history = [said("u1", "user", "Listen.", sound)]
    with pytest.raises(ReplayError) as refused:
        messages_to_native(history, provider=provider)
    assert refused.value.path == "$[0].content[1]"
    native = messages_to_native(history, provider=provider, unsupported="drop")
    assert native[0].content == "Listen."
    assert codes(native) == [("block_dropped", "$[0].content[1]")]


def test_a_provider_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="provider must be one of anthropic, "):
        messages_to_native([], provider="openai")  # type: ignore[arg-type]


# Reasoning and other native blocks

SEALED: dict[str, ReasoningBlock] = {
    "anthropic": ReasoningBlock(text="Hm.", opaque=AgOpaque(kind="signature", value="c2ln", provider="anthropic")),
    "openai": ReasoningBlock(
        text="Hm.", item_id="rs_1", opaque=AgOpaque(kind="encrypted", value="ZW5j", provider="openai")
    ),
    "google": ReasoningBlock(text="Hm.", opaque=AgOpaque(kind="signature", value="Z29v", provider="google")),
    "bedrock": ReasoningBlock(text="Hm.", opaque=AgOpaque(kind="signature", value="YmVk", provider="bedrock")),
}
NATIVE: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    "openai": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "ZW5j",
    },
    "google": {"type": "thinking", "thinking": "Hm.", "signature": "Z29v"},
    "bedrock": {"type": "reasoning_content", "reasoning_content": {"text": "Hm.", "signature": "YmVk"}},
}
TARGETS: dict[Provider, str | None] = {
    "anthropic": "anthropic",
    "openai-responses": "openai",
    "openai-chat": None,
    "google": "google",
    "bedrock": "bedrock",
}


@pytest.mark.parametrize("maker", SEALED)
def test_without_a_provider_named_each_answer_has_the_form_of_its_own(maker: str) -> None:
    native = messages_to_native([said("u1", "user", "?"), said("a1", "assistant", SEALED[maker], "Yes.")])
    assert native[1].content == [NATIVE[maker], {"type": "text", "text": "Yes."}]
    assert native.repairs == []


@pytest.mark.parametrize("maker", SEALED)
@pytest.mark.parametrize("provider", TARGETS)
def test_reasoning_goes_to_its_own_provider_alone(provider: Provider, maker: str) -> None:
    native = messages_to_native(
        [said("u1", "user", "?"), said("a1", "assistant", SEALED[maker], "Yes.")], provider=provider
    )
    if TARGETS[provider] == maker:
        assert native[1].content == [NATIVE[maker], {"type": "text", "text": "Yes."}]
        assert native.repairs == []
    else:
        assert native[1].content == "Yes."
        assert codes(native) == [("reasoning_dropped", "$[1].content[0]")]


@pytest.mark.parametrize("provider", [*TARGETS, None])
@pytest.mark.parametrize("maker", ["anthropic", "openai", "google", "bedrock", None])
def test_reasoning_that_nobody_signed_never_goes(provider: Provider | None, maker: str | None) -> None:
    block = ReasoningBlock(text="Hm.", provider=maker)
    native = messages_to_native([said("a1", "assistant", block, "Yes.")], provider=provider)
    assert native[0].content == "Yes."
    assert codes(native) == [("reasoning_dropped", "$[0].content[0]")]


def test_a_signature_without_words_keeps_its_empty_thinking() -> None:
    block = ReasoningBlock(opaque=AgOpaque(kind="signature", value="c2ln", provider="anthropic"))
    native = messages_to_native([said("a1", "assistant", block, "Yes.")], provider="anthropic")
    assert native[0].content[0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_reasoning_that_nothing_follows_does_not_go(provider: Provider) -> None:
    block = SEALED["anthropic" if provider == "anthropic" else "openai"]
    history = [said("a1", "assistant", "Yes.", block), said("u1", "user", "And?")]
    native = messages_to_native(history, provider=provider)
    assert native[0].content == [{"type": "text", "text": "Yes."}]
    assert codes(native) == [("trailing_reasoning_dropped", "$[0]")]
    followed = [said("a1", "assistant", block), said("a2", "assistant", "Yes.")]
    assert told(messages_to_native(followed, provider=provider)) == [("ai", "a1"), ("ai", "a2")]


def test_a_native_block_goes_to_its_own_provider_alone() -> None:
    raw = ProviderRawBlock(vendor="openai", raw={"type": "mcp_list_tools", "id": "mcpl_1", "tools": []})
    history = [said("a1", "assistant", raw, "Yes.")]
    native = messages_to_native(history, provider="openai-responses")
    assert native[0].content[0] == {"type": "mcp_list_tools", "id": "mcpl_1", "tools": []}
    for provider in ("anthropic", "openai-chat", "google", "bedrock"):
        native = messages_to_native(history, provider=provider)
        assert native[0].content == "Yes."
        assert codes(native) == [("block_dropped", "$[0].content[0]")]


def test_reasoning_beside_the_content_goes_back_beside_it() -> None:
    message = AIMessage(
        "Yes.",
        id="a1",
        additional_kwargs={"reasoning_content": "Hm."},
        response_metadata={"model_provider": "deepseek", "model_name": "deepseek-reasoner"},
    )
    read = messages_from_native([message])
    assert [block.type for block in read[0].content] == ["reasoning", "text"]
    assert messages_to_native(read) == [message]
    native = messages_to_native(read, provider="anthropic")
    assert (native[0].content, native[0].additional_kwargs) == ("Yes.", {})


# Order


def test_what_the_system_says_stands_at_the_head() -> None:
    history = [said("s1", "system", "One."), said("u1", "user", "Hi."), said("s2", "system", "Two.")]
    native = messages_to_native(history)
    assert told(native) == [("system", "s1"), ("system", "s2"), ("human", "u1")]
    assert codes(native) == [("system_moved", "$[2]")]
    assert told(messages_to_native(history, provider="openai-chat"))[2] == ("system", "s2")


def test_messages_of_one_id_get_ids_of_their_own() -> None:
    native = messages_to_native([said("m", "user", "One."), said("m", "user", "Two.")])
    assert told(native) == [("human", "m"), ("human", "m#2")]
    assert codes(native) == [("id_changed", "$[1]")]


def test_nothing_of_the_history_is_shared_with_what_is_made_of_it() -> None:
    history = [
        said("a1", "assistant", call("c1"), ProviderRawBlock(vendor="langgraph", raw={"type": "x", "n": [1]})),
        said("t1", "tool", result("c1", "Blue.", side_data={"n": [1]})),
        said("u1", "user", ImageBlock(source=Base64Source(media_type="image/png", data="aGk="))),
    ]
    before = encode(history)
    native = messages_to_native(history)
    native[0].tool_calls[0]["args"]["at"] = "sea"
    native[1].artifact["n"].append(2)
    native[2].content[0]["base64"] = ""
    assert encode(history) == before


def test_half_of_a_character_is_replaced() -> None:
    native = messages_to_native([said("u1", "user", "Hi \ud83d.")])
    assert native[0].content == "Hi \ufffd."
    assert codes(native) == [("surrogate_replaced", "$")]
