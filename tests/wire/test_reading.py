"""Strict and lenient reading, unknown fields, and the paths of errors (spec §0.2, §4, §5 trust boundary)."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import agjson
from agjson import (
    AgPausedAsk,
    ExtEvent,
    MessagesSnapshot,
    TextBlock,
    TextDelta,
    ToolDone,
    ToolResultBlock,
    TurnDone,
    UnknownBlock,
    UnknownEvent,
    UnknownTypeError,
    ValidationError,
    decode_answer,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    encode,
    extra_fields,
    from_dict,
    ingest_event,
    to_dict,
)

READERS = [decode_event, ingest_event]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "convert", [str, str.encode, lambda s: bytearray(s.encode()), lambda s: memoryview(s.encode())]
)
def test_text_and_bytes_read_alike(read: Any, convert: Any) -> None:
    event = read(convert('{"type":"text.delta","seq":3,"id":"b","delta":"é"}'))
    assert event == TextDelta(seq=3, id="b", delta="é")


class TestUnknownFields:
    @pytest.mark.parametrize("read", READERS)
    def test_kept_byte_for_byte(self, read: Any) -> None:
        raw = b'{"a" : 1.0e2, "b":[ 1e400 , "\\u00e9" ]}'
        event = read(b'{"type":"text.delta","seq":0,"zap": %s ,"id":"b","delta":"x"}' % raw)
        assert isinstance(event, TextDelta)
        assert (event.id, event.delta) == ("b", "x")
        assert {name: bytes(value) for name, value in extra_fields(event).items()} == {"zap": raw}
        assert raw in encode(event)

    def test_every_depth(self) -> None:
        text = (
            '{"type":"messages.snapshot","seq":0,"x0":0,"messages":[{"id":"m","role":"assistant","x1":1,"content":['
            '{"type":"tool-result","toolCallId":"c","x2":2,"content":[{"type":"text","text":"t","x3":3,"citations":['
            '{"kind":"url","citedText":"c","url":"u","x4":4}]}]}],"usage":{"byModel":{"m":{"x5":5}}}}],'
            '"turns":[{"turnId":"t","threadId":"th","outcome":{"type":"paused","x7":7,'
            '"asks":[{"askId":"a","kind":"text","x6":6}]}}]}'
        )
        event = decode_event(text)
        assert isinstance(event, MessagesSnapshot)
        assert json.loads(encode(event)) == json.loads(text)
        result = event.messages[0].content[0]
        assert isinstance(result, ToolResultBlock)
        inner = result.content[0]
        assert isinstance(inner, TextBlock)
        assert list(extra_fields(inner)) == ["x3"]

    @pytest.mark.parametrize(
        "text",
        [
            '{"surface":"a2ui","surfaceId":"s","a2uiMessage":"action","name":"n","sourceComponentId":"c",'
            '"timestamp":"t","context":{},"zap":1}',
            '{"surface":"mcp-app","surfaceId":"s","method":"ui/open-link","params":{"url":"u","zap":2},"zap":1}',
        ],
    )
    def test_surface_interactions(self, text: str) -> None:
        envelope = (
            '{"protocol":"agjson","version":"1.0.0-draft.1","threadId":"th","turnId":"t","kind":"resume",'
            '"uiActions":[%s]}'
        )
        assert json.loads(encode(decode_input(envelope % text))) == json.loads(envelope % text)

    def test_source_payload(self) -> None:
        text = '{"type":"source","seq":0,"sourceId":"s","source":{"url":"u","title":"t","zap":[1]}}'
        assert json.loads(encode(decode_event(text))) == json.loads(text)

    def test_instances_behave_like_their_class(self) -> None:
        text = b'{"type":"text.delta","seq":0,"id":"b","delta":"x","zap":1}'
        event, again = decode_event(text), decode_event(text)
        assert event == again
        assert event != decode_event(text.replace(b'"zap":1', b'"zap":2'))
        assert pickle.loads(pickle.dumps(event)) == event
        assert copy.deepcopy(event) == event
        assert agjson.extra_fields(TextDelta(seq=0, id="b", delta="x")) == {}

    def test_many_different_names_do_not_add_up(self) -> None:
        for index in range(2000):
            event = ingest_event(b'{"type":"text.delta","seq":0,"id":"b","delta":"x","zap%d":1}' % index)
            assert list(extra_fields(event)) == [f"zap{index}"]


class TestUnknownTypes:
    @pytest.mark.parametrize(
        "type_", ["text.chunk", "tool-result", "hitl.answer", "x-acme.tick", "ext.acme", "snake_case", ""]
    )
    def test_strict_refuses_lenient_carries(self, type_: str) -> None:
        text = json.dumps({"seq": 7, "type": type_, "n": 1.5}).encode()
        with pytest.raises(ValidationError) as caught:
            decode_event(text)
        assert caught.value.path == "$.type"
        event = ingest_event(text)
        assert event == UnknownEvent(type_, 7, text)
        assert encode(event) == text

    def test_unknown_type_error_names_the_type(self) -> None:
        with pytest.raises(UnknownTypeError) as caught:
            decode_event('{"seq":0,"type":"text.chunk"}')
        assert caught.value.type == "text.chunk"

    def test_unknown_block_keeps_its_place(self) -> None:
        block = b'{"type":"hologram","rays":[1, 2.50]}'
        text = b'{"type":"tool.done","seq":0,"toolCallId":"c","content":[{"type":"text","text":"a"},%s]}' % block
        with pytest.raises(UnknownTypeError) as caught:
            decode_event(text)
        assert (caught.value.path, caught.value.type) == ("$.content[1].type", "hologram")
        event = ingest_event(text)
        assert isinstance(event, ToolDone)
        assert list(event.content) == [TextBlock(text="a"), UnknownBlock("hologram", block)]
        assert encode(event) == text

    def test_unknown_finish_reason(self) -> None:
        text = (
            '{"type":"turn.done","seq":0,"turnId":"t","outcome":{"type":"success"},'
            '"finishReason":"bored","_meta":{"a":1}}'
        )
        with pytest.raises(ValidationError) as caught:
            decode_event(text)
        assert caught.value.path == "$.finishReason"
        event = ingest_event(text)
        assert isinstance(event, TurnDone)
        assert event.finish_reason == "unknown"
        assert event.meta == {"a": 1, "agjson/finishReason": "bored"}

    def test_unknown_finish_reason_of_a_turn_record(self) -> None:
        event = ingest_event(
            '{"type":"messages.snapshot","seq":0,"messages":[],'
            '"turns":[{"turnId":"t","threadId":"th","finishReason":"bored"}]}'
        )
        assert to_dict(event)["turns"] == [
            {"turnId": "t", "threadId": "th", "finishReason": "unknown", "_meta": {"agjson/finishReason": "bored"}}
        ]

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ('{"type":"message.start","seq":0,"id":"m","role":"king","turnId":"t","threadId":"th"}', "$.role"),
            (
                '{"type":"turn.done","seq":0,"turnId":"t","outcome":{"type":"success"},"finishReason":1}',
                "$.finishReason",
            ),
            ('{"type":"message.start","seq":0,"id":"m","role":"\\ud83d","turnId":"t","threadId":"th"}', "$.role"),
            ('{"type":"text.delta","seq":0,"id":"b"}', "$"),
            ('{"type":"text.delta","seq":0,"id":"b","delta":null}', "$.delta"),
            ('{"type":"text.delta","seq":"0","id":"b","delta":""}', "$.seq"),
            ('{"type":"text.delta","id":"b","delta":""}', "$"),
            ('{"seq":0}', "$"),
            ('{"seq":0,"type":1}', "$.type"),
            ('{"seq":0,"type":null}', "$.type"),
            ('{"type":"new.start"}', "$"),
            ("[]", "$"),
        ],
    )
    def test_malformed_is_refused_by_both(self, text: str, path: str) -> None:
        for read in READERS:
            with pytest.raises(ValidationError) as caught:
                read(text)
            assert caught.value.path == path

    def test_lenient_ordinals(self) -> None:
        for seq in ("1.5", "-1"):
            text = f'{{"type":"text.delta","seq":{seq},"id":"b","delta":"x"}}'
            with pytest.raises(ValidationError):
                decode_event(text)
            assert ingest_event(text).seq == json.loads(seq)


class TestExt:
    def test_payload_and_envelope(self) -> None:
        text = (
            '{"type":"ext.acme.tick","seq":0,"id":"i","turnId":"t","messageId":"m","parentId":"p",'
            '"_meta":{"k":null},"n":1,"shadowed":{"id":2}}'
        )
        event = decode_event(text)
        assert event == ExtEvent(
            type="ext.acme.tick", seq=0, id="i", turn_id="t", message_id="m", parent_id="p", meta={"k": None},
            payload={"n": 1, "shadowed": {"id": 2}},
        )  # fmt: skip
        assert json.loads(encode(event)) == json.loads(text)

    def test_upper_case_only_on_ingestion(self) -> None:
        text = '{"type":"ext.Acme.Tick","seq":0}'
        with pytest.raises(ValidationError):
            decode_event(text)
        assert ingest_event(text) == ExtEvent(type="ext.Acme.Tick", seq=0)

    def test_envelope_fields_keep_their_types(self) -> None:
        for read in READERS:
            with pytest.raises(ValidationError) as caught:
                read('{"type":"ext.acme.tick","seq":0,"turnId":7}')
            assert caught.value.path == "$.turnId"


@pytest.mark.parametrize(
    ("read", "text", "path"),
    [
        (decode_event, '{"type":"memory.write","seq":0,"scope":"user","value":null,"patch":[]}', "$.patch"),
        (decode_event, '{"type":"message.remove","seq":0,"id":"*"}', "$.turnId"),
        (decode_event, '{"type":"subagent.start","seq":0,"turnId":"t","parentTurnId":"t"}', "$.parentTurnId"),
        (decode_event, '{"type":"artifact.end","seq":0,"artifactId":"a","lastChunk":false}', "$.lastChunk"),
        (decode_answer, '{"askId":"a","status":"declined","grantModeId":"g"}', "$.grantModeId"),
        (decode_block, '{"type":"image","source":{"type":"base64","data":"A"}}', "$.source"),
        (decode_message, '{"id":"m","role":"user","content":[{"type":"text"}]}', "$.content[0]"),
        (decode_result, '{"messages":[],"artifacts":[],"memory":[{"scope":"user"}],"turns":[]}', "$.memory[0]"),
        (
            decode_input,
            '{"protocol":"agjson","version":"2.0.0","threadId":"th","turnId":"t","kind":"start","messages":[]}',
            "$.version",
        ),
        (
            decode_input,
            '{"protocol":"agjson","version":"1.0.0","threadId":"th","turnId":"t","kind":"resume",'
            '"uiActions":[{"surface":"a2ui","a2uiMessage":"error","code":"VALIDATION_FAILED","message":"m",'
            '"surfaceId":"s"}]}',
            "$.uiActions[0].path",
        ),
        (
            decode_input,
            '{"protocol":"agjson","version":"1.0.0","threadId":"th","turnId":"t","kind":"start","messages":[],'
            '"run":{"system":[{"type":"text","text":1}]}}',
            "$.run.system[0].text",
        ),
        (
            decode_input,
            '{"protocol":"agjson","version":"1.0.0","threadId":"th","turnId":"t","kind":"start","messages":[],'
            '"run":{"toolChoice":{"type":"tool"}}}',
            "$.run.toolChoice",
        ),
        (
            decode_input,
            '{"protocol":"agjson","version":"1.0.0","threadId":"th","turnId":"t","kind":"start","messages":[],'
            '"run":{"toolChoice":"sometimes"}}',
            "$.run.toolChoice",
        ),
    ],
)
def test_errors_name_the_field(read: Any, text: str, path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(text)
    assert caught.value.path == path
    assert path in str(caught.value) or path == "$"


class TestAnswers:
    ASK = AgPausedAsk(ask_id="a", kind="approval", request_state="s", token="t")

    @pytest.mark.parametrize(
        ("answer", "path"),
        [
            ({"askId": "b"}, "$.askId"),
            ({"requestState": "S"}, "$.requestState"),
            ({"requestState": None}, "$.requestState"),
            ({"token": "T"}, "$.token"),
            ({"token": None}, "$.token"),
            ({"grantModeId": "g"}, "$.grantModeId"),
        ],
    )
    def test_pair(self, answer: dict[str, Any], path: str) -> None:
        good = {"askId": "a", "status": "resolved", "requestState": "s", "token": "t"}
        assert decode_answer(json.dumps(good), self.ASK).ask_id == "a"
        bad = {key: value for key, value in {**good, **answer}.items() if value is not None}
        with pytest.raises(ValidationError) as caught:
            decode_answer(json.dumps(bad), self.ASK)
        assert caught.value.path == path

    def test_an_ask_with_grant_modes_needs_one(self) -> None:
        ask = from_dict({"askId": "a", "kind": "approval", "grantModes": [{"id": "once"}, {"id": "always"}]}, "ask")
        assert decode_answer('{"askId":"a","status":"resolved","grantModeId":"once"}', ask).grant_mode_id == "once"
        assert decode_answer('{"askId":"a","status":"declined"}', ask).grant_mode_id is None
        with pytest.raises(ValidationError):
            decode_answer('{"askId":"a","status":"resolved"}', ask)

    def test_state_that_was_never_asked_for(self) -> None:
        ask = AgPausedAsk(ask_id="a", kind="text")
        with pytest.raises(ValidationError):
            decode_answer('{"askId":"a","status":"resolved","requestState":"forged"}', ask)


def test_from_dict_reads_what_to_dict_gives() -> None:
    value = {"type": "tool-result", "toolCallId": "c", "content": [{"type": "hologram", "x": 1}], "zap": {"a": [None]}}
    block = from_dict(value, "block", lenient=True)
    assert to_dict(block) == value
    with pytest.raises(UnknownTypeError):
        from_dict(value, "block")


def test_what_a_consumer_stored_is_read_again() -> None:
    reducer = agjson.Reducer()
    hologram = b'{"type":"hologram","rays":[1, 2.50]}'
    for line in (
        b'{"type":"turn.start","seq":0,"turnId":"t","threadId":"th"}',
        b'{"type":"message.start","seq":1,"id":"m","role":"assistant","turnId":"t","threadId":"th"}',
        b'{"type":"content.block","seq":2,"block":%s}' % hologram,
    ):
        reducer.push(ingest_event(line))
    stored = encode(reducer.result())
    assert hologram in stored
    assert decode_result(stored, lenient=True) == reducer.result()
    with pytest.raises(UnknownTypeError) as caught:
        decode_result(stored)
    assert caught.value.path == "$.messages[0].content[0].type"


@pytest.mark.parametrize(("text", "seq"), [("1.0", 1), ("1e2", 100), ("0.0", 0)])
def test_an_ordinal_counts_by_value(text: str, seq: int) -> None:
    for read in READERS:
        for type_ in ("turn.abort", "ext.acme.tick"):
            event = read(f'{{"type":"{type_}","seq":{text}}}')
            assert event.seq == seq
            assert type(event.seq) is int
    assert ingest_event(f'{{"type":"new.thing","seq":{text}}}').seq == seq


@pytest.mark.parametrize("read", [decode_event, ingest_event, decode_message, decode_input])
def test_plain_data_is_refused_with_the_way_to_read_it(read: Any) -> None:
    with pytest.raises(TypeError, match="from_dict"):
        read({"type": "turn.abort", "seq": 0})


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="none of event, block, message"):
        from_dict({}, "evnt")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
