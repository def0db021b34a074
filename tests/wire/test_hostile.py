"""Hostile and damaged text: every outcome that docs/wire.md states (spec §0.2, §5 trust boundary)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agjson import (
    DecodeError,
    EncodeError,
    ReasoningOpaque,
    Reducer,
    UnknownEvent,
    UnknownTypeError,
    ValidationError,
    decode_answer,
    decode_ask,
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
from tests.support.hostile import HALF, OTHER_HALF, READERS, WHOLE, Read, assembled, block, both, delta, refused
from tests.support.instances import SITES, full

DECODERS: dict[str, list[Read]] = {
    "event": READERS,
    "block": [decode_block],
    "input": [decode_input],
    "message": [decode_message],
    "result": [decode_result],
    "ask": [decode_ask],
    "answer": [decode_answer],
}


class TestHalvesOfCharacters:
    @both
    def test_an_emoji_cut_between_two_deltas_is_whole_again_in_the_fold(self, read: Read) -> None:
        lines = [
            '{"type":"turn.start","seq":0,"turnId":"t","threadId":"th"}',
            '{"type":"message.start","seq":1,"id":"m","role":"assistant","turnId":"t","threadId":"th"}',
            '{"type":"text.start","seq":2,"id":"b"}',
            f'{{"type":"text.delta","seq":3,"id":"b","delta":"so {HALF}"}}',
            f'{{"type":"text.delta","seq":4,"id":"b","delta":"{OTHER_HALF}!"}}',
        ]
        events = [read(line) for line in lines]
        assert [json.loads(encode(event)) for event in events] == [json.loads(line) for line in lines]
        assert encode(events[3]).decode() == lines[3]
        reducer = Reducer()
        for event in events:
            reducer.push(event)
        assert reducer.result().messages[0].content[0].text == f"so {WHOLE}!"  # type: ignore[union-attr]

    @both
    def test_two_halves_in_one_text_are_one_character(self, read: Read) -> None:
        assert read(delta(text=HALF + OTHER_HALF)).delta == WHOLE

    @both
    @pytest.mark.parametrize(
        "half", [HALF, OTHER_HALF, HALF.upper().replace("\\U", "\\u"), HALF + HALF, OTHER_HALF + HALF]
    )
    def test_a_lone_half_keeps_its_escape(self, read: Read, half: str) -> None:
        text = delta(text=f"é {half} \\n")
        event = read(text)
        assert json.loads(encode(event)) == json.loads(text)
        assert read(encode(event)) == event

    @both
    def test_opaque_values_are_not_mended(self, read: Read) -> None:
        event = read(f'{{"type":"reasoning.opaque","seq":0,"id":"b","kind":"signature","value":"{HALF}."}}')
        assert isinstance(event, ReasoningOpaque)
        assert event.value == "\ud83d."
        assert encode(event).endswith(b'"value":"\\ud83d."}')

    @pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls in SITES])
    def test_in_every_string_of_every_class(self, cls: Any) -> None:
        """A half is read as any other word would be: kept, or refused at the same place."""
        site = SITES[cls]
        document = site.document(full(cls))
        placed = list(with_word(document, "zzz"))
        for (place, other), (_, halved) in zip(placed, with_word(document, "\ud83d"), strict=True):
            for lenient in (False, True):
                kind: Any = site.kind
                expected = outcome(lambda o=other, k=kind, x=lenient: from_dict(o, k, lenient=x))
                found = outcome(lambda h=halved, k=kind, x=lenient: from_dict(h, k, lenient=x))
                assert swapped(found) == expected, place
                if isinstance(found, dict) and "agjson/finishReason" not in json.dumps(found):
                    assert found == halved, place


def with_word(document: Any, word: str) -> Iterator[tuple[str, Any]]:
    """The document with each string and each key in turn replaced, and the place of that."""
    for place in strings(document):
        changed = copy.deepcopy(document)
        parent = changed
        for step in place[:-1]:
            parent = parent[step]
        if isinstance(place[-1], tuple):
            (key,) = place[-1]
            items = [(word if name == key else name, value) for name, value in parent.items()]
            parent.clear()
            parent.update(items)
        else:
            parent[place[-1]] = word
        yield repr(place), changed


def strings(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where strings stand: steps, the last of them ``(key,)`` for a key."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*place, (key,))
            yield from strings(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from strings(item, (*place, index))


def outcome(read: Callable[[], Any]) -> Any:
    """What was read, as plain data; of an error its class and path."""
    try:
        return to_dict(read())
    except DecodeError as error:
        return type(error), error.path


def swapped(found: Any) -> Any:
    """An outcome with the word in place of the half."""
    if isinstance(found, tuple):
        return found[0], found[1].replace("\ud83d", "zzz")
    return json.loads(json.dumps(found).replace(HALF, "zzz"))


class TestNumbers:
    @both
    @pytest.mark.parametrize(
        "number",
        [2**53 + 1, 2**63, 2**64, -(2**64) - 1, 10**300, -(10**4298)],
        ids=lambda number: f"{len(str(number))} digits",
    )
    def test_integers_of_any_size_are_exact(self, read: Read, number: int) -> None:
        text = assembled(f"[{number}]")
        event = read(text)
        assert event.input == [number]
        assert encode(event).decode() == text
        typed = read(f'{{"type":"text.start","seq":0,"id":"b","index":{number}}}')
        assert typed.index == number
        assert json.loads(encode(typed))["index"] == number

    @both
    @pytest.mark.parametrize("type_", ["text.end", "ext.acme.tick"])
    def test_an_ordinal_over_64_bits_is_exact(self, read: Read, type_: str) -> None:
        event = read(f'{{"type":"{type_}","seq":{2**70},"id":"b"}}')
        assert event.seq == 2**70
        assert read(encode(event)) == event

    @both
    @pytest.mark.parametrize("sign", ["", "-"])
    def test_an_integer_of_5000_digits_is_refused_at_its_place(self, read: Read, sign: str) -> None:
        huge = sign + "9" * 5000
        for text, path in [
            (assembled(f'{{"a":[0,{huge}]}}'), "$.input.a[1]"),
            (f'{{"type":"text.start","seq":0,"id":"b","index":{huge}}}', "$.index"),
            (f'{{"type":"text.end","seq":{huge},"id":"b"}}', "$.seq"),
            (f'{{"type":"new.start","seq":{huge}}}', "$.seq"),
            (f'{{"type":"ext.acme.tick","seq":0,"n":{huge}}}', "$.n"),
            (delta(f',"_meta":{{"k":{huge}}}'), "$._meta.k"),
        ]:
            error = refused(read, text)
            assert (type(error), error.path) == (ValidationError, path)

    @both
    @pytest.mark.parametrize("number", ["1e400", "-1e999", "123456789e310"])
    def test_a_number_beyond_a_float_is_refused_at_its_place(self, read: Read, number: str) -> None:
        for text, path in [
            (assembled(f'{{"a.b":[0,{{"c":{number}}}]}}'), "$.input.a.b[1].c"),
            (f'{{"type":"text.start","seq":0,"id":"b","index":{number}}}', "$.index"),
            (f'{{"type":"ext.acme.tick","seq":0,"n":[{number}]}}', "$.n[0]"),
            (delta(f',"_meta":{{"k":{number}}}'), "$._meta.k"),
        ]:
            error = refused(read, text)
            assert (type(error), error.path) == (ValidationError, path)

    @both
    @pytest.mark.parametrize("number", ["1e400", "9" * 5000, "1.50", "-0.0", "1E-2"])
    def test_in_an_unknown_field_a_number_is_only_text(self, read: Read, number: str) -> None:
        event = read(delta(f',"zap":[{number}]'))
        assert bytes(extra_fields(event)["zap"]) == f"[{number}]".encode()
        assert encode(event).endswith(f'"zap":[{number}]}}'.encode())

    @both
    @pytest.mark.parametrize("half", ["", f'"{HALF}",'])
    @pytest.mark.parametrize(
        "number", ["NaN", "Infinity", "-Infinity", "nan", "+1", "01", "1.", ".5", "0x1", "1e", "-", "1_0"]
    )
    def test_what_is_no_json_number_is_refused_everywhere(self, read: Read, number: str, half: str) -> None:
        value = f"[{half}{number}]"
        for text in (
            assembled(value),
            delta(f',"_meta":{{"k":{value}}}'),
            delta(f',"zap":{value}'),
            f'{{"type":"text.start","seq":0,"id":"b","index":{number},"zap":{value}}}',
            f'{{"type":"ext.acme.tick","seq":0,"n":{value}}}',
            f'{{"type":"new.start","seq":0,"n":{value}}}',
            block(f'{{"type":"hologram","n":{value}}}'),
        ):
            assert type(refused(read, text)) is DecodeError

    def test_plain_data_of_an_unread_number_is_refused_at_its_place(self) -> None:
        for number in ("1e400", "9" * 5000):
            with pytest.raises(EncodeError) as caught:
                to_dict(decode_event(delta(f',"zap":{{"n":{number}}}')))
            assert caught.value.path == "$.zap.n"


class TestRepeatedKeys:
    @both
    @pytest.mark.parametrize(
        ("text", "same"),
        [
            (delta(',"delta":"y"'), delta(text="y")),
            ('{"type":"text.delta","seq":0,"id":"b","delta":1,"delta":"x"}', delta()),
            (delta(',"seq":5'), delta().replace('"seq":0', '"seq":5')),
            ('{"type":"text.end","type":"text.delta","seq":0,"id":"b","delta":"x"}', delta()),
            ('{"type":7,"type":"text.delta","seq":0,"id":"b","delta":"x"}', delta()),
            ('{"seq":0,"type":"text.start","id":"b","type":"text.end"}', '{"type":"text.end","seq":0,"id":"b"}'),
            ('{"type":"zzz","type":"text.end","seq":0,"id":"b"}', '{"type":"text.end","seq":0,"id":"b"}'),
            (delta(f',"delta":"{HALF}","delta":"y"'), delta(text="y")),
            (delta(',"zap":1,"zap":[2]'), delta(',"zap":[2]')),
            (delta(',"_meta":{"k":1,"k":2}'), delta(',"_meta":{"k":2}')),
            (assembled('{"a":1,"b":0,"a":{"c":1,"c":2}}'), assembled('{"a":{"c":2},"b":0}')),
            (
                '{"type":"content.block","seq":0,"block":{"type":"code","text":"a","text":"b","type":"text"}}',
                '{"type":"content.block","seq":0,"block":{"type":"text","text":"b"}}',
            ),
            (
                '{"type":"source","seq":0,"sourceId":"s","source":{"type":"file","url":"u","type":"url"}}',
                '{"type":"source","seq":0,"sourceId":"s","source":{"type":"url","url":"u"}}',
            ),
            ('{"type":"ext.a.b","seq":0,"n":1,"n":2}', '{"type":"ext.a.b","seq":0,"n":2}'),
        ],
    )
    def test_the_last_one_wins(self, read: Read, text: str, same: str) -> None:
        assert to_dict(read(text)) == to_dict(read(same)) == json.loads(text)

    @both
    def test_the_last_one_wins_also_when_it_is_wrong(self, read: Read) -> None:
        assert refused(read, delta(',"delta":1')).path == "$.delta"

    def test_discriminants_of_inputs(self) -> None:
        text = (
            '{"protocol":"agjson","version":"1.0.0","threadId":"th","turnId":"t","kind":"start","kind":"resume",'
            '"uiActions":[{"surface":"a2ui","surface":"mcp-app","method":"ui/message","method":"ui/open-link",'
            '"surfaceId":"s","params":{"url":"u"}}]}'
        )
        assert to_dict(decode_input(text)) == json.loads(text)

    def test_an_unknown_type_is_written_as_it_was_read(self) -> None:
        text = b'{"type":"a","seq":1,"type":"b.new", "n":1,"n":2}'
        assert ingest_event(text) == UnknownEvent("b.new", 1, text)
        assert encode(ingest_event(text)) == text


NOT_UTF8 = [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x82", b"\xf4\x90\x80\x80", b"\x80"]


class TestBytes:
    @both
    @pytest.mark.parametrize("bad", NOT_UTF8, ids=[bad.hex() for bad in NOT_UTF8])
    @pytest.mark.parametrize(
        "text",
        [
            b'{"type":"text.delta","seq":0,"id":"b","delta":"%b"}',
            b'{"type":"text.delta","seq":0,"id":"%b","delta":"\\ud83d"}',
            b'{"type":"text.delta","seq":0,"id":"b","delta":"x","%b":1}',
            b'{"type":"text.delta","seq":0,"id":"b","delta":"x","zap":["%b"]}',
            b'{"type":"text.delta","seq":0,"id":"b","delta":"x","_meta":{"%b":1}}',
            b'{"type":"text.delta","seq":0,"id":"b","delta":"x","_meta":{"k":"%b"}}',
            b'{"type":"ext.acme.tick","seq":0,"n":"%b"}',
            b'{"type":"new.start","seq":0,"n":"%b"}',
            b'{"type":"%b","seq":0}',
            b'{"type":"content.block","seq":0,"block":{"type":"hologram","n":"%b"}}',
            b'{"type":"text.end","seq":0,"id":"b"}%b',
            b'%b{"type":"text.end","seq":0,"id":"b"}',
        ],
    )
    def test_invalid_utf8_is_refused_with_its_place(self, read: Read, text: bytes, bad: bytes) -> None:
        error = refused(read, text % bad)
        assert error.message == f"invalid UTF-8 (byte {text.index(b'%b')})"

    @both
    @pytest.mark.parametrize("text", [delta(text="\ud83d"), delta(',"\ude00":1'), delta(text="\ud83d\ude00")])
    def test_a_string_with_raw_halves_is_refused(self, read: Read, text: str) -> None:
        assert refused(read, text).message.startswith("half a surrogate pair, not escaped (character ")

    @both
    @pytest.mark.parametrize(
        "convert", [bytearray, memoryview, lambda data: memoryview(b"".join(bytes((b, 0)) for b in data))[::2]]
    )
    def test_every_buffer_of_bytes_is_read(self, read: Read, convert: Any) -> None:
        for text in (delta(), delta(',"zap":1'), delta(text=HALF)):
            assert read(convert(text.encode())) == read(text)

    @both
    @pytest.mark.parametrize("value", [None, 7, 1.5, [1], {"type": "text.end"}])
    def test_what_is_neither_text_nor_bytes_is_a_type_error(self, read: Read, value: Any) -> None:
        with pytest.raises(TypeError):
            read(value)


class TestText:
    @both
    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "\n",
            "\0",
            "{",
            "{}x",
            "nul",
            "\ufeff" + delta(),
            "\0" + delta(),
            "\u00a0" + delta(),
            "\x0b" + delta(),
            delta() + "\0",
            delta() + "x",
            delta() + ",",
            delta() + "\u2028",
            delta() + delta(),
            delta() + "\n" + delta(),
            delta() + "// no",
            delta().replace('"', "'"),
            delta().replace("}", ",}"),
            delta().replace(":", "="),
            delta(text="\n"),
            delta(text="\0"),
            delta(text="\\x"),
            delta(text="\\u12"),
            delta(',"zap":"\t"'),
            delta(',"zap":[1,]'),
            delta(',"zap":{1:2}'),
            delta(',"zap":tru'),
            delta(',"zap":"\\q"'),
            delta(f',"zap":"{HALF}","y":[1,]'),
            delta(f',"zap":"{HALF}"').removesuffix("}"),
        ],
    )
    def test_what_is_no_json_text_is_refused(self, read: Read, text: str) -> None:
        for data in (text, text.encode()):
            error = refused(read, data)
            assert not isinstance(error, UnknownTypeError)
            assert error.path == "$"

    @both
    def test_white_space_of_json_around_a_text_is_nothing(self, read: Read) -> None:
        for text in (delta(), delta(',"zap":1'), delta(text=HALF)):
            assert read(f" \t\r\n{text}\n ") == read(text)

    @both
    def test_an_escaped_nul_is_a_character(self, read: Read) -> None:
        event = read('{"type":"text.delta","seq":0,"id":"\\u0000","delta":"a\\u0000b","\\u0000":"\\u0000"}')
        assert (event.id, event.delta, list(extra_fields(event))) == ("\0", "a\0b", ["\0"])
        assert json.loads(encode(event)) == {"type": "text.delta", "seq": 0, "id": "\0", "delta": "a\0b", "\0": "\0"}

    @pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls in SITES])
    def test_a_truncated_text_is_refused_wherever_it_ends(self, cls: Any) -> None:
        site = SITES[cls]
        document = site.document({**full(cls, 'é"\\\n' + WHOLE), "zap": [HALF, 1.5e3, None]})
        for ascii_only in (True, False):
            text = json.dumps(document, ensure_ascii=ascii_only).encode()
            for read in DECODERS[site.kind]:
                read(text)
                for end in range(len(text)):
                    assert type(refused(read, text[:end])) is DecodeError, text[:end]


def test_a_long_value_is_cut_in_the_message_and_not_in_the_error() -> None:
    type_ = "z" * 1_000_000
    with pytest.raises(UnknownTypeError) as caught:
        decode_event(f'{{"type":"{type_}","seq":0}}')
    assert caught.value.type == type_
    assert len(str(caught.value)) < 200
