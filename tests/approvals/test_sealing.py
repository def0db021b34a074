"""Continuations that the client keeps: sealed for one ask, used once."""

from __future__ import annotations

import base64
import builtins
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson import MissingExtraError
from agjson.agents import UnknownContinuationError
from agjson.approvals import (
    BrokenSealError,
    Keys,
    LedgerStore,
    MemoryLedgerStore,
    SealedContinuations,
    SealedTooLargeError,
    Sealer,
    SpentContinuationError,
    UnsealableError,
)
from tests.approvals.desk import NEW, OLD, Clock, run

VALUE = {"messages": [{"role": "user", "content": "halló"}], "big": 2**70, "none": None}


def sealer(*keys: tuple[str, bytes], **fields: Any) -> Sealer:
    return Sealer(Keys(dict(keys or [("k1", OLD)])), **fields)


def sealed(by: Sealer | None = None, thread: str = "th", ask: str = "a", value: Any = VALUE) -> str:
    return (by or sealer()).seal(value, thread_id=thread, ask_id=ask)


def unsealed(text: str, by: Sealer | None = None, thread: str = "th", ask: str = "a") -> Any:
    return (by or sealer()).unseal(text, thread_id=thread, ask_id=ask)


def test_what_was_sealed_is_read_back() -> None:
    text = sealed()
    assert text.startswith("ags1.k1.")
    assert unsealed(text) == VALUE
    assert unsealed(sealed(value=None)) is None
    assert unsealed(sealed(value={"half": "\ud800"})) == {"half": "\ud800"}


def test_nothing_of_it_can_be_read_and_no_two_are_alike() -> None:
    one, other = sealed(), sealed()
    assert one != other
    body = base64.urlsafe_b64decode(one.split(".")[2] + "==")
    assert b"messages" not in body
    assert b"user" not in body


@pytest.mark.parametrize(("thread", "ask"), [("other", "a"), ("th", "b"), ("t", "ha"), ("", "")])
def test_it_is_for_one_ask_of_one_thread(thread: str, ask: str) -> None:
    with pytest.raises(BrokenSealError) as caught:
        unsealed(sealed(), thread=thread, ask=ask)
    assert isinstance(caught.value, UnknownContinuationError)
    assert caught.value.path == "$.requestState"


@given(st.data())
def test_no_changed_bit_is_taken(data: st.DataObject) -> None:
    text = sealed(value={"x": 1})
    prefix, body = text[:8], bytearray(base64.urlsafe_b64decode(text[8:] + "=" * (-len(text[8:]) % 4)))
    at = data.draw(st.integers(0, len(body) * 8 - 1))
    body[at // 8] ^= 1 << at % 8
    with pytest.raises(BrokenSealError):
        unsealed(prefix + base64.urlsafe_b64encode(body).decode().rstrip("="))


@given(st.text() | st.binary().map(lambda raw: "ags1.k1." + base64.urlsafe_b64encode(raw).decode().rstrip("=")))
def test_what_was_not_sealed_here_is_refused(text: str) -> None:
    with pytest.raises(BrokenSealError):
        unsealed(text)


def test_a_shorter_one_is_refused() -> None:
    text = sealed()
    for end in range(0, len(text), 7):
        with pytest.raises(BrokenSealError):
            unsealed(text[:end])


def test_its_key_may_rotate_and_be_taken_out() -> None:
    text = sealed(sealer(("k1", OLD)))
    both = sealer(("k1", OLD), ("k2", NEW))
    assert unsealed(text, both) == VALUE
    assert sealed(both).startswith("ags1.k2.")
    for by in (sealer(("k2", NEW)), sealer(("k1", NEW)), sealer(("k2", OLD))):
        with pytest.raises(BrokenSealError):
            unsealed(text, by)
    with pytest.raises(BrokenSealError):
        unsealed(text.replace(".k1.", ".k2."), both)


def test_tokens_and_seals_use_different_keys() -> None:
    keys = Keys({"k1": OLD})
    assert keys.derived("k1", "sealing") != keys.derived("k1", "approval token")


def test_it_has_a_limit() -> None:
    small = sealer(max_length=200)
    text = sealed(small, value="x" * 50)
    assert unsealed(text, small) == "x" * 50
    with pytest.raises(SealedTooLargeError) as caught:
        sealed(small, value="x" * 150)
    assert caught.value.limit == 200
    assert caught.value.size > 200
    with pytest.raises(BrokenSealError):
        unsealed(sealed(value="x" * 150), small)
    with pytest.raises(ValueError):
        sealer(max_length=0)


def test_it_expires() -> None:
    clock = Clock()
    by = sealer(lasts=timedelta(minutes=5), clock=clock)
    text = sealed(by)
    clock.forward(minutes=4, seconds=59)
    assert unsealed(text, by) == VALUE
    clock.forward(seconds=1)
    with pytest.raises(BrokenSealError, match="expired"):
        unsealed(text, by)


@pytest.mark.parametrize("value", [object(), float("nan"), {"x": lambda: 0}], ids=["object", "nan", "function"])
def test_a_live_object_cannot_be_sealed(value: Any) -> None:
    with pytest.raises(UnsealableError):
        sealed(value=value)


def test_it_is_used_once(store: LedgerStore) -> None:
    kept = SealedContinuations(sealer(), store)
    text = kept.seal(VALUE, thread_id="th", ask_id="a")
    assert run(kept.take(text, thread_id="th", ask_id="a")) == VALUE
    with pytest.raises(SpentContinuationError):
        run(kept.take(text, thread_id="th", ask_id="a"))
    with pytest.raises(SpentContinuationError):
        run(SealedContinuations(sealer(), store).take(text, thread_id="th", ask_id="a"))
    assert run(kept.take(kept.seal(VALUE, thread_id="th", ask_id="a"), thread_id="th", ask_id="a")) == VALUE


def test_another_spelling_of_it_is_the_same(store: LedgerStore) -> None:
    kept = SealedContinuations(sealer(), store)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    text = kept.seal({"n": 1}, thread_id="th", ask_id="a")
    # The last character holds bits that no byte is made of.
    assert len(text.split(".")[2]) % 4 == 3
    other = text[:-1] + alphabet[alphabet.index(text[-1]) | 1]
    assert run(kept.take(text, thread_id="th", ask_id="a")) == {"n": 1}
    with pytest.raises((SpentContinuationError, BrokenSealError)):
        run(kept.take(other, thread_id="th", ask_id="a"))
    for spelled in (text + "=", text + "\n", " " + text, text.replace("ags1", "AGS1")):
        with pytest.raises(BrokenSealError):
            run(kept.take(spelled, thread_id="th", ask_id="a"))


def test_one_that_is_for_another_ask_is_not_used_up() -> None:
    kept = SealedContinuations(sealer(), MemoryLedgerStore())
    text = kept.seal(VALUE, thread_id="th", ask_id="a")
    with pytest.raises(BrokenSealError):
        run(kept.take(text, thread_id="th", ask_id="b"))
    assert run(kept.take(text, thread_id="th", ask_id="a")) == VALUE


def test_without_a_store_nobody_counts() -> None:
    kept = SealedContinuations(sealer())
    text = kept.seal(VALUE, thread_id="th", ask_id="a")
    assert [run(kept.take(text, thread_id="th", ask_id="a")) for _ in range(2)] == [VALUE, VALUE]


def test_at_rest_it_names_its_key_and_what_it_is_about() -> None:
    by = sealer()
    kept = by.seal_at_rest(b"text", about=b"x")
    assert kept.startswith(b"k1.")
    assert by.unseal_at_rest(kept, about=b"x") == b"text"
    for wrong, about in ((kept, b"y"), (kept[:-1], b"x"), (b"k2" + kept[2:], b"x"), (b"", b"x"), (b"\xff.", b"x")):
        with pytest.raises(BrokenSealError):
            by.unseal_at_rest(wrong, about=about)


def test_without_its_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any, **fields: Any) -> Any:
        if name.startswith(("cryptography", "jsonschema")):
            raise ImportError(name)
        return imported(name, *rest, **fields)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError) as caught:
        sealer()
    assert "agjson[approvals]" in str(caught.value)
    from agjson.approvals.schemas import fault

    with pytest.raises(MissingExtraError):
        fault({}, {})
