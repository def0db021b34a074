"""Reading the wire: strict for producers (`decode_event` and its siblings), lenient for consumers (`ingest_event`).

Both keep unknown fields byte for byte at every depth (spec §0.2). They differ in what they make of an unknown event
type, an unknown block kind and an unknown finish reason: `decode_event` refuses them, `ingest_event` carries them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar, overload

import msgspec

from agjson.errors import DecodeError, UnknownTypeError, ValidationError
from agjson.types import (
    EVENT_TYPES,
    AgBlock,
    AgEvent,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    AgStreamEvent,
    ExtEvent,
    FieldError,
    HitlAsk,
    UnknownEvent,
    is_ext_type,
)
from agjson.wire._json import TOO_DEEP, members, one_line, plain, shown, utf8
from agjson.wire._reader import Members, StructReader, discriminant, reader, struct_reader
from agjson.wire.writing import encode

Data: TypeAlias = str | bytes | bytearray | memoryview
"""One JSON text: ``str``, or UTF-8 bytes."""

_T = TypeVar("_T")

Kind: TypeAlias = Literal["event", "block", "message", "input", "result", "answer", "ask"]
"""What a value is to be read as, for `from_dict`."""

# What the fast decoders raise; the careful reader then finds out whether the text is at fault, and where. A BufferError
# is a memoryview with a step.
_REFUSED = (msgspec.MsgspecError, RecursionError, ValueError, BufferError)
_ENVELOPE = {"seq": "seq", "id": "id", "turnId": "turn_id", "messageId": "message_id", "parentId": "parent_id"}


def _leave_to_reader(tp: type, value: object) -> Any:
    """The unions that msgspec cannot read by itself are left to the careful reader."""
    raise ValueError(f"{tp.__name__} needs the careful reader")


def _fast(tp: Any) -> Callable[[Data], Any]:
    """A decoder made at the first call: building one for all fifty events at import would cost every user."""
    made: list[Callable[[Data], Any]] = []

    def decode(data: Data) -> Any:
        if not made:
            made.append(msgspec.json.Decoder(tp, dec_hook=_leave_to_reader).decode)
        return made[0](data)

    return decode


_BLOCK: Callable[[Data], AgBlock] = _fast(AgBlock)
_INPUT: Callable[[Data], AgInput] = _fast(AgInput)
_MESSAGE: Callable[[Data], AgMessage] = _fast(AgMessage)
_RESULT: Callable[[Data], AgReduceResult] = _fast(AgReduceResult)
_ANSWER: Callable[[Data], AgHitlAnswer] = _fast(AgHitlAnswer)
_ASK: Callable[[Data], AgPausedAsk] = _fast(AgPausedAsk)


def _first_event(data: Data) -> AgEvent:
    # As `_fast`, but a call less between each event and its decoder from the second event on.
    global _read_event
    _read_event = msgspec.json.Decoder(AgEvent, dec_hook=_leave_to_reader).decode
    return _read_event(data)


_read_event: Callable[[Data], AgEvent] = _first_event


def decode_event(data: Data) -> AgStreamEvent:
    """Read one event as a producer must write it (spec §0.2 producer posture, §4).

    Args:
        data: one JSON object, text or UTF-8 bytes.

    Returns:
        The typed event. One with unknown fields is an instance of a subclass of its class and keeps them
        (`extra_fields`). ``ext.<vendor>.<key>`` events are `ExtEvent`.

    Raises:
        UnknownTypeError: the type, or the kind of a block in it, is none of this revision.
        ValidationError: a field is missing, of the wrong type, or breaks a rule between fields; ``path`` names it.
        DecodeError: the text is no JSON, no UTF-8, nested too deep, or holds a number beyond a float.
    """
    try:
        return _read_event(data)
    except TypeError:
        raise _no_text(data) from None
    except _REFUSED:
        event = _carefully(_careful_event, data, False)
    if isinstance(event, UnknownEvent):
        raise UnknownTypeError(f"Unknown event type {shown(event.type)}", "$.type", event.type)
    return event


def ingest_event(data: Data) -> AgStreamEvent | UnknownEvent:
    """Read one event as a consumer must (spec §0.2): what is unknown is carried, what is malformed is refused.

    Beside what `decode_event` takes, this takes an unknown event type (an `UnknownEvent`, to be handed to the fold for
    its ordinal), an unknown block kind (an `UnknownBlock` in its place), an unknown finish reason (``"unknown"``, the
    original in ``_meta["agjson/finishReason"]``), a fractional or negative ``seq``, and upper case in an ``ext.`` type.

    Args:
        data: one JSON object, text or UTF-8 bytes.

    Raises:
        ValidationError: an event of a known type is malformed; ``path`` names the field.
        DecodeError: the text is no JSON, no UTF-8, nested too deep, or holds a number beyond a float.
    """
    try:
        return _read_event(data)
    except TypeError:
        raise _no_text(data) from None
    except _REFUSED:
        return _carefully(_careful_event, data, True)


def decode_block(data: Data, *, lenient: bool = False) -> AgBlock:
    """Read one content block (spec §2). Raises as `decode_event`.

    Args:
        data: one JSON object, text or UTF-8 bytes.
        lenient: take what `ingest_event` takes, so that what a consumer has stored can be read again: unknown block
            kinds and finish reasons are carried.
    """
    return _decode(_BLOCK, AgBlock, data, lenient=lenient)


def decode_message(data: Data, *, lenient: bool = False) -> AgMessage:
    """Read one stored message (spec §3.2). Raises as `decode_event`.

    Args:
        data: one JSON object, text or UTF-8 bytes.
        lenient: take what `ingest_event` takes, so that what a consumer has stored can be read again: unknown block
            kinds and finish reasons are carried.
    """
    return _decode(_MESSAGE, AgMessage, data, lenient=lenient)


def decode_input(data: Data) -> AgInput:
    """Read one input envelope (spec §3); another MAJOR version is refused (§12). Raises as `decode_event`."""
    return _decode(_INPUT, AgInput, data)


def decode_result(data: Data, *, lenient: bool = False) -> AgReduceResult:
    """Read one folded thread (spec §2, §5). Raises as `decode_event`.

    Args:
        data: one JSON object, text or UTF-8 bytes.
        lenient: take what `ingest_event` takes, so that what a consumer has stored can be read again: unknown block
            kinds and finish reasons are carried.
    """
    return _decode(_RESULT, AgReduceResult, data, lenient=lenient)


def decode_ask(data: Data) -> AgPausedAsk:
    """Read one ask as a paused outcome lists it (spec §4). Raises as `decode_event`."""
    return _decode(_ASK, AgPausedAsk, data)


def decode_answer(data: Data, ask: AgPausedAsk | HitlAsk | None = None) -> AgHitlAnswer:
    """Read one answer (spec §3, §7), alone or against the ask that it answers.

    Args:
        data: one JSON object, text or UTF-8 bytes.
        ask: the originating ask; given, the pair must agree (`match_answer`).

    Raises:
        ValidationError: the answer is malformed, or does not belong to the ask; ``path`` names the field.
        DecodeError: as `decode_event`.
    """
    answer = _decode(_ANSWER, AgHitlAnswer, data)
    if ask is not None:
        match_answer(answer, ask)
    return answer


def match_answer(answer: AgHitlAnswer, ask: AgPausedAsk | HitlAsk) -> None:
    """Check that an answer belongs to its ask (spec §7, §13.1): nothing is normalised, strings compare exactly.

    Args:
        answer: what the client sent.
        ask: what the agent asked: the event or the entry of a paused outcome.

    Raises:
        ValidationError: another ``askId``; ``requestState`` not echoed; another ``token`` where the ask has one;
            ``grantModeId`` missing, undeclared, or given for an ask without modes. ``path`` names the field.
    """
    if answer.ask_id != ask.ask_id:
        raise ValidationError(f"the answer is for {shown(answer.ask_id)}, the ask is {shown(ask.ask_id)}", "$.askId")
    if answer.request_state != ask.request_state:
        raise ValidationError("requestState must be echoed unchanged from the ask", "$.requestState")
    if ask.token is not None and answer.token != ask.token:
        raise ValidationError("token does not match the ask", "$.token")
    modes = [mode.id for mode in ask.grant_modes or ()]
    if answer.grant_mode_id is not None and answer.grant_mode_id not in modes:
        raise ValidationError(f"the ask declares no grant mode {shown(answer.grant_mode_id)}", "$.grantModeId")
    if modes and answer.status == "resolved" and answer.grant_mode_id is None:
        raise ValidationError("the ask declares grant modes: a resolved answer must choose one", "$.grantModeId")


@overload
def from_dict(value: object, as_: Literal["event"] = ..., *, lenient: Literal[False] = ...) -> AgStreamEvent: ...
@overload
def from_dict(value: object, as_: Literal["event"] = ..., *, lenient: bool) -> AgStreamEvent | UnknownEvent: ...
@overload
def from_dict(value: object, as_: Literal["block"], *, lenient: bool = ...) -> AgBlock: ...
@overload
def from_dict(value: object, as_: Literal["message"], *, lenient: bool = ...) -> AgMessage: ...
@overload
def from_dict(value: object, as_: Literal["input"], *, lenient: bool = ...) -> AgInput: ...
@overload
def from_dict(value: object, as_: Literal["result"], *, lenient: bool = ...) -> AgReduceResult: ...
@overload
def from_dict(value: object, as_: Literal["answer"], *, lenient: bool = ...) -> AgHitlAnswer: ...
@overload
def from_dict(value: object, as_: Literal["ask"], *, lenient: bool = ...) -> AgPausedAsk: ...
def from_dict(value: object, as_: Kind = "event", *, lenient: bool = False) -> Any:
    """Read plain Python data (dicts, lists, strings, numbers), as `to_dict` or a JSON library gives it.

    Args:
        value: the data, camelCase as on the wire.
        as_: what it is to be read as.
        lenient: as `ingest_event` rather than `decode_event`: unknown types and kinds are carried.

    Raises:
        ValueError: `as_` is none of the names.
        EncodeError: the data has no JSON form (NaN, an object of another library).
        DecodeError: and its subclasses, as `decode_event`.
    """
    if as_ != "event" and as_ not in _KINDS:
        raise ValueError(f"as_ is none of event, {', '.join(_KINDS)}: {as_!r}")
    data = encode(value)
    if as_ == "event":
        return ingest_event(data) if lenient else decode_event(data)
    fast, tp = _KINDS[as_]
    return _decode(fast, tp, data, lenient=lenient)


_KINDS: dict[str, tuple[Callable[[Data], Any], Any]] = {
    "block": (_BLOCK, AgBlock),
    "message": (_MESSAGE, AgMessage),
    "input": (_INPUT, AgInput),
    "result": (_RESULT, AgReduceResult),
    "answer": (_ANSWER, AgHitlAnswer),
    "ask": (_ASK, AgPausedAsk),
}


def _decode(fast: Callable[[Data], _T], tp: Any, data: Data, *, lenient: bool = False) -> _T:
    try:
        return fast(data)
    except TypeError:
        raise _no_text(data) from None
    except _REFUSED:
        value: _T = _carefully(lambda text, lenient: reader(tp)(text, "$", lenient), data, lenient)
        return value


def _no_text(data: object) -> TypeError:
    return TypeError(f"expected JSON text (str or bytes), got {type(data).__name__}; plain data is read by from_dict")


def _carefully(read: Callable[[bytes, bool], _T], data: Data, lenient: bool) -> _T:
    try:
        return read(utf8(data), lenient)
    except RecursionError:
        raise DecodeError(TOO_DEEP) from None


def _careful_event(text: bytes, lenient: bool) -> AgStreamEvent | UnknownEvent:
    found = members(text, "$")
    type_ = discriminant(found, "type", "$")
    arm = EVENT_TYPES.get(type_)
    if arm is not None:
        event: AgEvent = _with_ordinal(struct_reader(arm), found, lenient)
        return event
    if is_ext_type(type_, lenient=lenient):
        return _ext_event(type_, found, lenient)
    if type_.startswith("ext.") and not lenient:
        raise ValidationError(
            f"Invalid ext type {shown(type_)}: ext.<vendor>.<key>, lower case, no empty segment", "$.type"
        )
    return UnknownEvent(type_, _ordinal(found, lenient), one_line(text))


def _ordinal(found: Members, lenient: bool) -> Any:
    """The ordinal, by value: 1.0 is 1. Strictly it counts from 0; a lenient reader takes any number."""
    if "seq" not in found:
        raise ValidationError("Object missing required field `seq`", "$")
    seq = reader(int | float)(found["seq"], "$.seq", lenient)
    if isinstance(seq, float) and seq.is_integer():
        seq = int(seq)
    if not lenient and (isinstance(seq, float) or seq < 0):
        raise ValidationError(f"Expected an `int` >= 0, got {seq}", "$.seq")
    return seq


def _with_ordinal(read: StructReader, found: Members, lenient: bool) -> Any:
    """The ordinal is read apart, since the type's own rule for it takes no other form of the number."""
    seq = _ordinal(found, lenient)
    event = read.build({**found, "seq": msgspec.Raw(b"0")}, "$", lenient)
    return msgspec.structs.replace(event, seq=seq)


def _ext_event(type_: str, found: Members, lenient: bool) -> ExtEvent:
    known: dict[str, Any] = {"seq": _ordinal(found, lenient)}
    payload: dict[str, Any] = {}
    for key, raw in found.items():
        path = f"$.{key}"
        if key in ("type", "seq"):
            continue
        if key in _ENVELOPE:
            known[_ENVELOPE[key]] = reader(str)(raw, path, lenient)
        elif key == "_meta":
            known["meta"] = reader(dict[str, Any])(raw, path, lenient)
        else:
            payload[key] = plain(raw, path)
    try:
        return ExtEvent(type=type_, payload=payload, **known)
    except FieldError as error:
        raise ValidationError(str(error), f"$.{error.field}") from None
