"""Which ids the contract suite takes for opened, and what a subject may say of natives that come again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agjson.adapter import Adapter
from agjson.normalizer import Normalizer
from agjson.testing.contract import Sample, Subject, rule_named
from agjson.testing.contract._running import opened_ids
from agjson.wire import from_dict


def opened(*events: dict[str, Any]) -> list[str]:
    return list(opened_ids([from_dict({"seq": n, **event}, as_="event") for n, event in enumerate(events)]))


def test_the_message_of_a_result_is_opened_by_it_where_nothing_else_has() -> None:
    start = {"type": "message.start", "id": "m1", "role": "assistant", "turnId": "t1", "threadId": "th"}
    done = {"type": "tool.done", "outcome": "ok", "content": [], "turnId": "t1"}

    assert opened(start, {**done, "toolCallId": "c1", "messageId": "m1"}) == ["m1"]
    assert opened({**done, "toolCallId": "c1", "messageId": "r1"}, {**done, "toolCallId": "c2", "messageId": "r1"}) == [
        "r1"
    ]


def test_parts_of_reasoning_open_their_block_once() -> None:
    start = {"type": "reasoning.start", "id": "b1", "messageId": "m1", "turnId": "t1"}

    assert opened({**start, "partIndex": 0}, {**start, "partIndex": 1}) == ["b1"]
    assert opened(start, {**start, "partIndex": 0}) == ["b1"]
    assert opened(start, start) == ["b1", "b1"]


class SaysOnce(Normalizer):
    """Tells a message once in a thread, by its id."""

    def __init__(self, turn_id: str, thread_id: str, **settings: Any) -> None:
        super().__init__(turn_id, thread_id, **settings)
        self.known = frozenset(settings.get("known_ids") or ())

    def _on(self, native: Any) -> None:
        self.out.turn_start()
        if native["id"] not in self.known:
            message = self.out.message_start(native["id"], role="assistant")
            self.out.message_end(message)


def test_natives_that_name_what_the_thread_has_need_not_be_told_again() -> None:
    sample = Sample(name="named", natives=[{"id": "m1"}])
    subject = Subject(
        adapter=Adapter(name="once", normalizer=SaysOnce, recorded=lambda exchange: None),
        samples=[sample],
        has_ended=lambda natives: False,
    )

    with pytest.raises(AssertionError, match=r"other numbers of messages in each invoke: \[1, 0, 0, 0, 0\]"):
        rule_named("invokes")(subject)
    rule_named("invokes")(replace(subject, samples=[replace(sample, repeats=False)]))
