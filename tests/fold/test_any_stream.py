"""Any stream of well-formed events, however wrong as a stream: what holds for every one of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agjson.fold import Reducer, reduce, snapshot
from agjson.types import TextBlock
from agjson.wire import encode
from tests.support.folding import Event, events, view

TURNS = st.sampled_from(["t", "u"])
MESSAGES = st.sampled_from(["m", "n", "R"])
BLOCKS = st.sampled_from(["x", "y"])
CALLS = st.sampled_from(["c", "d"])
BAGS = st.sampled_from([{"a": 1}, {"a": {"b": 1}}, {"b": 2}])
VALUES = st.sampled_from([None, 1, "s", {"a": 1}, [1]])
DELTAS = st.sampled_from(["", "a", "é", "\U0001f600", "\ud83d", "\ude00"])
# A text that comes whole is carried as it is, and has this mark; a streamed one has none.
TEXTS = st.fixed_dictionaries({"type": st.just("text"), "text": DELTAS, "annotations": st.just({"priority": 1})})
DATA = st.fixed_dictionaries({"type": st.just("data"), "name": st.just("n"), "id": BLOCKS, "data": VALUES})
CALL_BLOCKS = st.fixed_dictionaries(
    {"type": st.just("tool-call"), "toolCallId": CALLS, "name": st.just("n"), "input": VALUES}
)
ANY_BLOCK = st.one_of(TEXTS, DATA, CALL_BLOCKS)
PATCHES = st.one_of(
    VALUES,
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "replace", "test"]),
                "path": st.sampled_from(["", "/a", "/0", "/a/b"]),
            },
            optional={"value": VALUES},
        ),
        max_size=2,
    ),
    st.dictionaries(st.sampled_from(["n", "a"]), VALUES, max_size=2),
)
THREAD = st.just("th")
USAGE = st.just({"totalTokens": 1})
CANDIDATES = st.sampled_from([0, 1])
FLAGS = st.booleans()
STORED_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"id": MESSAGES, "role": st.just("tool"), "content": st.lists(ANY_BLOCK, max_size=2)},
        optional={"turnId": TURNS},
    ),
    max_size=2,
)
STORED_TURNS = st.lists(
    st.fixed_dictionaries(
        {"turnId": TURNS, "threadId": THREAD},
        optional={"outcome": st.just({"type": "success"}), "parentTurnId": st.sampled_from(["t", "u", "p"])},
    ).filter(lambda record: record["turnId"] != record.get("parentTurnId")),
    max_size=3,
)


def kind(type: str, required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(type), **required}, optional=({} if "turnId" in required else {"turnId": TURNS}) | optional
    )


EVENTS = st.one_of(
    kind("turn.start", {"turnId": TURNS, "threadId": THREAD}),
    kind("subagent.start", {"turnId": TURNS, "parentTurnId": st.just("p")}),
    kind("subagent.done", {"turnId": TURNS, "parentTurnId": st.just("p")}),
    kind(
        "turn.done",
        {"turnId": TURNS, "outcome": st.just({"type": "paused", "asks": []}), "finishReason": st.just("stop")},
        messageId=MESSAGES,
        messageMetadata=VALUES,
    ),
    kind("turn.abort", {}),
    kind(
        "message.start",
        {"id": MESSAGES, "role": st.just("user"), "turnId": TURNS, "threadId": THREAD},
        candidateIndex=CANDIDATES,
    ),
    kind("message.end", {"id": MESSAGES}, usage=USAGE),
    kind("message.remove", {"id": MESSAGES}),
    kind("message.remove", {"id": st.just("*"), "turnId": TURNS}),
    kind("message.metadata", {"metadata": BAGS}, messageId=MESSAGES),
    kind("text.start", {"id": BLOCKS}, candidateIndex=CANDIDATES, messageId=MESSAGES, _meta=BAGS),
    kind("text.delta", {"id": BLOCKS, "delta": DELTAS}, providerMetadata=BAGS),
    kind("text.delta", {"id": BLOCKS, "delta": DELTAS}),
    kind("text.end", {"id": BLOCKS}, providerMetadata=BAGS),
    kind("reasoning.start", {"id": BLOCKS}, partIndex=CANDIDATES),
    kind("reasoning.delta", {"id": BLOCKS, "delta": DELTAS}, partIndex=CANDIDATES, providerMetadata=BAGS),
    kind("reasoning.end", {"id": BLOCKS}),
    kind("reasoning.opaque", {"id": BLOCKS, "kind": st.just("signature"), "value": DELTAS}),
    kind("reasoning.opaque.delta", {"id": BLOCKS, "delta": DELTAS}),
    kind("tool.start", {"toolCallId": CALLS, "name": st.just("n")}, candidateIndex=CANDIDATES),
    kind("tool.args.delta", {"toolCallId": CALLS, "delta": st.just("{")}),
    kind("tool.args.assembled", {"toolCallId": CALLS, "input": VALUES}, toolMetadata=BAGS),
    kind(
        "tool.done",
        {"toolCallId": CALLS, "content": st.lists(ANY_BLOCK, max_size=1)},
        more=FLAGS,
        messageId=MESSAGES,
        uiData=VALUES,
    ),
    kind("content.block", {"block": ANY_BLOCK}, candidateIndex=CANDIDATES, transient=FLAGS, messageId=MESSAGES),
    kind("source", {"sourceId": BLOCKS, "source": st.just({"url": "u"})}),
    kind("prompt.blocked", {"reason": st.just("other")}, safety=st.just([{"category": "c"}])),
    kind("artifact.start", {"artifactId": BLOCKS, "turnId": TURNS, "threadId": THREAD}),
    kind("artifact.delta", {"artifactId": BLOCKS, "part": ANY_BLOCK, "append": FLAGS}),
    kind("artifact.end", {"artifactId": BLOCKS, "lastChunk": st.just(True)}),
    kind("memory.write", {"scope": st.sampled_from(["user", "thread"]), "value": VALUES}, key=BLOCKS),
    kind("memory.write", {"scope": st.sampled_from(["user", "thread"]), "patch": PATCHES}, key=BLOCKS),
    kind("state.snapshot", {"snapshot": VALUES}),
    kind("state.delta", {"patch": PATCHES}),
    kind("messages.snapshot", {"messages": STORED_MESSAGES}, turns=STORED_TURNS, artifacts=st.just([])),
    kind("telemetry.update", {}),
)
OPENING: list[dict[str, Any]] = [
    {"type": "turn.start", "turnId": "t", "threadId": "th"},
    {"type": "message.start", "id": "m", "role": "assistant", "turnId": "t", "threadId": "th"},
    {"type": "text.start", "id": "x", "turnId": "t"},
    {"type": "reasoning.start", "id": "y", "turnId": "t"},
]
STREAMS = st.lists(EVENTS, max_size=12).map(lambda members: events(*OPENING, *members))


@settings(max_examples=300, deadline=None)
@given(stream=STREAMS, tolerant=st.booleans())
def test_reading_the_result_as_it_grows_changes_nothing(stream: list[Event], tolerant: bool) -> None:
    reducer = Reducer(tolerant=tolerant)
    kept: list[tuple[Any, bytes]] = []
    for event in stream:
        parked = reducer.needs_resync
        before = reducer.result()
        reducer.push(event)
        result = reducer.result()
        if reducer.needs_resync and (parked or not tolerant):
            # What a parked fold is asked to take leaves no trace; half an event never lands.
            assert result is before
        kept.append((result, encode(result)))
    whole = reduce(stream, tolerant=tolerant)
    assert (reducer.result(), reducer.needs_resync) == (whole.result, whole.needs_resync)
    assert [encode(result) for result, _ in kept] == [text for _, text in kept]


@settings(max_examples=150, deadline=None)
@given(stream=STREAMS)
def test_a_snapshot_of_any_result_ends_the_park_and_is_the_result(stream: list[Event]) -> None:
    result = reduce(stream).result
    reducer = Reducer(tolerant=True)
    for event in [*events({"type": "text.end", "id": "ghost"}), *snapshot(result, seq=90)]:
        reducer.push(event)
    assert not reducer.needs_resync
    late, whole = view(reducer.result()), view(result)
    assert [record for record in whole.pop("memory") if record["scope"] == "thread"] == late.pop("memory")
    assert late == whole
    assert view(Reducer(result).result()) == view(result)


@settings(max_examples=150, deadline=None)
@given(stream=STREAMS)
def test_no_half_of_a_character_shows_in_a_streamed_text(stream: list[Event]) -> None:
    for message in reduce(stream).result.messages:
        for block in message.content:
            if isinstance(block, TextBlock) and block.annotations is None:
                block.text.encode()
