"""What an emitter is told about its invoke and thread: one list of settings, for normalizers and drivers too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias, TypedDict

from agjson.types import AgMemoryRecord, AgProfile, AgTrigger, JsonValue, UnsetType

__all__ = ["EmitterSettings", "OnExcess", "refuse_unknown"]

OnExcess: TypeAlias = Literal["pass", "refuse"]
"""What to do with an event above the profile (spec §9): pass it through untouched, or refuse it."""


class EmitterSettings(TypedDict, total=False):
    """The keyword arguments that `Emitter` and every `Normalizer` take beside the turn and the thread.

    A normalizer hands them on whole: ``def __init__(self, turn_id: str, thread_id: str, *, own: int = 0, **settings:
    Unpack[EmitterSettings])``. Only the settings that a framework needs must be given.
    """

    known_ids: Collection[str]
    """Every id that the thread has already; only read. They are never opened again, and may be referred to as what
    they are (the result of an earlier turn's call). `KnownIds` tells the kinds; of another collection each id passes
    for whatever it is used as. Absent: none."""

    call_ids: Mapping[str, str] | None
    """For tool calls of earlier invokes that were renamed: native id to the id that the thread knows."""

    open_asks: Collection[str]
    """The asks of the thread that are still unanswered, which may be announced again under their ids."""

    parent_turn_id: str | None
    """The turn that this one is nested in, if the input says so."""

    trigger: AgTrigger | None
    """What set the turn off."""

    profile: AgProfile | None
    """The profile that the stream keeps to (spec §9); None or absent: all is allowed."""

    on_excess: OnExcess
    """With a profile, what to do with an event above it; absent: ``pass``."""

    state: JsonValue | UnsetType
    """The shared state of the thread, on which a JSON Patch is tried; absent or UNSET: there is none."""

    memory: Iterable[AgMemoryRecord]
    """The memory records of the thread, for the same reason."""


def refuse_unknown(settings: EmitterSettings) -> None:
    """Refuse keywords that are no settings, as Python does for arguments that are spelt out.

    Args:
        settings: what a caller gave.

    Raises:
        TypeError: one is no setting.
    """
    unknown = settings.keys() - EmitterSettings.__optional_keys__
    if unknown:
        raise TypeError(f"unexpected keyword argument {', '.join(map(repr, sorted(unknown)))}")
