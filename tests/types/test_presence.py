"""Absent is not null; what the wire requires is always written and never passed by hand (spec §0.1, §2, §3)."""

from __future__ import annotations

import json
import typing
from typing import Any

import msgspec
import pytest

import agjson.types as t


def wire(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def test_absent_fields_are_left_out() -> None:
    assert msgspec.json.encode(t.TextDelta(seq=0, id="b", delta="x")) == (
        b'{"type":"text.delta","seq":0,"id":"b","delta":"x"}'
    )


def test_false_zero_and_empty_values_are_written() -> None:
    assert wire(t.AgUsage(input_tokens=0, cumulative=False)) == {"inputTokens": 0, "cumulative": False}
    assert wire(t.TextEnd(seq=0, id="", citations=[])) == {"type": "text.end", "seq": 0, "id": "", "citations": []}


def test_a_null_opaque_value_is_written_and_read() -> None:
    done = t.ToolDone(seq=0, tool_call_id="c", content=[], structured_content=None, ui_data=None)
    assert wire(done) == {
        "type": "tool.done",
        "seq": 0,
        "toolCallId": "c",
        "content": [],
        "structuredContent": None,
        "uiData": None,
    }
    back = msgspec.json.decode(msgspec.json.encode(done), type=t.ToolDone)
    assert back.ui_data is None
    assert back.side_data is t.UNSET


def test_a_required_opaque_value_may_be_null_but_not_missing() -> None:
    block = msgspec.json.decode(b'{"type":"tool-call","toolCallId":"c","name":"n","input":null}', type=t.AgBlock)
    assert block == t.ToolCallBlock(tool_call_id="c", name="n", input=None)
    with pytest.raises(msgspec.ValidationError, match="missing required field `input`"):
        msgspec.json.decode(b'{"type":"tool-call","toolCallId":"c","name":"n"}', type=t.AgBlock)


def test_state_is_unset_until_it_is_set() -> None:
    empty = t.AgReduceResult(messages=[], artifacts=[], memory=[], turns=[])
    assert empty.state is t.UNSET
    assert "state" not in wire(empty)
    assert wire(msgspec.structs.replace(empty, state=None))["state"] is None


OPTIONAL = [
    (cls, info.encode_name)
    for cls in t.EVENT_TYPES.values()
    for info in msgspec.structs.fields(cls)
    if info.default is None
]


@pytest.mark.parametrize(("cls", "name"), OPTIONAL, ids=lambda value: value if isinstance(value, str) else value.type)
def test_null_is_refused_where_the_type_is_known(cls: Any, name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"got `null` - at `\$\.{name}`"):
        msgspec.json.decode(json.dumps({"type": cls.type, name: None}), type=cls)


def test_meta_rides_as_underscore_meta() -> None:
    event = t.TurnAbort(seq=0, meta={"traceparent": "00", "acme/x": [None]})
    assert wire(event)["_meta"] == {"traceparent": "00", "acme/x": [None]}
    assert msgspec.json.decode(msgspec.json.encode(event), type=t.AgEvent) == event


SURFACES: list[tuple[tuple[str, str], dict[str, Any]]] = [
    (
        ("a2ui", "action"),
        {"surface_id": "s", "name": "n", "source_component_id": "c", "timestamp": "t", "context": {}},
    ),
    (("a2ui", "function-response"), {"surface_id": "s", "function_call_id": "f", "call": "c", "value": None}),
    (("a2ui", "error"), {"surface_id": "s", "code": "E", "message": "m"}),
    (("mcp-app", "ui/update-model-context"), {"surface_id": "s", "params": t.McpModelContextParams()}),
    (
        ("mcp-app", "ui/message"),
        {"surface_id": "s", "params": t.McpMessageParams(content=t.McpTextContent(text="hi"))},
    ),
    (("mcp-app", "ui/request-display-mode"), {"surface_id": "s", "params": t.McpDisplayModeParams(mode="pip")}),
    (("mcp-app", "ui/open-link"), {"surface_id": "s", "params": t.McpOpenLinkParams(url="https://x.example")}),
    (("openai-app", "setWidgetState"), {"surface_id": "s", "widget_state": None}),
    (("openai-app", "callTool"), {"surface_id": "s", "name": "n", "args": {}, "call_id": "c"}),
    (("openai-app", "sendFollowUpMessage"), {"surface_id": "s", "prompt": "p"}),
    (("openai-app", "requestDisplayMode"), {"surface_id": "s", "mode": "inline", "request_id": "r"}),
]


@pytest.mark.parametrize(("key", "fields"), SURFACES, ids=["/".join(key) for key, _ in SURFACES])
def test_surface_discriminants_are_filled_in_written_and_required(key: tuple[str, str], fields: dict[str, Any]) -> None:
    arm: Any = t.SURFACE_ARMS[key]
    value = arm(**fields)
    assert isinstance(value, t.SurfaceInteraction)
    written = wire(value)
    second = t.SURFACE_DISCRIMINANTS[key[0]]
    assert (written["surface"], written[second]) == key
    assert msgspec.convert(written, arm) == value
    for name in ("surface", second):
        without = {k: v for k, v in written.items() if k != name}
        with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
            msgspec.convert(without, arm)
        with pytest.raises(msgspec.ValidationError, match=rf"\$\.{name}"):
            msgspec.convert({**written, name: "other"}, arm)


def test_every_surface_arm_is_tried() -> None:
    assert {key for key, _ in SURFACES} == set(t.SURFACE_ARMS)


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (t.NamedToolChoice(name="n"), "type", "tool"),
        (t.AgResponseFormat(schema={}), "type", "json_schema"),
        (t.McpTextContent(text="x"), "type", "text"),
        (t.McpMessageParams(content=t.McpTextContent(text="x")), "role", "user"),
        (t.ArtifactEnd(seq=0, artifact_id="a"), "lastChunk", True),
        (t.StartInput(thread_id="th", turn_id="t", messages=[]), "protocol", "agjson"),
        (t.ResumeInput(thread_id="th", turn_id="t"), "version", "1.0.0-draft.1"),
        (t.ToolResultInput(thread_id="th", turn_id="t", results=[]), "version", "1.0.0-draft.1"),
    ],
)
def test_fixed_members_are_filled_in_written_and_required(value: Any, name: str, expected: Any) -> None:
    written = wire(value)
    assert written[name] == expected
    assert msgspec.convert(written, type(value)) == value
    del written[name]
    with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
        msgspec.convert(written, type(value))


def test_fixed_members_survive_a_subclass_with_more_fields() -> None:
    base: Any = t.ResumeInput
    members = {"__annotations__": {"extra_0": msgspec.Raw}, "extra_0": msgspec.field(name="zap")}
    extended = type(base)("ResumeInput", (base,), members, kw_only=True, frozen=True)
    value = extended(thread_id="th", turn_id="t", extra_0=msgspec.Raw(b"[1, 2]"))
    assert isinstance(value, t.ResumeInput)
    assert wire(value) == {
        "kind": "resume",
        "protocol": "agjson",
        "version": "1.0.0-draft.1",
        "threadId": "th",
        "turnId": "t",
        "zap": [1, 2],
    }


def test_source_payloads_share_the_marker() -> None:
    arms = [*t.SOURCE_PAYLOAD_ARMS.values(), t.BareUrlSource]
    assert all(issubclass(arm, t.SourcePayload) for arm in arms)
    assert {arm.__struct_config__.tag for arm in arms} == {*t.SOURCE_PAYLOAD_ARMS, None}
    assert set(typing.get_args(t.AgSource)) == {t.Base64Source, t.UrlSource, t.FileSource}
    assert wire(t.BareUrlSource(url="u", title="T")) == {"url": "u", "title": "T"}
    assert wire(t.DocumentSource(filename="a.pdf")) == {"type": "document", "filename": "a.pdf"}


def test_draft_2_members() -> None:
    ask = t.HitlAsk(
        seq=0, ask_id="a", kind="approval", grant_modes=[t.AgGrantMode(id="once"), t.AgGrantMode(id="s", label="Here")]
    )
    assert wire(ask)["grantModes"] == [{"id": "once"}, {"id": "s", "label": "Here"}]
    notice = t.AgMessage(id="m", role="notice", content=[], notice_source="host")
    assert wire(notice) == {"id": "m", "role": "notice", "content": [], "noticeSource": "host"}
    assert msgspec.json.decode(msgspec.json.encode(notice), type=t.AgMessage) == notice


def test_usage_by_model_nests() -> None:
    usage = t.AgUsage(total_tokens=3, by_model={"a": t.AgUsage(total_tokens=1), "b": t.AgUsage(cost_usd=0.5)})
    assert wire(usage) == {"totalTokens": 3, "byModel": {"a": {"totalTokens": 1}, "b": {"costUsd": 0.5}}}
    assert msgspec.json.decode(msgspec.json.encode(usage), type=t.AgUsage) == usage


def test_blocks_nest_in_tool_results() -> None:
    inner = t.ToolResultBlock(tool_call_id="c1", content=[t.TextBlock(text="x")])
    outer = t.ToolResultBlock(tool_call_id="c2", content=[inner], outcome="denied")
    assert msgspec.json.decode(msgspec.json.encode(outer), type=t.AgBlock) == outer
