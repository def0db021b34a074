"""Valid texts damaged at random: a typed error or a value that can be written and read again, never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from hypothesis import given
from hypothesis import strategies as st

from agjson import (
    DecodeError,
    UnknownEvent,
    decode_answer,
    decode_ask,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    encode,
    ingest_event,
    to_dict,
)
from agjson.testing import events, inputs, messages, results
from tests.support.hostile import WHOLE
from tests.support.instances import SITES, full
from tests.support.properties import examples

DECODERS: dict[str, Callable[[bytes], Any]] = {
    "block": decode_block,
    "input": decode_input,
    "message": decode_message,
    "result": decode_result,
    "ask": decode_ask,
    "answer": decode_answer,
}

# Pieces that fit, or nearly fit, wherever something stands in a JSON text.
PIECES = [
    *(b"null", b"true", b"0", b"-1", b"1.5", b"1e400", b"NaN", b"-Infinity", b"01", b"9" * 30, b"9" * 5000),
    *(b'""', b'"\\ud83d"', b'"\\ude00\\ud83d"', b'"\\u0000"', b'"\xff"', b'"\xed\xa0\x80"', b'"', b"\\", b'"\\"'),
    *(b"[]", b"{}", b"[", b"]", b"{", b"}", b",", b":", b" ", b"\n", b"\0", b"\xef\xbb\xbf"),
    *(b'{"type":"text"}', b'{"type":"hologram","x":[1]}', b'[{"type":"text","text":"a"}]', b'"type"', b'"kind"'),
    *(b'"seq":1,', b'"seq":-2.5,', b'"type":"text.end",', b'"type":"ext.A.b",'),
    *(b'"zap":[1],', b'"a\\"b":1,', b'"\\ud83d":1,', b"[" * 400, b'{"a":' * 400),
    *(b'"finishReason":"bored",', b'"_meta":{"k":null},', b'"_meta":5,', b'"role":"notice",'),
]  # fmt: skip


@cache
def samples(kind: str) -> list[bytes]:
    """A full object of every class, each in a document."""
    found: list[bytes] = []
    for cls, site in SITES.items():
        if site.kind == kind:
            document = site.document({**full(cls, f'é"{WHOLE}\ud83d'), "zap": [1.50, None]})
            found.append(json.dumps(document, ensure_ascii=len(found) % 2 == 0).encode("utf-8", "backslashreplace"))
    return found


def damaged(texts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Texts with some places cut out, repeated, replaced, or filled with other pieces."""

    @st.composite
    def draw_text(draw: st.DrawFn) -> bytes:
        text = draw(texts)
        for _ in range(draw(st.integers(1, 3))):
            # Most places lie at the edge of a token, where the text stays nearly valid.
            edges = [at for at, byte in enumerate(text) if byte in b'"[]{},:'] or [0]
            place = st.one_of(st.sampled_from(edges), st.integers(0, max(len(text) - 1, 0)))
            start, end = sorted((draw(place), draw(place)))
            piece = draw(
                st.one_of(
                    st.sampled_from(PIECES),
                    st.just(b""),
                    st.just(text[start:end] * 2),
                    st.just(text[: min(end, 200)]),
                    st.binary(max_size=4),
                )
            )
            text = text[:start] + piece + text[draw(st.sampled_from([start, start + 1, end])) :]
        return text

    return draw_text()


ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def refuse(name: str) -> NoReturn:
    raise ValueError(name)


def is_json(text: bytes) -> bool:
    """What the standard library says of a text, numbers aside, which it may not be able to hold."""
    try:
        json.loads(text.decode(), parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        return False
    return True


def survives(read: Callable[[bytes], Any], text: bytes) -> Any:
    """The value that a text is read as, None where it is refused; the value must be written and read back."""
    try:
        value = read(text)
    except DecodeError as error:
        assert error.path.startswith("$")
        return None
    assert is_json(text)
    written = encode(value)
    assert b"\n" not in written
    assert b"\r" not in written
    again = read(written)
    assert again == value
    assert encode(again) == written
    return value


EVENTS = st.one_of(events(surrogates=True).map(encode), st.sampled_from(samples("event")))
OTHERS = st.one_of(
    inputs(surrogates=True).map(lambda value: ("input", encode(value))),
    messages(surrogates=True).map(lambda value: ("message", encode(value))),
    results(surrogates=True).map(lambda value: ("result", encode(value))),
    *(st.tuples(st.just(kind), st.sampled_from(samples(kind))) for kind in DECODERS),
)


@examples(1500)
@given(damaged(EVENTS))
def test_a_damaged_event(text: bytes) -> None:
    strict, lenient = survives(decode_event, text), survives(ingest_event, text)
    if strict is not None:
        assert lenient == strict
    if isinstance(lenient, UnknownEvent):
        assert strict is None
        assert encode(lenient) == text.strip(b" \t\r\n").translate(ONE_LINE)


@examples(700)
@given(OTHERS.flatmap(lambda sample: st.tuples(st.just(sample[0]), damaged(st.just(sample[1])))))
def test_another_damaged_document(sample: tuple[str, bytes]) -> None:
    kind, text = sample
    survives(DECODERS[kind], text)


@examples(300)
@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_what_was_never_an_event(text: bytes) -> None:
    for read in (decode_event, ingest_event, *DECODERS.values()):
        survives(read, text)


def test_the_damage_leaves_many_texts_readable_and_breaks_many() -> None:
    """The search would be idle if nearly all texts were refused at their first byte."""
    found: list[Any] = []

    @examples(400)
    @given(damaged(EVENTS))
    def search(text: bytes) -> None:
        found.append(survives(ingest_event, text))

    search()
    read = [value for value in found if value is not None]
    assert len(read) > len(found) / 20
    assert len(read) < len(found)
    assert any(to_dict(value).get("zap") is None for value in read)
