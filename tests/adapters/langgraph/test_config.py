"""Where the settings of a run and the shared state go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from agjson.adapters.langgraph._config import config_for, fields_of, place_settings, state_update, with_values
from agjson.types import (
    UNSET,
    AgClientCapabilities,
    AgFrontendTool,
    AgPushNotification,
    AgReasoningConfig,
    AgRunConfig,
    AgToolDef,
    TextBlock,
)

RUN = AgRunConfig(
    model="claude-test",
    system="Be short.",
    temperature=0.5,
    max_tokens=100,
    reasoning=AgReasoningConfig(mode="enabled", budget_tokens=1024),
    tools=[AgToolDef(name="look", input_schema={"type": "object"})],
    context=[TextBlock(text="It is Monday.")],
    push_notification=AgPushNotification(url="https://example.org/back", token="secret"),
)
CAPABILITIES = AgClientCapabilities(frontend_tools=[AgFrontendTool(name="pick", input_schema={"type": "object"})])


def test_a_setting_goes_into_the_context_field_of_its_name() -> None:
    fields = ("model", "max_tokens", "reasoning", "tools", "frontend_tools")
    context, configured, unsupported = place_settings(RUN, CAPABILITIES, context_fields=fields)
    assert context == {
        "model": "claude-test",
        "max_tokens": 100,
        "reasoning": {"mode": "enabled", "budgetTokens": 1024},
        "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
        "frontend_tools": [{"name": "pick", "inputSchema": {"type": "object"}}],
    }
    assert configured == {}
    assert unsupported == ["run.system", "run.temperature", "run.context", "run.pushNotification"]


def test_a_setting_goes_into_the_config_where_the_host_says_so() -> None:
    context, configured, unsupported = place_settings(
        RUN, None, context_fields=("model",), configurable=("model", "temperature")
    )
    assert context == {"model": "claude-test"}
    assert configured == {"model": "claude-test", "temperature": 0.5}
    assert "run.model" not in unsupported
    assert "run.maxTokens" in unsupported


def test_what_is_not_set_is_nowhere() -> None:
    assert place_settings(None, None, context_fields=("model",)) == ({}, {}, [])
    assert place_settings(AgRunConfig(), AgClientCapabilities()) == ({}, {}, [])


def test_every_setting_has_a_place_or_is_named() -> None:
    told = place_settings(RUN, CAPABILITIES)[2]
    assert len(told) == 9
    assert "capabilities.frontendTools" in told


def test_the_config_of_a_run() -> None:
    base = {"configurable": {"user": "u1"}, "metadata": {"team": "blue"}, "recursion_limit": 7, "tags": ["x"]}
    config = config_for(base, thread_id="th", turn_id="t1", configurable={"model": "m"})
    assert config == {
        "configurable": {"user": "u1", "model": "m", "thread_id": "th"},
        "metadata": {"team": "blue", "agjson/turnId": "t1"},
        "recursion_limit": 7,
        "tags": ["x"],
    }
    assert base["configurable"] == {"user": "u1"}


def test_the_thread_of_the_host_wins() -> None:
    config = config_for({"configurable": {"thread_id": "tenant-1/th"}}, thread_id="th", turn_id="t1")
    assert config["configurable"]["thread_id"] == "tenant-1/th"
    assert config_for(None, thread_id="th", turn_id="t1")["configurable"] == {"thread_id": "th"}


@dataclass
class Plain:
    user: str
    model: str = "default"


class Model(BaseModel):
    user: str
    model: str = "default"


class Base(TypedDict):
    user: str


class Typed(Base, total=False):
    model: str


@pytest.mark.parametrize("schema", [Plain, Model, Typed])
def test_the_fields_of_a_context_schema(schema: Any) -> None:
    assert fields_of(schema) == {"user", "model"}


def test_no_schema_has_no_fields() -> None:
    assert fields_of(None) == frozenset()
    assert fields_of(int) == frozenset()


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (None, {"model": "m"}),
        ({"user": "u"}, {"user": "u", "model": "m"}),
        (Plain("u"), Plain("u", "m")),
        (Model(user="u"), Model(user="u", model="m")),
    ],
)
def test_settings_in_a_context_of_any_kind(context: Any, expected: Any) -> None:
    assert with_values(context, {"model": "m"}) == expected


def test_a_context_without_settings_stays_the_one_it_is() -> None:
    context = object()
    assert with_values(context, {}) is context
    assert with_values(None, {}) is None
    with pytest.raises(TypeError):
        with_values(context, {"model": "m"})


# State


def update(state: Any, shared: Any = UNSET, keys: Any = None) -> Any:
    return state_update(state, shared=shared, keys=keys, reserved=("messages",))


def test_the_state_of_an_input_is_what_it_changes() -> None:
    shared = {"topic": "a", "list": [1, 2], "flag": True, "deep": {"x": [1]}}
    state = {"topic": "b", "list": [1, 2], "flag": 1, "deep": {"x": [1]}, "new": None}
    assert update(state, shared) == ({"topic": "b", "flag": 1, "new": None}, [])


def test_the_whole_state_as_it_was_told_changes_nothing() -> None:
    shared = {"topic": "a", "count": [1], "none": None}
    assert update(dict(shared), shared) == ({}, [])


def test_a_client_does_not_write_what_the_graph_keeps_for_itself() -> None:
    state = {"topic": "b", "hitl_edited_tool_calls": {"c1": {}}, "messages": []}
    changes, unsupported = update(state, keys=frozenset(("topic", "messages")))
    assert changes == {"topic": "b"}
    assert unsupported == ["state.hitl_edited_tool_calls", "state.messages"]


@pytest.mark.parametrize("state", [None, 1, "x", [1]])
def test_a_state_that_is_no_object_has_no_place(state: Any) -> None:
    assert update(state) == ({}, ["state"])


def test_no_state_is_no_change() -> None:
    assert update(UNSET, {"a": 1}) == ({}, [])
