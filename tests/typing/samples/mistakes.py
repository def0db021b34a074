# pyright: strict
"""Mistakes that a checker finds; the line of each ends in a comment that says so."""

from __future__ import annotations

from typing import Unpack, assert_never

from agjson.agents import NormalizerSettings
from agjson.emitter import Emitter, EmitterSettings
from agjson.normalizer import Normalizer
from agjson.types import (
    AgBlock,
    AgMeta,
    AgOutcome,
    AgSurfaceInteraction,
    ExtEvent,
    McpOpenLink,
    SuccessOutcome,
    TextBlock,
    TextDelta,
    ToolStart,
    TurnStart,
    UnknownBlock,
)


def a_missing_arm(outcome: AgOutcome) -> object:
    if outcome.type == "success":
        return outcome.result
    if outcome.type == "error":
        return outcome.message
    if outcome.type == "rejected":
        return outcome.reason
    if outcome.type == "aborted":
        return outcome.reason
    assert_never(outcome)  # mistake: missing arm


def a_missing_surface(interaction: AgSurfaceInteraction) -> str:
    if isinstance(interaction, McpOpenLink):
        return interaction.params.url
    assert_never(interaction)  # mistake: missing arm


def frozen_fields(delta: TextDelta, ext: ExtEvent, block: UnknownBlock) -> None:
    delta.delta = "other"  # mistake: frozen
    ext.seq = 1  # mistake: frozen
    block.raw = b"{}"  # mistake: frozen


def no_brand(meta: AgMeta) -> None:
    TextBlock(text="x", provider_metadata={"id": "1"})  # mistake: no brand
    TextBlock(text="x", provider_metadata=meta)  # mistake: no brand


def wrong_fields(block: AgBlock) -> None:
    TextDelta(seq=0, delta="x")  # mistake: id is missing
    TurnStart(seq=0, thread_id="th")  # mistake: turn_id is missing
    TextDelta(seq=0, id="b", delta="x", text="y")  # mistake: no such field
    TextDelta(0, "b", "x")  # mistake: positional
    ToolStart(seq=0, tool_call_id="c", name="n", ui_visibility=["user"])  # mistake: no such visibility
    SuccessOutcome(result=object())  # mistake: no JSON value
    print(block.text)  # mistake: not every block has text


class Own(Normalizer):
    def __init__(self, turn_id: str, thread_id: str, *, own: int = 0, **settings: Unpack[EmitterSettings]) -> None:
        super().__init__(turn_id, thread_id, **settings)
        self.own = own

    def _on(self, native: object) -> None:
        print(native, self.own)


def wrong_settings(settings: NormalizerSettings) -> None:
    Emitter("t", "th", known=frozenset())  # mistake: no such setting
    Own(**settings, others=1)  # mistake: no such setting
    Own("t", "th", on_excess="drop")  # mistake: no such way
    Own(**settings, own=1)


def an_impossible_type(block: AgBlock) -> None:
    if block.type == "tool_result":  # mistake: snake_case
        print(block)
