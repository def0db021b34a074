"""No secret gets into the log, however it is written, and looking for them costs little (spec §13.2)."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest

from agjson.agents import Thread
from agjson.middleware.asgi.redaction import REDACTED, Redactor, secrets_of
from agjson.types import AgMessage, AgOpaque, AgReduceResult, ReasoningBlock
from tests.support.scripted import said, start

R = REDACTED


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        # Cut off by whoever quotes it: to the end of the line.
        ('bad {"signature": "c2VjcmV0LXNpZ25h\nnext line', f'bad {{"signature": {R}\nnext line'),
        # Bytes, as some providers sign.
        ("thought_signature=b'\\x12\\x0a3secret', x=1", f"thought_signature={R}, x=1"),
        # A quote inside, at each depth of quoting.
        ("token: 'ab\\'cdef', x", f"token: {R}, x"),
        (json.dumps(json.dumps({"token": 'ab"cdef', "x": 1})), f'"{{\\"token\\": {R}, \\"x\\": 1}}"'),
        # Headers as they are listed.
        ("[(b'x-api-key', b'abcdefgh'), (b'host', b'h')]", f"[(b'x-api-key', {R}), (b'host', b'h')]"),
        ("{'cookie': 'a=1; session=abc'}", f"{{'cookie': {R}}}"),
        ("Set-Cookie: sid=abcdef; Path=/", f"Set-Cookie: {R}"),
        # Names that end in one.
        ("ANTHROPIC_API_KEY=abcdefgh", f"ANTHROPIC_API_KEY={R}"),
        ("auth_token: abcdefgh", f"auth_token: {R}"),
        ("clientSecret='abcdefgh'", f"clientSecret={R}"),
        ("aws_secret_access_key = abcdefgh", f"aws_secret_access_key = {R}"),
        # Opaque values.
        ("AgOpaque(kind='signature', value='c2VjcmV0')", f"AgOpaque(kind='signature', value={R})"),
        ("{'opaque': {'kind': 'signature', 'value': 'c2Vj'}}", f"{{'opaque': {{'kind': 'signature', 'value': {R}}}}}"),
        # By their own form.
        ("GET https://h/v1?alt=sse&key=abcdefgh&x=1", f"GET https://h/v1?alt=sse&key={R}&x=1"),
        (f"key AIza{'x' * 35} is bad", f"key {R} is bad"),
        (f"for ghp_{'x' * 36}.", f"for {R}."),
        ("sk_live_0123456789", R),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", f"got {R}"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\nvQIB\n-----END PRIVATE KEY-----\nend", f"{R}\nend"),
        # What only looks a little like one stays.
        ("max_tokens: 5, input_tokens=7", "max_tokens: 5, input_tokens=7"),
        ("the signature of f() is wrong", "the signature of f() is wrong"),
        ("monkey=banana", "monkey=banana"),
    ],
)
def test_secrets_are_told_by_the_form_in_which_they_are_written(text: str, redacted: str) -> None:
    assert Redactor().text(text) == redacted


def test_what_kind_of_secret_it_is_and_whose_stays_readable() -> None:
    opaque = AgOpaque(kind="signature", value="the-opaque-value", provider="anthropic")
    message = AgMessage(id="m", role="assistant", content=[ReasoningBlock(opaque=opaque)])
    thread = Thread.of_result("th", AgReduceResult(messages=[message], turns=[], artifacts=[], memory=[]))
    redactor = Redactor(secrets_of(start(said("hi")), thread))
    assert redactor.text("anthropic: bad signature the-opaque-value") == f"anthropic: bad signature {R}"


def test_every_piece_of_a_known_secret_goes_wherever_it_was_cut() -> None:
    secret = "".join(chr(33 + index * 37 % 90) for index in range(60))
    redactor = Redactor([secret])
    for begin in range(0, 49):
        for length in (12, 13, 17, 24):
            piece = secret[begin : begin + length]
            if len(piece) == length:
                assert redactor.text(f"\n\n{piece}\n\n") == f"\n\n{R}\n\n", (begin, length)


def test_a_client_that_sends_megabytes_of_secrets_does_not_fill_the_memory() -> None:
    long = "".join(f"{index:07}" for index in range(600_000))
    short = [f"Trace{index:06}" for index in range(100_000)]
    text = "Traceback of a failure\n" * 500 + long[1_000_000:1_000_030]
    tracemalloc.start()
    began = time.perf_counter()
    redacted = Redactor([long, *short]).text(text)
    taken = time.perf_counter() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert redacted.endswith(f"failure\n{R}")
    assert taken < 20
    assert peak < 40_000_000


def test_an_exception_that_quotes_a_whole_request_loses_its_middle() -> None:
    error = ValueError("begin " + "x" * 1_000_000 + " the reason")
    told = Redactor().failure(error)
    assert len(told) < 70_000
    assert told.startswith("  ValueError: begin x")
    assert told.endswith("x the reason")
    assert " characters ..." in told


def test_what_an_exception_quotes_cannot_pass_for_a_line_of_the_log_or_steer_a_terminal() -> None:
    error = ValueError("no\nERROR forged\r\x1b]52;c;cHduZWQ=\x07\u2028\u202etext")
    assert Redactor().failure(error) == (
        "  ValueError: no\n  ERROR forged\\r\\x1b]52;c;cHduZWQ=\\x07\\u2028\\u202etext"
    )
