"""The verdicts of ``vectors/validate``: what `agjson.wire` accepts and refuses (spec §2-§4, §7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.errors import DecodeError
from agjson.wire import decode_answer, decode_ask, decode_block, decode_event, decode_input, to_dict
from tests.support.corpus import require_corpus, vectors

DECODERS = {"event": decode_event, "block": decode_block, "input": decode_input}


def decode(kind: str, value: Any) -> Any:
    if kind != "answer":
        return DECODERS[kind](json.dumps(value))
    ask = decode_ask(json.dumps(value["ask"])) if "ask" in value else None
    return decode_answer(json.dumps(value["answer"]), ask)


@pytest.mark.parametrize("vector", vectors("validate"))
def test_verdict(vector: Any) -> None:
    require_corpus()
    if not vector["valid"]:
        with pytest.raises(DecodeError):
            decode(vector["kind"], vector["value"])
        return
    decoded = decode(vector["kind"], vector["value"])
    expected = vector["value"]["answer"] if vector["kind"] == "answer" else vector["value"]
    assert to_dict(decoded) == expected
