"""What a client across a network may say (spec §13): everything that is not allowed is refused by name, never dropped.

Every member of every type that an input can hold is classified in `_members`. A member that is not there is refused, so
that what a later revision of the format adds is refused until somebody has decided about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, get_args

import msgspec
from starlette.requests import Request

from agjson.agents import Thread
from agjson.agents.intake import ASK_ID
from agjson.middleware.asgi._members import CLASSES, MEMBERS
from agjson.types import (
    BLOCK_TYPES,
    SURFACE_ARMS,
    AgInput,
    AgMessage,
    AgPushNotification,
    AgRole,
    AgRunConfig,
    AgSource,
    StartInput,
)
from agjson.wire import declared_class, encode, extra_fields

__all__ = ["Denial", "PushPolicy", "Trust"]

PushPolicy: TypeAlias = Callable[[AgPushNotification, Request], bool | Awaitable[bool]]
"""Decides whether a client may have the host call an address back: the egress policy of spec §13.5."""

_RUN_MEMBERS = frozenset(AgRunConfig.__struct_encode_fields__) - {"pushNotification"}
_ROLES = frozenset(get_args(AgRole))
_SOURCES = frozenset(arm.type for arm in get_args(AgSource))
_SURFACES = frozenset(surface for surface, _ in SURFACE_ARMS)
_MESSAGE_MEMBERS = frozenset(AgMessage.__struct_encode_fields__)


class Denial(NamedTuple):
    """Something in an input that the host does not allow.

    Attributes:
        path: its JSON path.
        message: what it is, for people.
    """

    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What clients may send beside a user's words and media; by default nothing.

    Attributes:
        run: the members of ``run`` that count, by their wire names: ``{"model", "temperature"}``.
        roles: the roles in which a start may speak.
        blocks: the kinds of content blocks, in messages, tool results, ``run.system`` and ``run.context``.
        sources: where the bytes of media may be: ``base64`` (inline), ``url``, ``file`` (the provider's file store).
        message_members: the members of a message that count, by their wire names; the others say who or which model has
            spoken, or where the message belongs.
        metadata: the namespaced keys (``vendor/name``, or ``vendor/*`` for all of one) that ``metadata`` and ``_meta``
            may hold: they steer frameworks. Keys without a slash are the app's own, and pass.
        opaque: signatures, encrypted and redacted values, provider items and continuations of a provider. The server's
            own stored thread has them anyway.
        provider_metadata: ``providerMetadata``, ``toolMetadata``, ``providerDetails``.
        citations: citations in text.
        state: ``state``, the echo of the shared state.
        parent_turn: ``parentTurnId``.
        frontend_tools: tools that the client declares and runs. Their names and descriptions reach the model beside the
            host's own.
        surfaces: the surfaces whose messages count: ``a2ui``, ``mcp-app``, ``openai-app``.
        unknown_members: members that this revision of the format does not have.
        push_policy: decides about ``run.pushNotification``; None: it is refused.

    Raises:
        ValueError: a name that there is not.
    """

    run: Collection[str] = frozenset()
    roles: Collection[str] = frozenset(("user",))
    blocks: Collection[str] = frozenset(("text", "image", "audio", "file", "document"))
    sources: Collection[str] = frozenset(("base64",))
    message_members: Collection[str] = frozenset(
        ("id", "role", "content", "metadata", "messageMetadata", "referenceTurnIds")
    )
    metadata: Collection[str] = frozenset((ASK_ID,))
    opaque: bool = False
    provider_metadata: bool = False
    citations: bool = False
    state: bool = False
    parent_turn: bool = False
    frontend_tools: bool = False
    surfaces: Collection[str] = frozenset()
    unknown_members: bool = False
    push_policy: PushPolicy | None = None

    def __post_init__(self) -> None:
        """Refuse names that allow nothing: they are slips of the pen."""
        for name, known in (
            ("run", _RUN_MEMBERS),
            ("roles", _ROLES),
            ("blocks", BLOCK_TYPES.keys()),
            ("sources", _SOURCES),
            ("message_members", _MESSAGE_MEMBERS),
            ("surfaces", _SURFACES),
        ):
            given: Any = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"{name} is a collection of names, not {given!r}")
            unknown = sorted(set(given) - set(known))
            if unknown:
                raise ValueError(f"{name} knows no {', '.join(map(repr, unknown))}, only {sorted(known)}")
        if isinstance(self.metadata, str) or not all("/" in key for key in self.metadata):
            raise ValueError("metadata is a collection of namespaced keys, such as 'langgraph/checkpointId'")

    def first_denial(self, ag_input: AgInput, thread: Thread | None = None) -> Denial | None:
        """The first thing in an input that is not allowed, in the order of the input; None: all is.

        Args:
            ag_input: the input.
            thread: its thread as it is stored. Messages that it has already bring nothing new, so that a client may
                send the whole conversation again.
        """
        return next(self._denials(ag_input, thread), None)

    def _denials(self, ag_input: AgInput, thread: Thread | None) -> Iterator[Denial]:
        known = _known_messages(ag_input, thread)
        # The next one is the last of the list; no recursion, however deep an input is.
        waiting: list[tuple[Any, str]] = [(ag_input, "$")]
        while waiting:
            value, path = waiting.pop()
            if isinstance(value, list):
                items = list(enumerate(value))
                waiting += [(item, f"{path}[{index}]") for index, item in reversed(items)]
            elif isinstance(value, msgspec.Struct) and id(value) not in known:
                inside: list[tuple[Any, str]] = []
                yield from self._of_struct(value, path, inside)
                waiting += reversed(inside)

    def _of_struct(self, value: msgspec.Struct, path: str, inside: list[tuple[Any, str]]) -> Iterator[Denial]:
        cls = declared_class(value)
        needs = CLASSES.get(cls)
        if needs is not None and not self._allows(needs):
            kind, _, name = needs.partition(":")
            yield Denial(path, f"{_KINDS[kind]} `{name}` is not allowed here")
        if not self.unknown_members:
            for name in extra_fields(value):
                yield Denial(f"{path}.{name}", f"`{name}` is not a member that this server knows")
        rules = MEMBERS.get(cls, {})
        for name, wire_name, absent in _FIELDS[cls] if cls in _FIELDS else _fields(cls):
            member: Any = getattr(value, name)
            if member is absent:
                continue
            rule = rules.get(name)
            at = f"{path}.{wire_name}"
            if rule is None or (rule.needs is not None and not self._allows(rule.needs)):
                yield Denial(at, f"`{wire_name}` is not allowed here")
            elif rule.then == "role":
                if member not in self.roles:
                    yield Denial(at, f"the role `{member}` is not allowed here")
            elif rule.then == "bag":
                yield from self._of_bag(member, at)
            elif rule.then == "inside":
                inside.append((member, at))

    def _of_bag(self, bag: Mapping[str, Any], path: str) -> Iterator[Denial]:
        for key in bag:
            if "/" in key and key not in self.metadata and f"{key.partition('/')[0]}/*" not in self.metadata:
                yield Denial(f"{path}[{key!r}]", f"the metadata key `{key}` is not allowed here")

    def _allows(self, needs: str) -> bool:
        kind, _, name = needs.partition(":")
        allowed: Any = getattr(self, kind)
        return name in allowed if name else bool(allowed)


_KINDS = {"blocks": "a block of kind", "sources": "a source of type", "surfaces": "a message of surface"}


def _fields(cls: type[Any]) -> tuple[tuple[str, str, Any], ...]:
    """The members of a class: the name, the wire name, and what stands for an absent one (null may be a value)."""
    return tuple((field.name, field.encode_name, field.default) for field in msgspec.structs.fields(cls))


_FIELDS = {cls: _fields(cls) for cls in MEMBERS}


def _known_messages(ag_input: AgInput, thread: Thread | None) -> frozenset[int]:
    """The messages of a start that its thread has already, the same in every byte."""
    if thread is None or not isinstance(ag_input, StartInput):
        return frozenset()
    if not any(message.id in thread.ids.messages for message in ag_input.messages):
        return frozenset()
    stored = {message.id: message for message in thread.result.messages}
    return frozenset(
        id(message)
        for message in ag_input.messages
        if (there := stored.get(message.id)) is not None and encode(there) == encode(message)
    )
