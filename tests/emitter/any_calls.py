"""Calls of emitter methods in any order, for Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agjson.types import (
    AgAnnotations,
    AgCapabilities,
    AgentCapabilities,
    AgMemoryRecord,
    AgMessage,
    AgOpaque,
    AgPausedAsk,
    AgTurnRecord,
    AgUsage,
    BareUrlSource,
    DataBlock,
    DisplayRequired,
    ErrorOutcome,
    GuardrailResult,
    PausedOutcome,
    PromptBlocked,
    ReasoningBlock,
    RejectedOutcome,
    SuccessOutcome,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UiCall,
    UiSurfaceStart,
)

Call = tuple[str, tuple[Any, ...], dict[str, Any]]

# Few ids, so that they collide; one looks like a derived id and one like a renamed one.
ids = st.sampled_from(["a", "b", "a#2", "t:message:0", "t:text:0", "t:tool:0", "old"])
maybe_id = st.none() | ids
turn_ids = st.none() | st.sampled_from(["t", "s1", "s2", "s1#2", "a"])
candidates = st.none() | st.sampled_from([0, 1])
texts = st.sampled_from(["", "x", "Hello", "Hellos", "\ud83d", "\ude00", "\ud83d\ude00", "é\ud83d", "Grüße"])
args = st.sampled_from(["", '{"a":', "1}", '{"a": 1}', "NaN", "\ud83d"])
metas = st.none() | st.just({"k": 1})
usages = st.none() | st.just(AgUsage(output_tokens=3, cumulative=True))
blocks = st.one_of(
    st.builds(TextBlock, text=st.just("whole")),
    st.just(TextBlock(text="noted", annotations=AgAnnotations(audience=["user"]))),
    st.builds(ToolCallBlock, tool_call_id=ids, name=st.just("tool"), input=st.just({"q": 1})),
    st.builds(
        ToolResultBlock,
        tool_call_id=ids,
        content=st.just([TextBlock(text="r")]),
        outcome=st.sampled_from([None, "ok", "error", "denied"]),
        is_error=st.sampled_from([None, True, False]),
        error_text=st.sampled_from([None, "bad"]),
    ),
    st.builds(DataBlock, name=st.just("d"), id=maybe_id, data=st.just(1), transient=st.sampled_from([None, True])),
    st.just(ReasoningBlock(text="hm", opaque=AgOpaque(kind="signature", value=""))),
    st.just(ReasoningBlock(text="hm", opaque=AgOpaque(kind="redacted", value="zzz"))),
    st.just(ReasoningBlock(text="hm", provider_details={"p": 1})),
)
patches = st.sampled_from(
    [
        [],
        {"node": {"key": 1}},
        {"node": 2},
        5,
        [{"op": "add", "path": "/x", "value": 1}],
        [{"op": "replace", "path": "", "value": {"x": 0}}],
        [{"op": "remove", "path": "/missing"}],
        [{"op": "nonsense"}],
        "not a patch",
    ]
)
asks = st.builds(AgPausedAsk, ask_id=ids, kind=st.just("text"))
outcomes = st.one_of(
    st.none(),
    st.just(SuccessOutcome(result=1)),
    st.just(ErrorOutcome(message="no")),
    st.just(RejectedOutcome()),
    st.builds(PausedOutcome, asks=st.lists(asks, max_size=2)),
)
stored = st.builds(
    AgMessage,
    id=st.sampled_from(["a", "b", "restored"]),
    role=st.just("assistant"),
    content=st.just([]),
    turn_id=st.sampled_from([None, "t", "s1"]),
) | st.just(
    AgMessage(id="c", role="assistant", content=[ToolCallBlock(tool_call_id="b", name="n", input={})], turn_id="t")
)
records = st.builds(
    AgTurnRecord,
    turn_id=st.sampled_from(["t", "s1", "other"]),
    thread_id=st.just("thread"),
    outcome=st.sampled_from([None, SuccessOutcome()]),
)


def calls_of(
    name: str, *positional: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]
) -> st.SearchStrategy[Call]:
    return st.tuples(st.just(name), st.tuples(*positional), st.fixed_dictionaries({}, optional=named))


owned = {"turn_id": turn_ids, "message_id": maybe_id}
call = st.one_of(
    calls_of("turn_start", turn_ids, meta=metas),
    calls_of(
        "turn_done",
        outcome=outcomes,
        finish_reason=st.sampled_from(["stop", "paused", "token_limit"]),
        message_id=maybe_id,
        message_metadata=st.just({"m": 1}),
        turn_id=turn_ids,
        usage=usages,
    ),
    calls_of("turn_paused", st.none() | st.lists(asks, max_size=2), turn_id=turn_ids),
    calls_of("turn_error", st.just("broken"), turn_id=turn_ids),
    calls_of("turn_abort", turn_id=turn_ids, reason=st.sampled_from([None, "cancelled"])),
    calls_of("subagent_start", turn_ids, parent_turn_id=turn_ids | st.just("label"), agent_name=st.just("Ann")),
    calls_of("subagent_done", turn_ids),
    calls_of(
        "message_start",
        maybe_id,
        role=st.sampled_from(["assistant", "user", "tool"]),
        turn_id=turn_ids,
        candidate_index=candidates,
    ),
    calls_of("message_end", maybe_id, usage=usages, turn_id=turn_ids),
    calls_of("message_remove", ids | st.just("*"), turn_id=turn_ids),
    calls_of("message_metadata", st.just({"k": "v"}), **owned),
    calls_of("text_start", maybe_id, candidate_index=candidates, meta=metas, **owned),
    calls_of("text_delta", ids, texts, meta=metas),
    calls_of("text_cumulative", ids, texts),
    calls_of("text_end", ids, meta=metas),
    calls_of("text", texts, id=maybe_id, **owned),
    calls_of(
        "reasoning_start",
        maybe_id,
        part_index=st.sampled_from([None, 0, 1, 2]),
        candidate_index=candidates,
        **owned,
    ),
    calls_of("reasoning_delta", ids, texts, part_index=st.sampled_from([None, 0, 1, 2])),
    calls_of("reasoning_cumulative", ids, texts, part_index=st.sampled_from([None, 0, 1])),
    calls_of("reasoning_opaque_delta", ids, st.sampled_from(["", "sig", "A=="])),
    calls_of("reasoning_opaque", ids, st.sampled_from([None, "", "sigA==", "sig"])),
    calls_of("reasoning_end", ids, provider=st.just("p")),
    calls_of("tool_start", maybe_id, st.just("tool"), candidate_index=candidates, **owned),
    calls_of("tool_args_delta", ids, args, turn_id=turn_ids),
    calls_of("tool_args_cumulative", ids, args),
    calls_of("tool_args_assembled", ids, signature=st.sampled_from([None, "", "s"]), turn_id=turn_ids),
    calls_of("tool_call", maybe_id, st.just("tool"), st.just({"a": 1}), **owned),
    calls_of(
        "tool_done",
        ids,
        st.lists(blocks, max_size=1),
        outcome=st.sampled_from([None, "ok", "error", "denied", "input_required"]),
        error_text=st.sampled_from([None, "bad"]),
        is_error=st.sampled_from([None, True, False]),
        structured_content=st.just({"s": 1}),
        more=st.sampled_from([None, False, True]),
        candidate_index=candidates,
        meta=metas,
        **owned,
    ),
    calls_of("content_block", blocks, transient=st.sampled_from([None, True]), candidate_index=candidates, **owned),
    calls_of("block", blocks, id=maybe_id, **owned),
    calls_of(
        "hitl_ask", st.sampled_from(["approval", "form"]), ask_id=maybe_id, tool_call_id=maybe_id, turn_id=turn_ids
    ),
    calls_of("messages_snapshot", st.lists(stored, max_size=2, unique_by=lambda m: m.id), turn_id=turn_ids),
    calls_of(
        "messages_snapshot",
        st.just([]),
        turns=st.lists(records, max_size=3, unique_by=lambda r: r.turn_id),
        artifacts=st.just([]),
        memory=st.just([AgMemoryRecord(scope="thread", value=1)]),
    ),
    calls_of("step_start", maybe_id, turn_id=turn_ids),
    calls_of("step_done", maybe_id, turn_id=turn_ids, usage=usages),
    calls_of("source", st.just(BareUrlSource(url="https://example.org")), source_id=maybe_id, turn_id=turn_ids),
    calls_of("handoff", to_agent_id=st.just("b"), turn_id=turn_ids),
    calls_of("artifact_start", maybe_id, turn_id=turn_ids),
    calls_of(
        "artifact_delta",
        ids,
        st.builds(TextBlock, text=st.sampled_from(["", "part"])),
        append=st.booleans(),
        turn_id=turn_ids,
    ),
    calls_of("artifact_end", ids, turn_id=turn_ids),
    calls_of("state_snapshot", st.sampled_from([None, {}, {"x": 1}, [1]])),
    calls_of("state_delta", patches, turn_id=turn_ids),
    calls_of("memory_write", st.sampled_from(["user", "thread"]), patch=patches, key=maybe_id).filter(
        lambda c: "patch" in c[2]
    ),
    calls_of("memory_write", st.sampled_from(["user", "thread"]), value=st.just({"x": 1}), key=maybe_id).filter(
        lambda c: "value" in c[2]
    ),
    calls_of("error", st.just("oops"), **owned),
    calls_of("ext", st.just("ext.agjson.note"), st.sampled_from([1, {"a": 1}, {"type": "t", "shadowed": 2}]), **owned),
    calls_of("emit", st.builds(PromptBlocked, seq=st.just(0), reason=st.just("other"), turn_id=turn_ids)),
    calls_of("emit", st.just(AgentCapabilities(seq=9, capabilities=AgCapabilities()))),
    calls_of("emit", st.just(DisplayRequired(seq=9, provider="p", html="<p>"))),
    calls_of("emit", st.just(GuardrailResult(seq=9, target="tool", passed=True))),
    calls_of("emit", st.just(UiCall(seq=0, surface_id="s", call_id="c", method="m", message_id="a"))),
    calls_of("emit", st.builds(UiSurfaceStart, seq=st.just(0), surface_id=ids, catalog_id=ids, tool_call_id=maybe_id)),
    calls_of("flush"),
)
