"""Message rows that the vectors leave open (spec §5 message.*, content.block, INV-MSG, message partitioning)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.folding import CALL, DONE, MESSAGE, TEXT, TURN, blocks, folded, messages, push

END = {"type": "message.end", "id": "m"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://a.example/i.png"}}


def block(block: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "content.block", "block": block, **fields}


def test_a_notice_keeps_its_source() -> None:
    reducer = folded(TURN, {**MESSAGE, "role": "notice", "noticeSource": "host"})
    assert messages(reducer) == [
        {"id": "m", "role": "notice", "noticeSource": "host", "content": [], "turnId": "t", "threadId": "th"}
    ]


def test_the_envelope_metadata_of_a_start_does_not_land() -> None:
    assert "metadata" not in messages(folded(TURN, {**MESSAGE, "_meta": {"k": 1}}))[0]


@pytest.mark.parametrize("shut", [END, DONE], ids=["sealed", "turn closed"])
def test_a_start_never_wipes_a_finished_message(shut: dict[str, Any]) -> None:
    reducer = folded(TURN, MESSAGE, block({"type": "text", "text": "kept"}), shut, {**TURN, "turnId": "u"})
    push(reducer, {**MESSAGE, "turnId": "u"})
    assert reducer.needs_resync
    assert blocks(reducer) == [{"type": "text", "text": "kept"}]


def test_a_restart_in_another_turn_takes_the_message_along() -> None:
    reducer = folded(TURN, MESSAGE, {**TURN, "turnId": "u"}, {**MESSAGE, "turnId": "u"}, block(IMAGE, turnId="u"))
    assert messages(reducer) == [{"id": "m", "role": "assistant", "content": [IMAGE], "turnId": "u", "threadId": "th"}]
    push(reducer, block(IMAGE, turnId="t"))
    assert reducer.needs_resync


def test_a_restart_frees_the_ids_of_the_old_blocks() -> None:
    reducer = folded(TURN, MESSAGE, TEXT, CALL, MESSAGE, TEXT, CALL)
    assert [entry["type"] for entry in blocks(reducer)] == ["text", "tool-call"]
    assert not reducer.needs_resync


def test_an_end_of_an_unknown_message_parks() -> None:
    assert folded(TURN, MESSAGE, {"type": "message.end", "id": "ghost"}).needs_resync


def test_an_end_of_a_removed_message_parks() -> None:
    assert folded(TURN, MESSAGE, {"type": "message.remove", "id": "m"}, END).needs_resync


def test_a_second_end_still_lands_its_usage() -> None:
    reducer = folded(TURN, MESSAGE, END, {**END, "usage": {"totalTokens": 1}})
    assert messages(reducer)[0]["usage"] == {"totalTokens": 1}


def test_an_end_without_usage_keeps_an_earlier_one() -> None:
    reducer = folded(TURN, MESSAGE, {**END, "usage": {"totalTokens": 1}}, END)
    assert messages(reducer)[0]["usage"] == {"totalTokens": 1}


def test_a_sealed_newest_message_does_not_hand_the_pointer_back() -> None:
    reducer = folded(TURN, MESSAGE, {**MESSAGE, "id": "m2"}, {"type": "message.end", "id": "m2"}, TEXT)
    assert reducer.needs_resync


def test_a_removal_of_another_message_leaves_the_pointer() -> None:
    reducer = folded(TURN, MESSAGE, {**MESSAGE, "id": "m2"}, {"type": "message.remove", "id": "m"}, block(IMAGE))
    assert [(message["id"], message["content"]) for message in messages(reducer)] == [("m2", [IMAGE])]


def test_a_removal_goes_back_past_sealed_and_removed_messages() -> None:
    starts = [{**MESSAGE, "id": f"m{index}"} for index in range(4)]
    reducer = folded(TURN, *starts, {"type": "message.end", "id": "m2"}, {"type": "message.remove", "id": "m1"})
    push(reducer, {"type": "message.remove", "id": "m3"}, block(IMAGE))
    assert [(message["id"], len(message["content"])) for message in messages(reducer)] == [("m0", 1), ("m2", 0)]


def test_a_removal_goes_back_within_its_candidate() -> None:
    other = {**MESSAGE, "id": "c1", "candidateIndex": 1}
    reducer = folded(TURN, MESSAGE, other, {"type": "message.remove", "id": "c1"}, block(IMAGE, candidateIndex=1))
    assert reducer.needs_resync
    assert messages(reducer)[0]["content"] == []


def test_removing_all_frees_ids_and_leaves_other_turns() -> None:
    user = {**MESSAGE, "id": "u1", "turnId": "u", "role": "user"}
    reducer = folded(TURN, {**TURN, "turnId": "u"}, user, MESSAGE, TEXT, CALL)
    push(reducer, {"type": "message.remove", "id": "*", "turnId": "t"}, {**MESSAGE, "id": "m2"}, TEXT, CALL)
    assert [message["id"] for message in messages(reducer)] == ["u1", "m2"]
    assert not reducer.needs_resync


def test_removing_all_of_an_unknown_turn_changes_nothing() -> None:
    reducer = folded(TURN, MESSAGE, {"type": "message.remove", "id": "*", "turnId": "ghost"})
    assert not reducer.needs_resync
    assert len(messages(reducer)) == 1


def test_a_removed_message_takes_its_partial_result_along() -> None:
    partial = {"type": "tool.done", "turnId": "t", "toolCallId": "c", "content": [], "more": True}
    reducer = folded(TURN, MESSAGE, CALL, {**partial, "messageId": "R"}, {"type": "message.remove", "id": "R"})
    push(reducer, {"type": "tool.done", "turnId": "t", "toolCallId": "c", "content": [], "messageId": "R2"})
    assert [message["id"] for message in messages(reducer)] == ["m", "R2"]
    assert "preliminary" not in blocks(reducer, 1)[0]


def test_metadata_merges_by_key() -> None:
    first = {"type": "message.metadata", "messageId": "m", "metadata": {"a": {"x": 1}, "b": 1}}
    second = {"type": "message.metadata", "turnId": "t", "metadata": {"a": {"y": 2}}}
    assert messages(folded(TURN, MESSAGE, first, second))[0]["metadata"] == {"a": {"y": 2}, "b": 1}


def test_metadata_without_a_name_means_the_open_message_of_candidate_zero() -> None:
    second = {**MESSAGE, "id": "m1", "candidateIndex": 1}
    reducer = folded(TURN, MESSAGE, second, {"type": "message.metadata", "metadata": {"k": 1}})
    assert [message.get("metadata") for message in messages(reducer)] == [{"k": 1}, None]


def test_metadata_without_a_name_needs_an_unsealed_message() -> None:
    assert folded(TURN, MESSAGE, END, {"type": "message.metadata", "metadata": {"k": 1}}).needs_resync


def test_a_block_goes_to_the_open_message_that_it_names() -> None:
    reducer = folded(TURN, MESSAGE, {**MESSAGE, "id": "m2"}, block(IMAGE, messageId="m", turnId="t"), block(IMAGE))
    assert [len(message["content"]) for message in messages(reducer)] == [1, 1]


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([MESSAGE, END, {**MESSAGE, "id": "m2"}, block(IMAGE, messageId="m", turnId="t")], id="sealed"),
        pytest.param([MESSAGE, block(IMAGE, messageId="ghost", turnId="t")], id="unknown"),
        pytest.param([MESSAGE, {**TURN, "turnId": "u"}, block(IMAGE, messageId="m", turnId="u")], id="of another turn"),
        pytest.param([MESSAGE, DONE, block(IMAGE, messageId="m")], id="of a closed turn"),
    ],
)
def test_a_block_that_names_a_wrong_message_parks(members: list[dict[str, Any]]) -> None:
    reducer = folded(TURN, *members)
    assert reducer.needs_resync
    assert all(message["content"] == [] for message in messages(reducer))


def test_two_open_turns_make_a_block_without_owner_park() -> None:
    reducer = folded(TURN, MESSAGE, {**TURN, "turnId": "u"}, block(IMAGE))
    assert reducer.needs_resync
    assert "2 turns are open" in (reducer.resync_reason or "")


def test_a_transient_data_block_is_skipped_and_replaces_nothing() -> None:
    kept = {"type": "data", "name": "n", "id": "d", "data": 1}
    reducer = folded(TURN, MESSAGE, block(kept), block({**kept, "data": 2, "transient": True}))
    assert blocks(reducer) == [kept]


def test_text_and_data_ids_are_kept_apart() -> None:
    data = {"type": "data", "name": "n", "id": "x", "data": 1}
    reducer = folded(TURN, MESSAGE, TEXT, block(data), {**CALL, "toolCallId": "x"})
    assert [entry["type"] for entry in blocks(reducer)] == ["text", "data", "tool-call"]
    assert not reducer.needs_resync
