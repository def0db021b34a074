"""The envelope that every event shares, in four cuts so that an arm can require ``id`` or ``turnId`` (spec §4).

Type checkers refuse to turn an inherited optional field into a required one, so the two ids that some arms require are
added by the base that leaves them optional, and declared by the arm itself elsewhere. Every event has all of ``seq``,
``id``, ``turn_id``, ``message_id``, ``parent_id`` and ``meta`` as attributes.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ._base import AgMeta, AgStruct, Opt

__all__ = ["EventBase", "EventWithId", "EventWithIds", "EventWithTurn"]


class EventBase(AgStruct, frozen=True, kw_only=True, tag_field="type"):
    """The envelope without ``id`` and ``turnId``, which the arm requires (spec §4).

    Attributes:
        seq: the ordinal within one invoke, from 0 without gaps (INV-SEQ).
        message_id: the open message that the event attaches to.
        parent_id: the entity that encloses it.
        meta: host-only metadata.
    """

    seq: Annotated[int, msgspec.Meta(ge=0)]
    message_id: Opt[str] = None
    parent_id: Opt[str] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class EventWithTurn(EventBase, frozen=True, kw_only=True):
    """The envelope of arms that require ``id`` (spec §4).

    Attributes:
        turn_id: the owning turn; absent: the sole open one.
    """

    turn_id: Opt[str] = None


class EventWithId(EventBase, frozen=True, kw_only=True):
    """The envelope of arms that require ``turnId`` (spec §4).

    Attributes:
        id: an id of the event's own.
    """

    id: Opt[str] = None


class EventWithIds(EventBase, frozen=True, kw_only=True):
    """The envelope of arms that require neither id (spec §4).

    Attributes:
        id: an id of the event's own.
        turn_id: the owning turn; absent: the sole open one.
    """

    id: Opt[str] = None
    turn_id: Opt[str] = None
