"""A `Thread` as JSON and back, byte for byte: whole, or its settings alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import msgspec

from agjson.agents.thread import Pending, Thread
from agjson.errors import ValidationError
from agjson.known_ids import KnownIds
from agjson.types import (
    AgClientCapabilities,
    AgHitlAnswer,
    AgPausedAsk,
    AgReduceResult,
    AgRunConfig,
    AgToolResult,
)
from agjson.wire import encode
from agjson.wire._json import elements, members, utf8
from agjson.wire._reader import reader

__all__ = ["ID_KINDS", "Settings", "decode_settings", "decode_thread", "encode_settings", "encode_thread"]

ID_KINDS = tuple(field.name for field in fields(KnownIds))
"""The kinds of ids that a thread keeps, as `KnownIds` names them."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a thread is beside its history; the fields are those of `Thread`."""

    pending: Pending
    started_by: str | None
    run: AgRunConfig | None
    capabilities: AgClientCapabilities | None
    revision: int
    owner: str | None


def encode_thread(thread: Thread) -> bytes:
    """Write a thread as one JSON object.

    Args:
        thread: the thread.

    Returns:
        UTF-8 bytes without a line end: ``threadId``, `encode_settings`, and ``result``, ``ids`` (by kind), ``nested``.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    return encode(
        {
            "threadId": thread.thread_id,
            **_settings(thread),
            "result": thread.result,
            "ids": {kind: sorted(getattr(thread.ids, kind)) for kind in ID_KINDS},
            "nested": sorted(thread.nested),
        }
    )


def decode_thread(data: str | bytes) -> Thread:
    """Read a thread that `encode_thread` has written.

    What a lenient reader had let pass (unknown block kinds) is read again.

    Args:
        data: the JSON text.

    Raises:
        DecodeError: it is not the text of a thread; ``path`` names the place. A member that is missing or does not fit
            raises its subclass `ValidationError`.
    """
    found = members(utf8(data), "$")
    settings = _read_settings(found)
    if "result" not in found:
        raise ValidationError("Object missing required field `result`", "$")
    given = members(_required(found, "ids"), "$.ids")
    ids = {kind: frozenset(_read(list[str], given[kind], f"$.ids.{kind}")) for kind in ID_KINDS if kind in given}
    return Thread(
        thread_id=_read(str, _required(found, "threadId"), "$.threadId"),
        result=cast("AgReduceResult", reader(AgReduceResult)(found["result"], "$.result", True)),
        ids=KnownIds(**ids),
        nested=frozenset(_read(list[str], _required(found, "nested"), "$.nested")),
        **_as_fields(settings),
    )


def encode_settings(thread: Thread) -> bytes:
    """Write what a thread is beside its history.

    Args:
        thread: the thread.

    Returns:
        A JSON object: ``pending``, ``revision``, and where they are set ``startedBy``, ``run``, ``capabilities``,
        ``owner``.

    Raises:
        EncodeError: a value in it has no JSON form.
    """
    return encode(_settings(thread))


def decode_settings(data: bytes) -> Settings:
    """Read what `encode_settings` has written.

    Args:
        data: the JSON text.

    Raises:
        DecodeError: it is not that; ``path`` names the place.
    """
    return _read_settings(members(data, "$"))


def _settings(thread: Thread) -> dict[str, Any]:
    pending = thread.pending
    written: dict[str, Any] = {
        "pending": {
            "calls": pending.calls,
            "results": pending.results,
            "asks": pending.asks,
            "answers": pending.answers,
            **({} if pending.request_state is None else {"requestState": pending.request_state}),
        },
        "revision": thread.revision,
    }
    optional = {
        "startedBy": thread.started_by,
        "run": thread.run,
        "capabilities": thread.capabilities,
        "owner": thread.owner,
    }
    return written | {name: value for name, value in optional.items() if value is not None}


def _read_settings(found: Mapping[str, msgspec.Raw]) -> Settings:
    pending = members(_required(found, "pending"), "$.pending")
    return Settings(
        pending=Pending(
            calls=_tuple(str, pending, "calls"),
            results=_tuple(AgToolResult, pending, "results"),
            asks=_tuple(AgPausedAsk, pending, "asks"),
            answers=_tuple(AgHitlAnswer, pending, "answers"),
            request_state=_optional(str, pending, "requestState", "$.pending"),
        ),
        started_by=_optional(str, found, "startedBy"),
        run=_optional(AgRunConfig, found, "run"),
        capabilities=_optional(AgClientCapabilities, found, "capabilities"),
        revision=_read(int, _required(found, "revision"), "$.revision"),
        owner=_optional(str, found, "owner"),
    )


def _as_fields(settings: Settings) -> dict[str, Any]:
    return {field.name: getattr(settings, field.name) for field in fields(settings)}


def _required(found: Mapping[str, msgspec.Raw], name: str) -> msgspec.Raw:
    if name not in found:
        raise ValidationError(f"Object missing required field `{name}`", "$")
    return found[name]


def _read(tp: type[_T], raw: msgspec.Raw | bytes, path: str) -> _T:
    read = reader(cast("Any", tp))
    value: _T = read(raw, path, True)
    return value


def _optional(tp: type[_T], found: Mapping[str, msgspec.Raw], name: str, path: str = "$") -> _T | None:
    return _read(tp, found[name], f"{path}.{name}") if name in found else None


def _tuple(tp: type[_T], found: Mapping[str, msgspec.Raw], name: str) -> tuple[_T, ...]:
    if name not in found:
        raise ValidationError(f"Object missing required field `{name}`", "$.pending")
    path = f"$.pending.{name}"
    return tuple(_read(tp, raw, f"{path}[{index}]") for index, raw in enumerate(elements(found[name], path)))
