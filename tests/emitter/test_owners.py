"""Ordinals, owners, and the turns and messages that open by themselves (spec §5.0 INV-SEQ, INV-OWNER, INV-TURN)."""

from __future__ import annotations

from agjson.emitter import Emitter
from agjson.types import AgTrigger, DisplayRequired, PromptBlocked, UiCall
from tests.emitter.stream import errors, finished, folded, sound, types, wire


def test_the_first_event_opens_the_turn_and_the_first_block_a_message() -> None:
    emitter = Emitter("t", "thread", trigger=AgTrigger(kind="user"))

    emitter.text("Hi")

    assert wire(emitter.drain()) == [
        {"type": "turn.start", "threadId": "thread", "turnId": "t", "trigger": {"kind": "user"}},
        {"type": "message.start", "id": "t:message:0", "role": "assistant", "turnId": "t", "threadId": "thread"},
        {"type": "text.start", "id": "t:text:0", "turnId": "t", "messageId": "t:message:0"},
        {"type": "text.delta", "id": "t:text:0", "delta": "Hi", "turnId": "t", "messageId": "t:message:0"},
        {"type": "text.end", "id": "t:text:0", "turnId": "t", "messageId": "t:message:0"},
    ]


def test_ordinals_count_from_zero_over_drains() -> None:
    emitter = Emitter("t", "thread")

    emitter.text("a")
    first = emitter.drain()
    emitter.text("b")
    emitter.flush()
    second = emitter.drain()

    assert [event.seq for event in first + second] == list(range(len(first) + len(second)))
    assert emitter.drain() == []


def test_a_stream_without_a_call_is_empty() -> None:
    emitter = Emitter("t", "thread")

    emitter.flush()

    assert emitter.drain() == []


def test_a_trigger_may_come_with_turn_start_and_a_second_start_only_adds() -> None:
    emitter = Emitter("t", "thread")

    emitter.turn_start(trigger=AgTrigger(kind="cron", ref="0 7 * * *"))
    emitter.turn_start()
    emitter.turn_start(meta={"run": 1})
    events = finished(emitter)

    assert types(events) == ["turn.start", "turn.start", "turn.abort"]
    assert folded(events).turns[0].trigger == AgTrigger(kind="cron", ref="0 7 * * *")


def test_the_generic_path_fills_in_the_same_owner() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.subagent_start("inner")
    emitter.drain()

    emitter.emit(PromptBlocked(seq=7, reason="other"))
    emitter.emit(DisplayRequired(seq=7, provider="p", html="<p>", turn_id="t"))
    emitter.emit(UiCall(seq=7, surface_id="s", call_id="c", method="f", message_id="m"))
    emitter.ext("ext.agjson.note", 1, message_id="m")
    emitter.handoff(to_agent_id="b")

    assert [(event.type, event.turn_id) for event in emitter.drain()] == [
        ("prompt.blocked", "inner"),
        ("display.required", "t"),
        ("ui.call", "t"),
        ("ext.agjson.note", "t"),
        ("handoff", "inner"),
    ]


def test_a_nested_turn_is_current_until_it_closes_and_then_its_parent_is() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("outer", id="a")
    emitter.subagent_start("s1", agent_id="x", agent_name="Researcher")
    emitter.subagent_start("s2")
    emitter.text("innermost", id="b")
    emitter.turn_done()
    emitter.text("inner", id="c")
    emitter.subagent_done()
    emitter.text("outer again", id="d")
    emitter.turn_done()
    events = finished(emitter)

    assert {m.turn_id: [b.text for b in m.content] for m in folded(events).messages} == {  # type: ignore[union-attr]
        "t": ["outer", "outer again"],
        "s1": ["inner"],
        "s2": ["innermost"],
    }
    assert [event for event in wire(events) if event["type"].startswith("subagent")] == [
        {
            "type": "subagent.start",
            "turnId": "s1",
            "parentTurnId": "t",
            "agentId": "x",
            "agentName": "Researcher",
        },
        {"type": "subagent.start", "turnId": "s2", "parentTurnId": "s1"},
        {"type": "subagent.done", "turnId": "s2", "parentTurnId": "s1"},
        {"type": "subagent.done", "turnId": "s1", "parentTurnId": "t"},
    ]


def test_interleaved_turns_are_told_apart_by_their_ids() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    outer = emitter.text_start(turn_id="t")
    inner = emitter.text_start()
    emitter.text_delta(outer, "to the ")
    emitter.text_delta(inner, "to the ")
    emitter.text_delta(outer, "user")
    emitter.text_delta(inner, "parent")
    events = finished(emitter)

    assert {m.turn_id: m.content[0].text for m in folded(events).messages} == {  # type: ignore[union-attr]
        "t": "to the user",
        "s": "to the parent",
    }


def test_a_turn_never_opened_is_opened_inside_the_current_one() -> None:
    emitter = Emitter("t", "thread")

    emitter.text("hm", turn_id="task-9")
    events = finished(emitter)

    assert types(events)[:3] == ["turn.start", "subagent.start", "message.start"]
    assert [(turn.turn_id, turn.parent_turn_id) for turn in folded(events).turns] == [("t", None), ("task-9", "t")]


def test_a_label_may_stand_for_the_parent() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("call", id="a")

    emitter.subagent_start("s", parent_turn_id="turn_call_1")
    emitter.subagent_done("s")
    emitter.text("back", id="b")
    events = finished(emitter)

    assert [turn.parent_turn_id for turn in folded(events).turns] == [None, "turn_call_1"]
    assert len([event for event in events if event.turn_id == "t" and event.type == "message.start"]) == 1


def test_a_turn_with_a_parent_is_opened_as_one_and_closed_as_one() -> None:
    emitter = Emitter("t", "thread", parent_turn_id="before")
    emitter.text("Hi")
    emitter.turn_done()
    events = finished(emitter)

    assert wire(events)[:2] == [
        {"type": "turn.start", "threadId": "thread", "turnId": "t"},
        {"type": "subagent.start", "turnId": "t", "parentTurnId": "before"},
    ]
    assert types(events)[-2:] == ["turn.done", "subagent.done"]
    assert folded(events).turns[0].thread_id == "thread"


def test_opening_an_open_nested_turn_again_adds_to_it() -> None:
    emitter = Emitter("t", "thread")

    assert emitter.subagent_start("s") == "s"
    assert emitter.subagent_start("s") == "s"
    assert emitter.subagent_start("s", agent_name="Ann") == "s"
    events = finished(emitter)

    assert types(events).count("subagent.start") == 2
    assert wire(events)[2] == {"type": "subagent.start", "turnId": "s", "parentTurnId": "t", "agentName": "Ann"}


def test_a_nested_turn_that_has_closed_opens_under_another_id() -> None:
    emitter = Emitter("t", "thread")
    emitter.subagent_start("s")
    emitter.subagent_done("s")

    assert emitter.subagent_start("s") == "s#2"
    emitter.text("second", turn_id="s")
    events = finished(emitter)

    assert folded(events).messages[0].turn_id == "s#2"


def test_the_invokes_turn_cannot_be_nested_in_itself() -> None:
    emitter = Emitter("t", "thread")

    assert emitter.subagent_start("t") == "t#2"
    emitter.text("outer", turn_id="t")

    assert folded(finished(emitter)).messages[0].turn_id == "t"


def test_candidates_have_messages_of_their_own() -> None:
    emitter = Emitter("t", "thread")
    one = emitter.text_start(candidate_index=0)
    two = emitter.text_start(candidate_index=1)
    emitter.text_delta(two, "second")
    emitter.text_delta(one, "first")
    emitter.text_end(two)
    emitter.text("more", candidate_index=1)
    events = finished(emitter)

    assert [(m.candidate_index, [b.text for b in m.content]) for m in folded(events).messages] == [  # type: ignore[union-attr]
        (0, ["first"]),
        (1, ["second", "more"]),
    ]


def test_a_block_takes_the_candidate_of_the_message_that_it_names() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m1", candidate_index=1)
    emitter.message_start("m0")

    emitter.text("for one", message_id="m1")
    events = finished(emitter)

    assert next(event for event in wire(events) if event["type"] == "text.start")["candidateIndex"] == 1
    assert [len(m.content) for m in folded(events).messages] == [1, 0]


def test_a_block_for_an_older_open_message_continues_it_in_a_new_one() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("a", model="m", agent_name="Ann")
    emitter.text_start("a1")
    emitter.message_start("b")
    emitter.text_start("b1")
    emitter.text_delta("a1", "still ")
    emitter.text_delta("b1", "other")
    emitter.text_delta("a1", "streaming")
    emitter.text("next", id="a2", message_id="a")
    emitter.turn_done()
    events = finished(emitter)

    assert [(m.id, m.model, m.agent_name, [b.text for b in m.content]) for m in folded(events).messages] == [  # type: ignore[union-attr]
        ("a", "m", "Ann", ["still streaming"]),
        ("b", None, None, ["other"]),
        ("a#2", "m", "Ann", ["next"]),
    ]


def test_after_the_end_of_a_message_a_block_opens_the_next() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.message_end("m")

    assert emitter.open_message() is None
    emitter.text("more")

    assert emitter.open_message() == "t:message:0"
    assert [m.id for m in folded(finished(emitter)).messages] == ["m", "t:message:0"]


def test_ending_a_message_twice_says_nothing_unless_there_is_something_to_say() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.message_end("m")
    emitter.message_end("m")
    emitter.message_end("never")
    emitter.message_end("m", meta={"late": True})
    events = finished(emitter)

    assert types(events).count("message.end") == 1
    assert errors(events) == [
        {
            "type": "error",
            "turnId": "t",
            "code": "message_sealed",
            "message": "message.end for message m, which is not open",
            "_meta": {"agjson/refused": {"type": "message.end", "id": "m", "_meta": {"late": True}}},
        }
    ]


def test_a_removed_message_takes_nothing_and_its_blocks_begin_anew() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_start("m")
    emitter.text_start("x")
    emitter.text_delta("x", "wrong")
    emitter.message_remove("m")
    emitter.text_delta("x", "right")
    events = finished(emitter)

    assert (emitter.has_message("m"), emitter.has_message("never")) == (True, False)
    assert [(m.id, m.content[0].text) for m in folded(events).messages] == [("m#2", "right")]  # type: ignore[union-attr]
    assert types(events)[4:6] == ["message.end", "message.remove"]


def test_removing_all_messages_of_a_turn_names_the_turn() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("a")
    emitter.message_end()
    emitter.text("b")

    emitter.message_remove("*")
    emitter.message_remove("never-heard-of")
    events = finished(emitter)

    assert folded(events).messages == []
    assert [event.turn_id for event in events if event.type == "message.remove"] == ["t", "t"]


def test_metadata_goes_to_the_open_message_else_to_the_last_else_nowhere() -> None:
    emitter = Emitter("t", "thread")
    emitter.message_metadata({"too": "early"})
    emitter.message_start("m")
    emitter.message_metadata({"while": "open"})
    emitter.message_end()
    emitter.message_metadata({"after": "the end"})
    emitter.message_metadata({"by": "name"}, message_id="m")
    events = finished(emitter)

    assert folded(events).messages[0].metadata == {"while": "open", "after": "the end", "by": "name"}
    (refused,) = errors(events)
    assert refused["code"] == "unknown_message"
    assert refused["_meta"]["agjson/refused"]["metadata"] == {"too": "early"}


def test_a_second_turn_of_its_own_is_a_top_level_turn() -> None:
    emitter = Emitter("t", "thread")
    emitter.text("one")
    assert emitter.turn_start("u", trigger=AgTrigger(kind="agent")) == "u"
    emitter.text("two")
    emitter.turn_done()
    emitter.turn_done(turn_id="t")
    events = finished(emitter)

    assert [(turn.turn_id, turn.parent_turn_id) for turn in folded(events).turns] == [("t", None), ("u", None)]
    assert emitter.turn_start("v") == "t"
    assert sound([*events, *emitter.drain()])[-1].type == "error"
