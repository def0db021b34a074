"""A start as one request to the Messages API: history, run configuration, client tools (spec §3)."""

from __future__ import annotations

from typing import Any

import pytest

from agjson import AgMessage, ReplayError, StartInput
from agjson.adapters.anthropic import AnthropicCall, to_native
from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgProviderMeta,
    AgPushNotification,
    AgReasoningConfig,
    AgResponseFormat,
    AgRunConfig,
    AgToolDef,
    AudioBlock,
    FileSource,
    FrontendToolSource,
    ImageBlock,
    McpToolSource,
    NamedToolChoice,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from tests.support.anthropic_history import message, repaired_of, text

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def start(*messages: AgMessage, run: AgRunConfig | None = None, **fields: Any) -> StartInput:
    return StartInput(
        thread_id="thread", turn_id="turn", messages=messages or (message("user", "hi"),), run=run, **fields
    )


def call(run: AgRunConfig | None = None, **options: Any) -> AnthropicCall:
    return to_native(start(run=run), **options)


def tool(name: str = "look", **fields: Any) -> AgToolDef:
    return AgToolDef(name=name, input_schema=fields.pop("input_schema", SCHEMA), **fields)


def native_tool(name: str = "look", **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": SCHEMA, **fields}


# Messages


def test_the_messages_follow_the_history() -> None:
    found = to_native(
        start(message("user", "and you?")),
        history=[message("user", "hi"), message("assistant", "fine")],
        model="claude-test",
    )

    assert found == AnthropicCall(
        params={
            "model": "claude-test",
            "max_tokens": 4096,
            "messages": [
                {"role": "user", "content": [text("hi")]},
                {"role": "assistant", "content": [text("fine")]},
                {"role": "user", "content": [text("and you?")]},
            ],
        }
    )
    assert type(found.params["messages"]) is list


def test_a_paused_turn_goes_on_without_a_new_message() -> None:
    paused = [
        message("user", "search"),
        message(
            "assistant",
            ToolCallBlock(tool_call_id="srvtoolu_1", name="web_search", input={"query": "x"}, provider_executed=True),
        ),
    ]
    found = to_native(StartInput(thread_id="thread", turn_id="turn", messages=[]), history=paused)

    assert found.params["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}],
    }
    assert found.repairs == []


def test_a_start_leaves_no_call_without_result() -> None:
    history = [message("user", "?"), message("assistant", ToolCallBlock(tool_call_id="toolu_1", name="look", input={}))]
    found = to_native(start(), history=history)

    assert found.params["messages"][2]["content"][0]["is_error"] is True
    assert repaired_of(found.repairs) == [("result_added", "$[1].content[0]")]
    with pytest.raises(ReplayError):
        to_native(start(), history=history, missing_results="refuse")


def test_nothing_to_send_is_refused() -> None:
    with pytest.raises(ReplayError, match="nothing to send"):
        to_native(StartInput(thread_id="thread", turn_id="turn", messages=[message("notice", "hi")]))


def test_a_history_that_cannot_be_sent_is_refused_unless_that_is_allowed() -> None:
    sound = message("user", "hi", AudioBlock(source=FileSource(file_id="f")))
    with pytest.raises(ReplayError) as error:
        to_native(start(sound), history=[message("user", "?")])
    assert error.value.path == "$[1].content[1]"

    found = to_native(start(sound), unsupported="drop")
    assert found.params["messages"] == [{"role": "user", "content": [text("hi")]}]
    assert repaired_of(found.repairs) == [("block_dropped", "$[0].content[1]")]


def test_context_stands_beside_the_new_messages() -> None:
    run = AgRunConfig(context=[TextBlock(text="Today is Monday.")])
    found = to_native(start(message("user", "what day?"), run=run), history=[message("user", "a")])

    assert found.params["messages"] == [
        {"role": "user", "content": [text("a"), text("Today is Monday."), text("what day?")]}
    ]


# Model, limits, system


def test_the_input_names_the_model_and_the_limit() -> None:
    found = call(AgRunConfig(model="claude-other", max_tokens=100.0), model="claude-test", max_tokens=10)

    assert (found.params["model"], found.params["max_tokens"]) == ("claude-other", 100)
    assert type(found.params["max_tokens"]) is int


def test_without_any_model_the_request_lacks_it() -> None:
    assert "model" not in call().params


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_a_limit_that_is_no_count_is_refused(limit: float) -> None:
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(max_tokens=limit))
    assert error.value.path == "$.run.maxTokens"


def test_the_system_prompt() -> None:
    assert call(AgRunConfig(system="be kind")).params["system"] == [text("be kind")]
    assert call(AgRunConfig(system=[TextBlock(text="a"), TextBlock(text="b")])).params["system"] == [
        text("a"),
        text("b"),
    ]
    assert call(defaults={"system": "host"}).params["system"] == "host"
    assert call(AgRunConfig(system="mine"), defaults={"system": "host"}).params["system"] == [text("mine")]
    assert "system" not in call(AgRunConfig(system=" ")).params
    assert "system" not in call(defaults={"system": ""}).params


def test_system_messages_stand_behind_the_system_prompt() -> None:
    found = to_native(
        start(run=AgRunConfig(system="first")), history=[message("system", "second")], defaults={"system": "host"}
    )
    assert found.params["system"] == [text("first"), text("second")]

    found = to_native(start(), history=[message("system", "second")], defaults={"system": "host"})
    assert found.params["system"] == [text("host"), text("second")]


def test_a_system_prompt_holds_text_alone() -> None:
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(system=[ImageBlock(source=FileSource(file_id="f"))]))
    assert error.value.path == "$.run.system[0]"


# Tools


def test_tools_are_declared() -> None:
    tools = [
        tool("look", description="Looks.", strict=True),
        tool("ask", source=McpToolSource(server_name="wiki")),
        tool("open", source=FrontendToolSource()),
        tool("bare", input_schema={}),
    ]

    assert call(AgRunConfig(tools=tools)).params["tools"] == [
        native_tool("look", description="Looks.", strict=True),
        native_tool("ask"),
        native_tool("open"),
        {"name": "bare", "input_schema": {"type": "object"}},
    ]


def test_the_hosts_tools_come_first_and_the_clients_own_last() -> None:
    host = {"type": "web_search_20250305", "name": "web_search"}
    capabilities = AgClientCapabilities(
        frontend_tools=[
            AgFrontendTool(name="pick", description="Picks.", input_schema=SCHEMA),
            AgFrontendTool(name="open", input_schema=SCHEMA),
        ]
    )
    run = AgRunConfig(tools=[tool("look"), *[tool("open", source=FrontendToolSource())] * 2])
    found = to_native(start(run=run, capabilities=capabilities), defaults={"tools": [host]})

    assert found.params["tools"] == [
        host,
        native_tool("look"),
        native_tool("open"),
        native_tool("pick", description="Picks."),
    ]


def test_a_tool_for_apps_alone_reaches_no_model() -> None:
    tools = [
        tool("hidden", ui_visibility=["app"]),
        tool("both", ui_visibility=["app", "model"]),
        tool("none", ui_visibility=[]),
    ]
    found = call(AgRunConfig(tools=tools))

    assert [each["name"] for each in found.params["tools"]] == ["both"]
    assert found.unsupported == []


def test_a_tool_that_the_provider_runs_needs_its_native_definition() -> None:
    native = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    tools = [
        tool("web_search", provider_executed=True, meta={"anthropic/tool": native}),
        tool("code_execution", provider_executed=True),
        tool("image_generation", provider_executed=True),
    ]
    host = {"type": "code_execution_20250825", "name": "code_execution"}
    found = call(AgRunConfig(tools=tools), defaults={"tools": [host]})

    assert found.params["tools"] == [host, native]
    assert found.unsupported == ["run.tools[2]"]


@pytest.mark.parametrize(
    ("tools", "path"),
    [
        ([tool("a.b")], "$.run.tools[0].name"),
        ([tool("a", input_schema=[])], "$.run.tools[0].inputSchema"),
        ([tool("a", input_schema={"type": "string"})], "$.run.tools[0].inputSchema"),
        ([tool("a"), tool("a")], "$.run.tools[1].name"),
        ([tool("host")], "$.run.tools[0].name"),
    ],
)
def test_a_tool_that_the_api_would_refuse_is_refused(tools: list[AgToolDef], path: str) -> None:
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(tools=tools), defaults={"tools": [native_tool("host")]})
    assert error.value.path == path


def test_a_client_cannot_take_the_place_of_a_tool_of_the_host() -> None:
    capabilities = AgClientCapabilities(frontend_tools=[AgFrontendTool(name="host", input_schema=SCHEMA)])
    with pytest.raises(ReplayError) as error:
        to_native(start(capabilities=capabilities), defaults={"tools": [native_tool("host")]})
    assert error.value.path == "$.capabilities.frontendTools[0].name"


@pytest.mark.parametrize(
    ("choice", "native"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        (NamedToolChoice(name="look"), {"type": "tool", "name": "look"}),
    ],
)
def test_tool_choice(choice: Any, native: dict[str, Any]) -> None:
    run = AgRunConfig(tools=[tool()], tool_choice=choice)
    assert call(run).params["tool_choice"] == native

    found = call(run, defaults={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}})
    assert found.params["tool_choice"] == native | ({} if choice == "none" else {"disable_parallel_tool_use": True})


def test_a_choice_among_no_tools() -> None:
    assert "tool_choice" not in call(AgRunConfig(tool_choice="auto")).params
    for choice in ("required", NamedToolChoice(name="look")):
        with pytest.raises(ReplayError):
            call(AgRunConfig(tool_choice=choice))
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(tools=[tool()], tool_choice=NamedToolChoice(name="other")))
    assert error.value.path == "$.run.toolChoice.name"


# Reasoning, format, sampling


@pytest.mark.parametrize(
    ("reasoning", "params"),
    [
        (AgReasoningConfig(mode="disabled"), {"thinking": {"type": "disabled"}}),
        (AgReasoningConfig(mode="enabled"), {"thinking": {"type": "adaptive"}}),
        (
            AgReasoningConfig(mode="enabled", budget_tokens=2048),
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        (
            AgReasoningConfig(mode="enabled", effort="high"),
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        (
            AgReasoningConfig(mode="enabled", effort="minimal", budget_tokens=1024),
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "low"}},
        ),
    ],
)
def test_reasoning(reasoning: AgReasoningConfig, params: dict[str, Any]) -> None:
    found = call(AgRunConfig(reasoning=reasoning)).params
    assert {name: found[name] for name in found.keys() - {"messages", "max_tokens"}} == params


def test_how_thinking_is_shown_stays_the_hosts_choice() -> None:
    defaults = {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "max"}}

    assert call(defaults=defaults).params["thinking"] == {"type": "adaptive", "display": "omitted"}
    found = call(AgRunConfig(reasoning=AgReasoningConfig(mode="enabled", budget_tokens=1024)), defaults=defaults)
    assert found.params["thinking"] == {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}
    assert found.params["output_config"] == {"effort": "max"}


@pytest.mark.parametrize("budget", [1023, 4096, 1024.5])
def test_a_budget_that_the_api_would_refuse_is_refused(budget: float) -> None:
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(reasoning=AgReasoningConfig(mode="enabled", budget_tokens=budget), max_tokens=4096))
    assert error.value.path == "$.run.reasoning.budgetTokens"


def test_a_tool_cannot_be_required_while_a_budget_is_set() -> None:
    thinks = AgReasoningConfig(mode="enabled", budget_tokens=1024)
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(tools=[tool()], tool_choice="required", reasoning=thinks))
    assert error.value.path == "$.run.toolChoice"
    adaptive = AgReasoningConfig(mode="enabled")
    assert call(AgRunConfig(tools=[tool()], tool_choice="required", reasoning=adaptive)).params["tool_choice"]


def test_the_form_of_the_answer() -> None:
    wanted = AgResponseFormat(schema=SCHEMA, name="place")
    found = call(AgRunConfig(response_format=wanted, reasoning=AgReasoningConfig(mode="enabled", effort="low")))

    assert found.params["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert found.unsupported == []
    assert call(AgRunConfig(response_format=AgResponseFormat(schema=SCHEMA, strict=False))).unsupported == [
        "run.responseFormat.strict"
    ]
    with pytest.raises(ReplayError) as error:
        call(AgRunConfig(response_format=AgResponseFormat(schema=True)))
    assert error.value.path == "$.run.responseFormat.schema"


def test_sampling_goes_in_the_body() -> None:
    found = call(AgRunConfig(temperature=0.5, top_p=0.9), defaults={"extra_body": {"top_k": 3}})

    assert found.params["extra_body"] == {"top_k": 3, "temperature": 0.5, "top_p": 0.9}
    assert found.unsupported == []
    for run, path in ((AgRunConfig(temperature=1.5), "$.run.temperature"), (AgRunConfig(top_p=-1), "$.run.topP")):
        with pytest.raises(ReplayError) as error:
            call(run)
        assert error.value.path == path


def test_sampling_that_thinking_forbids_is_named() -> None:
    thinks = AgReasoningConfig(mode="enabled")
    found = call(AgRunConfig(temperature=0.5, top_p=0.5, reasoning=thinks))
    assert found.unsupported == ["run.temperature", "run.topP"]
    assert "extra_body" not in found.params

    found = call(AgRunConfig(temperature=1, top_p=0.95, reasoning=thinks))
    assert found.params["extra_body"] == {"temperature": 1, "top_p": 0.95}


def test_stop_sequences() -> None:
    found = call(AgRunConfig(stop_sequences=["END", "\n"]), defaults={"stop_sequences": ["HOST"]})

    assert found.params["stop_sequences"] == ["END"]
    assert found.unsupported == ["run.stopSequences[1]"]


# The rest of the envelope


def test_what_the_api_cannot_honour_is_named() -> None:
    found = to_native(
        start(run=AgRunConfig(push_notification=AgPushNotification(url="https://a.example")), state={"x": 1})
    )
    assert found.unsupported == ["run.pushNotification", "state"]


def test_the_container_goes_on() -> None:
    found = to_native(start(metadata={"anthropic/containerId": "container_1"}))
    assert found.params["container"] == "container_1"

    skills = {"skills": [{"type": "anthropic", "skill_id": "xlsx"}]}
    found = to_native(start(metadata={"anthropic/containerId": "container_1"}), defaults={"container": skills})
    assert found.params["container"] == {**skills, "id": "container_1"}
    assert "container" not in to_native(start(metadata={"anthropic/containerId": 1})).params


def test_code_that_waits_for_a_result_goes_on_in_its_container() -> None:
    by_code = AgProviderMeta({"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}})
    history = [
        message("user", "?"),
        message(
            "assistant",
            ToolCallBlock(tool_call_id="srvtoolu_1", name="code_execution", input={}, provider_executed=True),
            ToolCallBlock(tool_call_id="toolu_1", name="look", input={}, provider_metadata=by_code),
            metadata={"anthropic/container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}},
        ),
        message("tool", ToolResultBlock(tool_call_id="toolu_1", content=[TextBlock(text="x")])),
    ]
    found = to_native(StartInput(thread_id="thread", turn_id="turn", messages=[]), history=history)

    assert found.params["container"] == "container_1"
    assert found.repairs == []


def test_the_hosts_defaults_are_not_changed() -> None:
    defaults: dict[str, Any] = {"tools": [native_tool("host")], "output_config": {}, "extra_body": {}, "metadata": {}}
    run = AgRunConfig(
        tools=[tool()], temperature=0.5, reasoning=AgReasoningConfig(mode="disabled"), model="claude-other"
    )
    call(run, defaults=defaults)

    assert defaults == {"tools": [native_tool("host")], "output_config": {}, "extra_body": {}, "metadata": {}}


@pytest.mark.parametrize(
    ("options", "beta"),
    [
        ({}, False),
        ({"defaults": {"metadata": {"user_id": "u"}}}, False),
        ({"defaults": {"betas": ["context-1m-2025-08-07"]}}, True),
        ({"defaults": {"mcp_servers": [{"type": "url", "name": "wiki", "url": "https://a.example"}]}}, True),
    ],
)
def test_the_beta_endpoint_is_taken_where_it_is_needed(options: dict[str, Any], beta: bool) -> None:
    found = call(**options)

    assert found.beta is beta
    client = type("Client", (), {"messages": "plain", "beta": type("Beta", (), {"messages": "beta"})})()
    assert found.endpoint(client) == ("beta" if beta else "plain")
