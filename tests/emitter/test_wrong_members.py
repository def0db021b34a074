"""A member of the wrong type never gets out: the emitter refuses the event, and the stream stays well formed."""

from __future__ import annotations

import inspect
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agjson.checker import check
from agjson.emitter import Emitter
from agjson.errors import EncodeError, ValidationError
from agjson.fold import reduce
from agjson.types import (
    AgMessage,
    AgOpaque,
    AgTrigger,
    AgUsage,
    DataBlock,
    ExtEvent,
    MessagesSnapshot,
    SuccessOutcome,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    UnknownBlock,
)
from agjson.wire import decode_event, encode
from tests.emitter.any_calls import call
from tests.emitter.stream import finished, types

NONE: Any = None
TEXT: Any = "2"

# Each is the right type of some member and the wrong one of most.
WRONG: tuple[Any, ...] = (
    *(None, 5, -1.5, True, float("nan"), "x", b"x", object()),
    *([], ["x"], ("x",), {"x"}, {}, {"type": "text", "text": "x"}),
    *(TextBlock(text=NONE), AgUsage(input_tokens=TEXT), AgOpaque(kind=NONE, value="x"), AgTrigger(kind=NONE)),
    *([TextBlock(text=NONE)], ToolCallBlock(tool_call_id="a", name=NONE, input=1), [{"type": "text", "text": "x"}]),
)


def _methods() -> dict[str, list[str]]:
    """The methods that emit, with the names of their arguments."""
    found: dict[str, list[str]] = {}
    for name, method in inspect.getmembers(Emitter, inspect.isfunction):
        if not name.startswith("_") and name not in ("drain", "flush"):
            found[name] = [
                each for each in inspect.signature(method).parameters if each not in ("self", "own", "envelope")
            ]
    return found


METHODS = _methods()


@st.composite
def spoilt_calls(draw: st.DrawFn) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A call, perhaps with one argument replaced or added, by a value of any type."""
    name, positional, named = draw(call)
    if name == "flush" or draw(st.booleans()):
        return name, positional, named
    arguments = [*METHODS[name], *(("meta", "parent_id", "id") if name != "emit" else ())]
    spoilt = draw(st.sampled_from(arguments))
    value = draw(st.sampled_from(WRONG))
    at = METHODS[name].index(spoilt) if spoilt in METHODS[name] else len(positional)
    if at < len(positional):
        return name, (*positional[:at], value, *positional[at + 1 :]), named
    return name, positional, {**named, spoilt: value}


@settings(max_examples=500, deadline=None)
@given(st.lists(spoilt_calls(), max_size=15))
def test_whatever_is_given_what_comes_out_can_be_read_and_folds(calls: list[Any]) -> None:
    emitter = Emitter("t", "thread")
    for name, positional, named in calls:
        try:
            getattr(emitter, name)(*positional, **named)
        except Exception as error:
            assert not isinstance(error, AssertionError)
    emitter.flush()
    events = emitter.drain()

    read = [decode_event(encode(event)) for event in events]
    assert [type(event) for event in read] == [type(event) for event in events]
    assert list(check(events)) == []
    assert reduce(events).needs_resync is False
    assert encode(reduce(read).result) == encode(reduce(events).result)


@pytest.mark.parametrize(
    ("name", "positional", "named", "path", "message"),
    [
        (
            "turn_start",
            (),
            {"trigger": AgTrigger(kind=NONE)},
            "$.trigger.kind",
            "turn.start: Expected `str`, got `null`",
        ),
        ("text_start", (5,), {}, "$.id", "text.start: Expected `str`, got `int`"),
        ("text_delta", ("a", 5), {}, "$.delta", "text.delta: Expected `str`, got `int`"),
        ("text_delta", ("a", b"x"), {}, "$.delta", "text.delta: Expected `str`, got `bytes`"),
        ("text_cumulative", ("a", 5), {}, "$.delta", "text.delta: Expected `str`, got `int`"),
        ("text", (NONE,), {}, "$.delta", "text.delta: Expected `str`, got `NoneType`"),
        ("reasoning_delta", ("a", b"x"), {}, "$.delta", "reasoning.delta: Expected `str`, got `bytes`"),
        ("reasoning_delta", ("a", "x"), {"part_index": "0"}, "$.partIndex", "Expected `int | float`, got `str`"),
        ("reasoning_opaque_delta", ("a", 5), {}, "$.value", "reasoning.opaque: Expected `str`, got `int`"),
        ("tool_start", ("a", NONE), {}, "$.name", "tool.start: Expected `str`, got `null`"),
        ("tool_args_delta", ("a", 5), {}, "$.delta", "tool.args.delta: Expected `str`, got `int`"),
        ("tool_done", ("a", [TextBlock(text=NONE)]), {}, "$.content[0].text", "tool.done: Expected `str`, got `null`"),
        ("tool_done", ("a", [{"type": "text", "text": "x"}]), {}, "$.content[0]", "Expected `TextBlock`, got `dict`"),
        ("content_block", (DataBlock(name=NONE, data=1),), {}, "$.block.name", "content.block: Expected `str`"),
        ("message_start", ("a",), {"role": "human"}, "$.role", "message.start: Invalid enum value 'human'"),
        ("turn_done", (), {"finish_reason": ["x"]}, "$.finishReason", "turn.done: Expected `str`, got `array`"),
        ("turn_done", (), {"usage": AgUsage(input_tokens=TEXT)}, "$.usage.inputTokens", "Expected `int | float`"),
        ("turn_error", (5,), {}, "$.message", "turn.error: Expected `str`, got `int`"),
        ("turn_abort", (5,), {}, "$.reason", "turn.abort: Expected `str`, got `int`"),
        ("state_snapshot", ({"x"},), {}, "$.snapshot", "state.snapshot: Expected `array`, got `set`"),
        ("error", ("e",), {"meta": ["x"]}, "$._meta", "error: Expected `object`, got `array`"),
        ("ext", ("ext.agjson.x", 1), {"meta": ["x"]}, "$._meta", "ext.agjson.x: Expected `object`, got `list`"),
        ("emit", (ExtEvent("ext.Upper.x", 0),), {}, "$.type", "Invalid ext type 'ext.Upper.x'"),
    ],
)
def test_a_wrong_member_is_refused_with_its_path_and_nothing_is_broken(
    name: str, positional: tuple[Any, ...], named: dict[str, Any], path: str, message: str
) -> None:
    emitter = Emitter("t", "thread")

    with pytest.raises(ValidationError) as caught:
        getattr(emitter, name)(*positional, **named)

    assert caught.value.path == path
    assert message in str(caught.value)
    emitter.text("still there")
    emitter.turn_done()
    assert types(finished(emitter))[-1] == "turn.done"


def test_a_wrong_delta_is_refused_on_the_fast_path_too() -> None:
    emitter = Emitter("t", "thread")
    for add in (emitter.text_delta, emitter.reasoning_delta, emitter.tool_args_delta):
        add("a", "1")
        with pytest.raises(ValidationError, match=r"Expected `str`, got `bytes` - at `\$\.delta`"):
            add("a", b"2")  # type: ignore[arg-type]
        add("a", "3")
    events = finished(emitter)
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["1", "3"]


def test_a_value_without_a_json_form_is_refused() -> None:
    emitter = Emitter("t", "thread")
    with pytest.raises(EncodeError, match=r"nan has no JSON form - at `\$\.snapshot\.x`"):
        emitter.state_snapshot({"x": float("nan")})
    with pytest.raises(EncodeError, match="object has no JSON form"):
        emitter.ext("ext.agjson.x", {"x": object()})  # type: ignore[dict-item]
    assert types(finished(emitter)) == ["turn.start", "turn.abort"]


def test_stored_blocks_of_a_later_revision_pass() -> None:
    emitter = Emitter("t", "thread")
    later: Any = UnknownBlock("hologram", b'{"type":"hologram"}')
    emitter.messages_snapshot([AgMessage(id="a", role="user", content=[later])])
    (snapshot,) = [event for event in emitter.drain() if isinstance(event, MessagesSnapshot)]
    assert snapshot.messages[0].content == [later]


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ({"turn_id": 5}, "$.turnId"),
        ({"thread_id": None}, "$.threadId"),
        ({"parent_turn_id": 5}, "$.parentTurnId"),
        ({"trigger": {"kind": "user"}}, "$.trigger"),
    ],
)
def test_an_emitter_that_could_say_nothing_is_not_made(named: dict[str, Any], path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Emitter(**cast("Any", {"turn_id": "t", "thread_id": "thread", **named}))
    assert caught.value.path == path


def test_tuples_and_numbers_of_either_kind_are_no_wrong_members() -> None:
    emitter = Emitter("t", "thread")
    emitter.tool_call("a", "n", {}, index=1.0)
    emitter.tool_done("a", (TextBlock(text="r"),), structured_content=(1, 2))
    emitter.turn_done(outcome=SuccessOutcome(result={"k": (1,)}))
    assert types(finished(emitter))[-1] == "turn.done"
