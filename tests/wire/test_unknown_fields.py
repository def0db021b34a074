"""Unknown fields of any name and number, and what is made of an object that carries them (spec §0.2)."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from agjson import (
    TextDelta,
    ToolArgsAssembled,
    ToolDone,
    UnknownBlock,
    decode_event,
    encode,
    extra_fields,
    ingest_event,
    to_dict,
)
from tests.support.hostile import HALF, WHOLE, Read, assembled, block, both, delta

NAMES = [
    'a"b',
    "a\\b",
    "a\nb",
    "\0",
    "",
    " ",
    "\u2028",
    "\x7f",
    "é",
    WHOLE,
    "\ud83d",
    "__class__",
    "seq ",
    "x" * 70_000,
]


class TestNamesOfUnknownFields:
    @both
    @pytest.mark.parametrize("name", NAMES, ids=[ascii(name)[:20] for name in NAMES])
    def test_any_string_is_one(self, read: Read, name: str) -> None:
        for names in ([name], ["plain", name], [name, "plain"], [name, name + '"', "plain", "other"]):
            document = {"type": "text.delta", "seq": 0, "id": "b", "delta": "x", **{key: [None, 1] for key in names}}
            event = read(json.dumps(document))
            assert isinstance(event, TextDelta)
            assert sorted(extra_fields(event)) == sorted(names)
            assert {bytes(raw) for raw in extra_fields(event).values()} == {b"[null, 1]"}
            assert json.loads(encode(event)) == to_dict(event) == document
            assert read(encode(event)) == event
            assert pickle.loads(pickle.dumps(event)) == copy.deepcopy(event) == event

    @both
    def test_any_number_of_them(self, read: Read) -> None:
        names = [f"zap{index}" for index in range(50_000)]
        document = {"type": "text.delta", "seq": 0, "id": "b", "delta": "x", **dict.fromkeys(names, 1)}
        event = read(json.dumps(document))
        assert len(extra_fields(event)) == len(names)
        assert json.loads(encode(event)) == document

    def test_equal_events_stay_equal_however_many_others_were_read(self) -> None:
        text = delta(',"zap":[1, 2],"zip":3')
        early = decode_event(text)
        for index in range(2_000):
            ingest_event(delta(f',"name{index}":1'))
        late = decode_event(text)
        assert early == late
        assert late == early
        assert hash(early) == hash(late)
        assert early != decode_event(delta(',"zap":[1,2],"zip":3'))
        assert early != decode_event(delta())
        assert decode_event(delta()) != early

    @both
    def test_a_field_of_another_class_is_only_unknown(self, read: Read) -> None:
        """``finishReason`` has a lenient rule of its own, where it is declared."""
        for value in ("1", "null", '"zzz"', f'"{HALF}"'):
            event = read(delta(f',"finishReason":{value}'))
            assert bytes(extra_fields(event)["finishReason"]).decode() == value

    @pytest.mark.parametrize("meta", ['{"a":1}', '{"\\ud83d":1,"a\\"b":[2]}', "5", "null", "[]"])
    def test_the_metadata_that_a_turn_record_does_not_declare(self, meta: str) -> None:
        text = (
            '{"type":"messages.snapshot","seq":0,"messages":[],'
            f'"turns":[{{"turnId":"t","threadId":"th","finishReason":"bored","_meta":{meta}}}]}}'
        )
        turn = to_dict(ingest_event(text))["turns"][0]
        kept = json.loads(meta)
        assert turn["finishReason"] == "unknown"
        if isinstance(kept, dict):
            assert turn["_meta"] == {**kept, "agjson/finishReason": "bored"}
        else:
            assert (turn["_meta"], turn["agjson/finishReason"]) == (kept, "bored")


def test_copies_of_what_was_read_are_equal_to_it() -> None:
    texts = [
        assembled(f'{{"a":[1,null,"{HALF}"]}}'),
        '{"type":"ext.acme.tick","seq":0,"_meta":{"k":[1]},"n":{"a":1}}',
        '{"type":"new.start","seq":0,"n":1}',
        '{"type":"tool.done","seq":0,"toolCallId":"c","zap":1,"content":[{"type":"hologram"},{"type":"text","text":"","y":1}]}',
    ]
    events = [ingest_event(text) for text in texts]
    assert isinstance(events[0], ToolArgsAssembled)
    assert isinstance(events[3], ToolDone)
    assert isinstance(events[3].content[0], UnknownBlock)
    for event, text in zip(events, texts, strict=True):
        for again in (pickle.loads(pickle.dumps(event)), copy.copy(event), copy.deepcopy(event)):
            assert again == event
            assert json.loads(encode(again)) == json.loads(text)


@both
def test_what_is_written_is_one_line(read: Read) -> None:
    """Line breaks between tokens become spaces in what is kept; nothing else changes."""
    spread = ' { "a" :\r\n 1.50 ,\n"b":"x\\ny" } '
    event = read(delta(f',"zap":{spread},"zip":\n[\n]').replace(",", ",\n"))
    assert bytes(extra_fields(event)["zap"]) == b'{ "a" :   1.50 ,  "b":"x\\ny" }'
    assert (
        encode(event)
        == b'{"type":"text.delta","seq":0,"id":"b","delta":"x","zap":{ "a" :   1.50 ,  "b":"x\\ny" },"zip":[ ]}'
    )


def test_unknown_types_and_kinds_are_written_in_one_line() -> None:
    event = ingest_event(b'\n{"type":"new.start",\r\n\t"seq":1}\r\n')
    assert encode(event) == b'{"type":"new.start",  \t"seq":1}'
    event = ingest_event(block('\n{"type":"hologram",\n"n":[\n1]}\n'))
    assert encode(event) == b'{"type":"content.block","seq":0,"block":{"type":"hologram", "n":[ 1]}}'
