"""Any input over any history becomes a request that the Messages API takes, or is refused with a place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agjson import AgInput, AgMessage, ReplayError, ResumeInput, StartInput, ToolResultInput, ValidationError, encode
from agjson.adapters.anthropic import to_native
from agjson.testing import inputs
from agjson.testing import messages as any_message
from agjson.types import (
    AgHitlAnswer,
    AgPausedAsk,
    AgToolResult,
    ProviderRawBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from tests.support.anthropic_history import message
from tests.support.anthropic_rules import broken_rules
from tests.support.properties import examples


def raw_types(messages: list[AgMessage]) -> set[str]:
    blocks = [block for each in messages for block in each.content]
    blocks += [part for block in blocks if isinstance(block, ToolResultBlock) for part in block.content]
    return {
        str(block.raw.get("type"))
        for block in blocks
        if isinstance(block, ProviderRawBlock) and isinstance(block.raw, dict)
    }


@examples(200)
@given(inputs(), st.lists(any_message(), max_size=2), st.sampled_from(["refuse", "drop"]))
def test_any_input_is_written_or_refused(ag_input: AgInput, history: list[AgMessage], unsupported: str) -> None:
    try:
        found = to_native(ag_input, history=history, unsupported=unsupported)  # pyright: ignore[reportArgumentType]
    except (ReplayError, ValidationError) as error:
        assert error.path.startswith("$")
        return
    encode(found.params)
    started = list(ag_input.messages) if isinstance(ag_input, StartInput) else []
    context = [message("user", *(ag_input.run.context or ()))] if started and ag_input.run is not None else []  # pyright: ignore[reportAttributeAccessIssue]
    assert broken_rules(found.params["messages"], raw_types=raw_types([*history, *started, *context])) == []


IDS = ["toolu_1", "toolu_2", "toolu_3"]
calls = st.lists(st.sampled_from(IDS), max_size=3, unique=True)
results = st.lists(
    st.builds(
        lambda id, outcome: AgToolResult(tool_call_id=id, content=[TextBlock(text="x")], outcome=outcome),
        st.sampled_from(IDS),
        st.sampled_from([None, "ok", "error", "denied", "input_required"]),
    ),
    max_size=3,
)
answers = st.lists(
    st.builds(
        lambda id, status, reply: AgHitlAnswer(ask_id=f"turn:{id}", status=status, reply=reply),
        st.sampled_from(IDS),
        st.sampled_from(["resolved", "declined", "cancelled"]),
        st.sampled_from([None, {"q": 1}, "text"]),
    ),
    max_size=3,
)
kinds = st.sampled_from(["approval", "form", "text", "choice", "auth", "url"])


@examples(400)
@given(calls, calls, results, answers, st.lists(st.tuples(st.sampled_from(IDS), kinds), max_size=3), st.booleans())
def test_answers_go_to_the_calls_that_wait_for_them_and_to_no_others(
    made: list[str],
    done: list[str],
    returned: list[AgToolResult],
    said: list[AgHitlAnswer],
    asks: list[tuple[str, str]],
    resume: bool,
) -> None:
    blocks = [ToolCallBlock(tool_call_id=id, name="look", input={}) for id in made]
    history = [message("user", "?"), message("assistant", *blocks)] if made else [message("user", "?")]
    history += [message("tool", ToolResultBlock(tool_call_id=id, content=[])) for id in done]
    open_asks = [AgPausedAsk(ask_id=f"turn:{id}", kind=kind, tool_call_id=id) for id, kind in asks]  # pyright: ignore[reportArgumentType]
    ag_input: AgInput = (
        ResumeInput(thread_id="th", turn_id="t", answers=said)
        if resume
        else ToolResultInput(thread_id="th", turn_id="t", results=returned)
    )
    waiting = set(made) - set(done)
    given_back = {result.tool_call_id for result in returned} | ({a.ask_id[5:] for a in said} if resume else set())
    try:
        found = to_native(ag_input, history=history, asks=open_asks, results=returned if resume else ())
    except ReplayError:
        whole = given_back == waiting and not (resume and said) and len(returned) == len(given_back)
        assert not whole or any(result.outcome == "input_required" for result in returned)
        return
    assert given_back == waiting
    assert broken_rules(found.params["messages"]) == []
