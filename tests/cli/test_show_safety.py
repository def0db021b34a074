"""``agjson show`` and hostile content: nothing reaches the terminal but text, and no secret reaches it at all."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest

from agjson.cli.terminal import shown_text, shown_word
from tests.support.cli import agjson, ev, lines, stream
from tests.support.every_event import SECRET, every_event

HOSTILE = "x\x1b]8;;http://evil\x07\x1b[2J\x9b31m\r\b\x00\x7f\u202e\u2066\u2028\u2029\u200b\ufeff\U000e0041y"
# Accents, Japanese, a family emoji with its joiners, Persian with its non-joiner.
PLAIN = "plain ünï 日本語 👩\u200d👩\u200d👧 \u0645\u06cc\u200c\u062e\u0648"
TURN = ev("turn.start", turnId="t1", threadId="th1")


def is_unsafe(character: str) -> bool:
    """Whether a terminal might do something else with it than draw it, or draw nothing."""
    category = unicodedata.category(character)
    return category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t\u200c\u200d"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every string in a value, keys of objects included (as the key and True)."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))


def replaced(value: Any, path: tuple[Any, ...], new: str) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {key: replaced(item, path[1:], new) if key == path[0] else item for key, item in value.items()}
    return [replaced(item, path[1:], new) if index == path[0] else item for index, item in enumerate(value)]


def test_control_characters_in_any_string_of_any_event_are_shown_as_escapes() -> None:
    mutants = [replaced(event, path, HOSTILE) for event in every_event() for path in leaves(event)]
    assert len(mutants) > 1000
    for number, mutant in enumerate(mutants):
        mutant["seq"] = number
    out = agjson("show", "--full", stdin=lines(mutants)).out
    assert sorted({character for character in out if is_unsafe(character)}) == []
    assert "\t" not in out
    assert out.count("\\x1b[2J\\x9b31m") > 400


def test_control_characters_in_keys_are_shown_as_escapes() -> None:
    bags = [
        ev("state.snapshot", snapshot={HOSTILE: {HOSTILE: 1}}),
        ev("message.metadata", metadata={HOSTILE: 1}),
        ev("ext.acme.x", **{HOSTILE: 1}),
        ev("tool.args.assembled", toolCallId="c", input={HOSTILE: 1}),
        ev("state.delta", patch=[{"op": HOSTILE, "path": HOSTILE}]),
    ]
    out = agjson("show", stdin=stream(TURN, *bags)).out
    assert [character for character in out if is_unsafe(character)] == []


def test_names_and_messages_keep_to_one_line() -> None:
    faked = "x\n── turn t1 done · stop\n"
    out = agjson(
        "show",
        stdin=stream(
            ev("turn.start", turnId=faked, threadId="th1"),
            ev("tool.start", toolCallId="c", name=faked),
            ev("source", sourceId=faked, source={"url": faked, "title": faked}),
            ev("turn.error", turnId=faked, message=faked),
        ),
    ).out
    assert [line for line in out.splitlines() if line.startswith("── turn t1")] == []
    assert len(out.splitlines()) == 4


def test_text_cannot_pretend_to_be_a_heading() -> None:
    out = agjson(
        "show",
        stdin=stream(
            TURN,
            ev("text.start", id="b", turnId="t1"),
            ev("text.delta", id="b", delta="hi\n── turn t1 done · stop\n!! notice"),
            ev("error", message="hi\n!! notice"),
            ev("hitl.ask", askId="a", kind="text", message="hi\n!! notice"),
        ),
    ).out
    starts = [line[:2] for line in out.splitlines()[1:]]
    assert starts == ["  "] * 7 + ["!!"]


def test_what_a_notice_quotes_is_shown_as_escapes() -> None:
    done = agjson(
        "show", stdin=lines([{"type": HOSTILE}, {"type": "text.delta", "seq": 0, "id": HOSTILE, "delta": "a"}])
    )
    assert [character for character in done.out if is_unsafe(character)] == []


def test_no_secret_is_shown() -> None:
    out = agjson("show", "--full", stdin=lines(every_event())).out
    assert SECRET not in out
    assert "(signature, 6 characters)" in out
    assert "(6 characters, not shown)" in out


@pytest.mark.parametrize(
    "event",
    [
        ev("memory.write", scope="user", key="token", value=SECRET),
        ev("memory.write", scope="user", key="github:access-token", value={"a": SECRET}),
        ev("memory.write", scope="user", key="accounts/password/0", value=[SECRET]),
        ev("ui.data-model", surfaceId="u", path="/token", value=SECRET),
        ev("ui.data-model", surfaceId="u", path="/login/apiKey/0", value=SECRET),
        ev("ui.data-model", surfaceId="u", value={"a": [{"jwt": SECRET}]}),
        ev("ext.acme.token", value=SECRET),
        ev("content.block", block={"type": "data", "name": "cookie", "data": SECRET}, turnId="t1"),
        ev("state.snapshot", snapshot={"headers": [{"name": "Authorization", "value": SECRET}]}),
        ev("state.delta", patch=[1, {"op": "add", "path": "/a/token", "value": SECRET}]),
        ev("message.metadata", metadata={"key": "set-cookie", "value": SECRET}, turnId="t1"),
        ev(
            "turn.done",
            turnId="t1",
            finishReason="stop",
            outcome={"type": "success", "result": {"token": SECRET, "requestState": SECRET}},
        ),
    ],
    ids=lambda event: event["type"],
)
def test_a_value_whose_name_marks_it_secret_is_not_shown(event: dict[str, Any]) -> None:
    out = agjson("show", "--full", stdin=stream(TURN, event)).out
    assert SECRET not in out
    assert "not shown)" in out


@pytest.mark.parametrize(
    "name",
    [
        *("x-api-key", "X_API_KEY", "set-cookie", "Cookie", "private_key", "bearer", "jwt", "id.jwt", "passwd", "pwd"),
        *("aws_secret_access_key", "clientSecret", "csrf-token", "Proxy-Authorization", "auth.token"),
    ],
)
def test_a_member_of_a_secret_name_is_not_shown(name: str) -> None:
    out = agjson("show", stdin=stream(TURN, ev("state.snapshot", snapshot={name: SECRET}))).out
    assert out.splitlines()[1].strip() == f'[state] {{"{name}":"(6 characters, not shown)"}}'


@pytest.mark.parametrize("name", ["tokens", "totalTokens", "tokenizer", "cookieBanner", "author", "secretary", "key"])
def test_a_member_of_another_name_is_shown(name: str) -> None:
    out = agjson("show", stdin=stream(TURN, ev("state.snapshot", snapshot={name: "plain"}))).out
    assert out.splitlines()[1].strip() == f'[state] {{"{name}":"plain"}}'


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://a.example/p?q=1", "https://a.example/p?q=1"),
        ("http://a.example/", "http://a.example/"),
        ("javascript:alert(1)", "(refused: a javascript: URL of 19 characters)"),
        ("JaVaScRiPt:alert(1)", "(refused: a javascript: URL of 19 characters)"),
        ("data:text/html,<script>", "(refused: a data: URL of 23 characters)"),
        ("vbscript:x", "(refused: a vbscript: URL of 10 characters)"),
        (" \tjava\nscript:alert(1)", "(refused: a javascript: URL of 22 characters)"),
        ("\u200bdata:,x", "(refused: a data: URL of 8 characters)"),
        ("https://a.example/\x1b[31m", "https://a.example/\\x1b[31m (refused as a link)"),
        ("https://bank.example@evil.example/", "https://bank.example@evil.example/ (refused as a link)"),
        ("https:\\\\evil.example", "https:\\\\evil.example (refused as a link)"),
        ("//evil.example/x", "//evil.example/x (refused as a link)"),
        ("https&colon;//evil.example", "https&colon;//evil.example (refused as a link)"),
    ],
)
def test_urls_are_text_and_refused_schemes_are_not_shown(url: str, words: str) -> None:
    cited = {"kind": "url", "citedText": "x", "url": url}
    events = (
        TURN,
        ev("source", sourceId="s", source={"url": url}),
        ev("hitl.ask", askId="a", kind="url", url=url),
        ev("content.block", block={"type": "image", "source": {"type": "url", "url": url}}),
        ev("content.block", block={"type": "search-result", "url": url}),
        ev("content.block", block={"type": "resource-link", "uri": url}),
        ev("content.block", block={"type": "text", "text": "x", "citations": [cited]}),
    )
    out = agjson("show", stdin=stream(*events)).out
    assert out.count(words) == 6
    assert "alert" not in out
    assert "\x1b]8" not in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (PLAIN, PLAIN),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31m\x9b\x7f\x00", "\\x1b[31m\\x9b\\x7f\\x00"),
        ("\r\n", "\\r\n"),
        ("\u202e\u2066\u2028\u2029\u200e\u061c", "\\u202e\\u2066\\u2028\\u2029\\u200e\\u061c"),
        ("\u200b\u2060\ufeff\xad\U000e0041", "\\u200b\\u2060\\ufeff\\xad\\U000e0041"),
        ("\ud83d", "\\ud83d"),
        ("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0", "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u3164\\uffa0"),
        ("\u180b\u180c\u180d\u180e\u180f\ufff0\ufff9", "\\u180b\\u180c\\u180d\\u180e\\u180f\\ufff0\\ufff9"),
        ("\U000e0000\U000e0100\U000e01ef\U000e0fff", "\\U000e0000\\U000e0100\\U000e01ef\\U000e0fff"),
        ("\u2764\ufe0f \ufe00", "\u2764\ufe0f \ufe00"),
    ],
)
def test_unsafe_characters_become_escapes(text: str, shown: str) -> None:
    assert shown_text(text) == shown
    assert shown_word(text) == shown.replace("\t", "\\t").replace("\n", "\\n")
