"""Rules on the way back: what the framework gets of a stored conversation (spec §2.1, §3.2, §8.0 item 7, §10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agjson.errors import AgJSONError
from agjson.jsonable import jsonable
from agjson.testing.contract._running import THREAD, TURN, run_sample
from agjson.testing.contract._values import as_json, shorten, strings
from agjson.testing.contract.rule import expect, rule, samples_for
from agjson.testing.contract.subject import NotApplicable, Sample, Subject
from agjson.types import AgMessage, AgToolResult, TextBlock, ToolResultBlock, ToolResultInput
from agjson.wire import to_dict

__all__ = ["CONTENT", "HIDDEN", "STRUCTURED", "four_channels"]

CONTENT = "contract-for-the-model-in-words"
"""A mark in the content of a result, which the model reads."""

STRUCTURED = "contract-for-the-model-in-structure"
"""A mark in its structured content, which the model reads too."""

HIDDEN = ("contract-for-the-surface", "contract-for-the-app", "contract-for-the-host")
"""Marks in its ``uiData``, ``sideData`` and ``_meta``, which the model does not read."""


def four_channels(tool_call_id: str) -> AgToolResult:
    """A result with a mark in each channel (spec §2.1)."""
    return AgToolResult(
        tool_call_id=tool_call_id,
        content=[TextBlock(text=CONTENT)],
        structured_content={"found": STRUCTURED},
        ui_data={"shown": HIDDEN[0]},
        side_data=[HIDDEN[1]],
        meta={"contract/trace": HIDDEN[2]},
    )


@rule("replay-opaque", "§3.2, §8.0 item 7, §10 items 3, 13")
def replay_opaque(subject: Subject) -> None:
    """What must survive goes back to the framework byte for byte, and nothing of what must not."""
    if subject.opaque is None:
        raise NotApplicable("the subject has no `opaque`")
    tried = 0
    for sample in _replayed(subject):
        native = list(strings(jsonable(_sent_back(subject, sample))))
        for value in dict.fromkeys(value for each in sample.natives for value in subject.opaque(each)):
            tried += 1
            goes_back = value in native
            expect(
                goes_back or value in sample.withheld,
                f"sample {sample.name!r}: {shorten(value)} does not go back",
            )
            expect(
                not goes_back or value not in sample.withheld,
                f"sample {sample.name!r}: {shorten(value)} goes back, but is listed as withheld",
            )
    if not tried:
        raise NotApplicable("no sample holds an opaque value")


@rule("replay-stable", "§3.2, §10 item 13")
def replay_stable(subject: Subject) -> None:
    """A history that goes back, is read and goes back again is the same history."""
    if subject.messages_from_native is None:
        raise NotApplicable("the subject has no `messages_from_native`")
    for sample in _replayed(subject):
        first = _sent_back(subject, sample)
        read = list(subject.messages_from_native(list(first)))
        second = _to_native(subject, read)
        where = f"sample {sample.name!r}"
        expect(
            as_json(list(first)) == as_json(list(second)),
            f"{where}: the native history changes when it is read: {_first_difference(first, second)}",
        )
        again = [to_dict(message) for message in subject.messages_from_native(list(second))]
        expect(
            as_json([to_dict(message) for message in read]) == as_json(again),
            f"{where}: the messages change when they go back and are read again",
        )


@rule("result-channels", "§2.1, §10.3 (routing matrix)")
def result_channels(subject: Subject) -> None:
    """Of a tool result the model gets content and structuredContent, and never uiData, sideData or _meta.

    Tried by `to_native` with a ``tool-result`` input and by `messages_to_native` with the result in the history; with a
    scripted agent the rule ``agent-results`` tries it on a real run.
    """
    call = subject.call
    asked = [
        AgMessage(id="contract-u", role="user", content=[TextBlock(text="Look it up.")]),
        AgMessage(id="contract-a", role="assistant", content=[call]),
    ]
    given = four_channels(call.tool_call_id)
    stored = ToolResultBlock(
        tool_call_id=call.tool_call_id,
        content=given.content or [],
        outcome="ok",
        structured_content=given.structured_content,
        ui_data=given.ui_data,
        side_data=given.side_data,
        meta=given.meta,
    )
    made: dict[str, Any] = {}
    if subject.adapter.messages_to_native is not None:
        history = [*asked, AgMessage(id="contract-r", role="tool", content=[stored])]
        made["messages_to_native"] = subject.adapter.messages_to_native(history)
    if subject.adapter.to_native is not None:
        results = ToolResultInput(thread_id=THREAD, turn_id=TURN, results=[given])
        made["to_native"] = subject.adapter.to_native(results, history=asked)
    if not made:
        raise NotApplicable("the adapter has neither messages_to_native nor to_native")
    for name, native in made.items():
        expect_channels(as_json(native), name)


def expect_channels(sent: str, where: str) -> None:
    """Check what a model gets of `four_channels`, in the text of a request."""
    for mark, channel in ((CONTENT, "content"), (STRUCTURED, "structuredContent")):
        expect(mark in sent, f"{where}: {channel} does not reach the model")
    for mark, channel in zip(HIDDEN, ("uiData", "sideData", "_meta"), strict=True):
        expect(mark not in sent, f"{where}: {channel} reaches the model")


def _replayed(subject: Subject) -> list[Sample]:
    if subject.adapter.messages_to_native is None:
        raise NotApplicable("the adapter has no messages_to_native")
    lack = "no sample ends as turn.done with messages that go back by themselves"
    return samples_for(subject, lambda each: each.terminal == "turn.done" and each.replays, lack)


def _sent_back(subject: Subject, sample: Sample) -> Sequence[Any]:
    """The native history in which the user asks, the sample is the answer, and the user goes on."""
    messages = run_sample(subject, sample).result.messages
    asked = AgMessage(id="contract-u", role="user", content=[TextBlock(text="Tell me.")])
    goes_on = AgMessage(id="contract-v", role="user", content=[TextBlock(text="Go on.")])
    try:
        return _to_native(subject, [asked, *messages, goes_on])
    except AgJSONError as error:
        message = f"sample {sample.name!r} cannot be sent back: {type(error).__name__}: {error}"
        raise AssertionError(message) from error


def _to_native(subject: Subject, messages: Sequence[AgMessage]) -> Sequence[Any]:
    convert = subject.adapter.messages_to_native
    if convert is None:
        raise NotApplicable("the adapter has no messages_to_native")
    native: Sequence[Any] = convert(messages)
    return native


def _first_difference(first: Sequence[Any], second: Sequence[Any]) -> str:
    for one, other in zip(first, second, strict=False):
        if as_json(one) != as_json(other):
            return f"{shorten(one)} becomes {shorten(other)}"
    return f"{len(first)} native messages become {len(second)}"
