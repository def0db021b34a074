"""Nesting: read whole up to the limit of the interpreter, and a typed error beyond it, wherever the recursion ends."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from agjson import DecodeError, UnknownTypeError, decode_block, decode_event, decode_message, decode_result, encode
from tests.support.hostile import HALF, Read, assembled, block, both, delta, refused

# The interpreter's own limit: the recursion limit of 1,000 up to Python 3.11, then one of the C stack.
ALWAYS_TOO_DEEP = 1_000 if sys.version_info < (3, 12) else 100_000


def nested(opening: str, depth: int, closing: str, *, inner: str = "") -> str:
    """A value nested in itself."""
    return opening * depth + inner + closing * depth


FORMS: dict[str, Callable[[int], str]] = {
    "arrays": lambda depth: assembled(nested("[", depth, "]")),
    "objects": lambda depth: assembled(nested('{"a":', depth, "}", inner="1")),
    "unknown": lambda depth: delta(f',"zap":{nested("[", depth, "]")}'),
    "unknown+half": lambda depth: delta(f',"zap":{nested("[", depth, "]")}', text=HALF),
    "metadata+half": lambda depth: delta(f',"_meta":{{"k":{nested("[", depth, "]")},"s":"{HALF}"}}'),
    "blocks": lambda depth: block(nested('{"type":"tool-result","toolCallId":"c","content":[', depth, "]}")),
    "blocks+unknown": lambda depth: block(
        nested('{"type":"tool-result","toolCallId":"c","zap":1,"content":[', depth, "]}")
    ),
    "blocks+half": lambda depth: block(
        nested(f'{{"type":"tool-result","toolCallId":"{HALF}","content":[', depth, "]}")
    ),
    "usage": lambda depth: (
        '{"type":"message.end","seq":0,"id":"m","usage":' + nested('{"byModel":{"m":', depth, "}}", inner="{}") + "}"
    ),
    "extension": lambda depth: f'{{"type":"ext.acme.tick","seq":0,"n":{nested("[", depth, "]")}}}',
    "unknown type": lambda depth: f'{{"type":"new.start","seq":0,"n":{nested("[", depth, "]")}}}',
    "unknown block": lambda depth: block(f'{{"type":"hologram","n":{nested("[", depth, "]")}}}'),
}


class TestDepth:
    @both
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("depth", [1_000, 100_000])
    def test_too_deep_is_a_typed_error(self, read: Read, form: str, depth: int) -> None:
        text = FORMS[form](depth)
        if depth >= ALWAYS_TOO_DEEP:
            assert "nested too deep" in str(refused(read, text))
            return
        try:
            event = read(text)
        except UnknownTypeError:
            assert read is decode_event
        except DecodeError as error:
            assert error.message == "nested too deep"
        else:
            assert len(encode(event)) == len(text)

    @both
    @pytest.mark.parametrize("form", FORMS)
    def test_every_depth_up_to_the_limit_is_read_or_a_typed_error(self, read: Read, form: str) -> None:
        """Recursion may end in any frame of the reader: each depth around the limits is another one."""
        read_whole = 0
        for depth in (100, *range(180, 220), *range(320, 340), *range(480, 510), *range(960, 1000)):
            text = FORMS[form](depth)
            try:
                event = read(text)
            except UnknownTypeError as error:
                assert read is decode_event and error.path in ("$.type", "$.block.type")
                read_whole = max(read_whole, depth)
            except DecodeError as error:
                assert error.message == "nested too deep"
            else:
                assert len(encode(event)) == len(text)
                read_whole = depth
        assert read_whole >= 180

    def test_documents_that_are_no_events(self) -> None:
        blocks = nested('{"type":"tool-result","toolCallId":"c","content":[', 100_000, "]}")
        assert refused(decode_block, blocks).message == "nested too deep"
        assert refused(decode_message, f'{{"id":"m","role":"user","content":[{blocks}]}}').message == "nested too deep"
        state = f'{{"messages":[],"artifacts":[],"memory":[],"turns":[],"state":{nested("[", 100_000, "]")}}}'
        assert refused(decode_result, state).message == "nested too deep"
