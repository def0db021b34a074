"""What was decided about the asks of a thread that no ledger keeps: by the same rules, and without edits (spec §7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agjson.agents.thread import Pending, Thread, calls_of, is_final
from agjson.types import UNSET, ToolCallBlock, ToolResultBlock

if TYPE_CHECKING:
    from agjson.approvals.claiming import Decision
    from agjson.approvals.records import CallRequest

__all__ = ["decided", "requests"]


def decided(
    thread: Thread, pending: Pending, is_client_tool: Callable[[str], bool]
) -> tuple[tuple[Decision, ...], tuple[CallRequest, ...]]:
    """The decisions on the asks that a thread waits for, and the safe calls that run with them.

    Args:
        thread: the thread.
        pending: what it waits for, with every answer.
        is_client_tool: whether the client has to run a tool.

    Raises:
        AnswerError: an answer has not the form that its ask wants, or edits arguments, which only a ledger's policy
            allows.
    """
    from agjson.approvals.claiming import decisions_of
    from agjson.approvals.policy import now
    from agjson.approvals.records import AskRecord
    from agjson.approvals.replies import read_reply

    moment = now()
    # Those of the input come after those that the thread has.
    before = len(thread.pending.answers)
    answers = {answer.ask_id: (index, answer) for index, answer in enumerate(pending.answers, -before)}
    calls = requests(calls_of(thread.result.messages))
    records: list[AskRecord] = []
    for place, ask in enumerate(pending.asks):
        index, answer = answers.get(ask.ask_id, (0, None))
        record = AskRecord(
            thread_id=thread.thread_id,
            turn_id="",
            ask=ask,
            call=calls.get(ask.tool_call_id or ""),
            owner=None,
            edit_schema=UNSET,
            place=place,
            key_id=None,
            issued_at=moment,
            token_hash=None,
            expires_at=None,
        )
        if answer is not None:
            said = read_reply(record, answer, f"$.answers[{index}]" if index >= 0 else "$.answers")
            record = replace(record, answer=answer, state=said.status)
        records.append(record)
    gated = {record.call.call_id for record in records if record.call is not None}
    if not any(record.ask.kind != "url" for record in records):
        return tuple(decisions_of(records, moment)), ()
    safe = _beside(thread, gated) - gated - set(pending.calls)
    held = tuple(
        call.copied() for id, call in calls.items() if id in safe and not call.hosted and not is_client_tool(call.name)
    )
    return tuple(decisions_of(records, moment)), held


def requests(calls: Mapping[str, ToolCallBlock]) -> dict[str, CallRequest]:
    """Calls as the ledger keeps them.

    Args:
        calls: the calls of a conversation by their ids, in order.
    """
    from agjson.approvals.records import CallRequest

    return {
        id: CallRequest(
            call_id=id,
            name=block.name,
            arguments=block.input,
            server=block.server_name,
            hosted=bool(block.provider_executed),
            index=index,
        )
        for index, (id, block) in enumerate(calls.items())
    }


def _beside(thread: Thread, gated: Collection[str]) -> set[str]:
    """The calls without a result in the turns of some calls."""
    turns: set[str | None] = set()
    by_turn: dict[str | None, set[str]] = {}
    ended: set[str] = set()
    for message in thread.result.messages:
        for block in message.content:
            if isinstance(block, ToolCallBlock):
                by_turn.setdefault(message.turn_id, set()).add(block.tool_call_id)
                if block.tool_call_id in gated:
                    turns.add(message.turn_id)
            elif isinstance(block, ToolResultBlock) and is_final(block):
                ended.add(block.tool_call_id)
    return {id for turn in turns for id in by_turn[turn]} - ended
