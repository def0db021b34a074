"""Items as messages that the Messages API takes: roles in turn, results behind their calls, nothing left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agjson.adapters.anthropic._api import REASONING_TYPES
from agjson.adapters.anthropic._carry import CALLER
from agjson.adapters.anthropic._items import Call, Group, Item
from agjson.adapters.anthropic._out_blocks import plain_text
from agjson.adapters.anthropic._repair import RepairCode, Repairs
from agjson.errors import ReplayError

__all__ = ["arrange", "lifted_system"]

_OPENING = "(The assistant speaks first.)"


def arrange(items: Sequence[Item], repairs: Repairs) -> list[dict[str, Any]]:
    """The native messages.

    Args:
        items: the items; those that do not go back are marked.
        repairs: where they are noted.

    Raises:
        ReplayError: a result is missing and may not be added.
    """
    types = {item.type for item in items}
    if "compaction" in types:
        _drop_compacted(items, repairs)
    groups, moved = _build(items)
    if "fallback" in types:
        _drop_declined(groups, repairs)
        groups, moved = _build(items)
    while _drop_one_kind(groups, repairs):
        groups, moved = _build(items)
    for item in moved:
        repairs.note("result_moved", item.path, "a result must follow its call at once")
    _trim_prefill(groups, repairs)
    last = groups[-1] if groups else None
    messages = [_message(group, repairs, is_last=group is last) for group in groups]
    if groups and groups[0].role == "assistant" and groups[0].items[0].type != "compaction":
        repairs.note("user_added", groups[0].items[0].path, "the user speaks first")
        messages.insert(0, {"role": "user", "content": [plain_text(_OPENING)]})
    return messages


def lifted_system(items: Sequence[Item], repairs: Repairs) -> list[dict[str, Any]]:
    """The blocks of system messages that do not stay in their place, for the ``system`` argument.

    Args:
        items: the items, after `arrange`.
        repairs: where they are noted.
    """
    blocks: list[dict[str, Any]] = []
    spoken = False
    for item in items:
        if item.role != "system":
            spoken = True
        elif not item.kept:
            if spoken:
                repairs.note(
                    "system_moved", item.path, "a system message inside the conversation is lifted to its head"
                )
            blocks.extend(item.blocks)
    return blocks


def _build(items: Sequence[Item]) -> tuple[list[Group], list[Item]]:
    """Group what one role says at a stretch, results first; also the results that stand elsewhere than they did."""
    groups: list[Group] = []
    moved: list[Item] = []
    # The last group of anybody but the assistant; results of client tools do not count.
    others = -1
    answered = False
    for item in items:
        if not item.live or (item.role == "system" and not item.kept):
            continue
        call, last = item.call, groups[-1] if groups else None
        if call is not None and item.result:
            home = call.group
            assert home is not None
            if not call.server:
                # What the assistant says after a result is a message of its own.
                answered = True
                if home is not last:
                    moved.append(item)
                continue
            if item.apart or others > home.place:
                home.items.insert(home.items.index(call.item) + 1, item)
                if not item.apart:
                    moved.append(item)
                continue
        if last is None or last.role != item.role or item.role == "system" or (answered and item.role == "assistant"):
            last = Group(item.role, len(groups))
            groups.append(last)
            if last.role != "assistant":
                others = last.place
            answered = False
        last.items.append(item)
        if call is not None and not item.result:
            call.group = last
            if not call.server:
                if last.calls is None:
                    last.calls = []
                last.calls.append(call)
    return _with_results(groups), moved


def _with_results(groups: Sequence[Group]) -> list[Group]:
    """A user message behind each message with client calls, which begins with their results."""
    whole: list[Group] = []
    calls: list[Call] | None = None
    for group in groups:
        if calls and group.role != "user":
            whole.append(Group("user", answers=calls))
        elif calls:
            group.answers = calls
        whole.append(group)
        calls = group.calls
    if calls:
        whole.append(Group("user", answers=calls))
    return whole


def _drop_compacted(items: Sequence[Item], repairs: Repairs) -> None:
    """A signed compaction stands first, in place of the messages that it sums up."""
    last = max(
        (
            index
            for index, item in enumerate(items)
            if item.type == "compaction" and item.block.get("signature") and item.live
        ),
        default=0,
    )
    gone = [item for item in items[:last] if item.live and item.role != "system"]
    for item in gone:
        item.live = False
        if item.call is not None and not item.result and item.call.result is not None:
            item.call.result.live = False
    if gone:
        repairs.note("compacted_dropped", items[last].path, "a signed compaction stands for everything before it")


def _drop_declined(groups: Sequence[Group], repairs: Repairs) -> None:
    """What a model said that then declined, as far as it may not go back, and the seams of a feature that is not on."""
    for group in groups:
        seams = [index for index, item in enumerate(group.items) if item.type == "fallback"]
        for item in group.items[: seams[-1]] if seams else ():
            call = item.call
            unpaired = call is not None and not item.result and (not call.server or not call.answered)
            if unpaired or item.type in REASONING_TYPES:
                _drop(item, "declined_dropped", "the model that said this declined; another one went on", repairs)
        if not repairs.options.fallbacks:
            for index in seams:
                item = group.items[index]
                _drop(item, "fallback_dropped", "the request does not ask for server-side fallbacks", repairs)


def _drop(item: Item, code: RepairCode, message: str, repairs: Repairs) -> None:
    """Leave an item out; with a call its result."""
    if not item.live:
        return
    item.live = False
    repairs.note(code, item.path, message)
    call = item.call
    if call is not None and not item.result and call.answered:
        assert call.result is not None
        call.result.live = False
        if not call.added:
            repairs.note("result_dropped", call.result.path, "its call was left out")


def _drop_one_kind(groups: Sequence[Group], repairs: Repairs) -> bool:
    """Leave out what the API refuses without its other half, one kind of it at a time; whether anything changed."""
    before = len(repairs.made)
    for drop in (_drop_ending_reasoning, _lift_misplaced, _drop_server_calls, _drop_callers):
        if drop(groups, repairs) or len(repairs.made) > before:
            return True
    return False


def _drop_ending_reasoning(groups: Sequence[Group], repairs: Repairs) -> None:
    for group in groups:
        for item in reversed(group.items):
            if item.type not in REASONING_TYPES:
                break
            _drop(item, "trailing_reasoning_dropped", "a message of the assistant may not end in reasoning", repairs)


def _lift_misplaced(groups: Sequence[Group], repairs: Repairs) -> bool:
    found = [group for index, group in enumerate(groups) if group.role == "system" and not _is_placed(groups, index)]
    for group in found:
        group.items[0].kept = False
    return bool(found)


def _drop_server_calls(groups: Sequence[Group], repairs: Repairs) -> None:
    """Leave out calls that the provider ran and whose result is missing, and the calls that their code made."""
    calls = _calls(groups)
    unanswered = [call for call in calls if call.server and not call.answered]
    if not unanswered:
        return
    made: dict[object, list[Call]] = {}
    for call in calls:
        if call.program is not None:
            made.setdefault(call.program, []).append(call)
    waiting = _waiting(groups, made)
    for call in unanswered:
        if call not in waiting:
            reason = "a call that the provider ran may not stand without its result"
            _drop(call.item, "server_call_dropped", reason, repairs)
            for other in made.get(call.id, ()):
                _drop(other.item, "server_call_dropped", "the code that made this call was left out", repairs)


def _drop_callers(groups: Sequence[Group], repairs: Repairs) -> None:
    """Take the maker off a call that no running code can have made."""
    if all(call.program is None for group in groups for call in group.calls or ()):
        return
    running: set[str] = set()
    for group in groups:
        for item in group.items:
            call = item.call
            if call is None:
                continue
            if call.server:
                (running.discard if item.result else running.add)(call.id)
            elif call.program is not None and call.program not in running:
                del item.block[CALLER]
                repairs.note("caller_dropped", item.path, "the code that made this call does not run where it stands")


def _calls(groups: Sequence[Group]) -> list[Call]:
    return [item.call for group in groups for item in group.items if item.call is not None and not item.result]


def _is_placed(groups: Sequence[Group], index: int) -> bool:
    """Whether a system message stands where the API takes one: behind the user, before the assistant or at the end."""
    after = groups[index + 1].role if index + 1 < len(groups) else "assistant"
    return index > 0 and groups[index - 1].role == "user" and after == "assistant"


def _waiting(groups: Sequence[Group], made: Mapping[object, list[Call]]) -> set[Call]:
    """The calls that may stand without result: at the end of a paused turn, or while their code waits for a client."""
    found: set[Call] = set()
    for group in reversed(groups):
        if group.role != "assistant" and group.items:
            break
        found.update(call for call in _calls([group]) if call.server and call.id in made)
    for item in reversed(groups[-1].items if groups and groups[-1].role == "assistant" else ()):
        call = item.call
        if call is None or not call.server or item.result or call.answered or call.cut_off:
            break
        found.add(call)
    return found


def _trim_prefill(groups: Sequence[Group], repairs: Repairs) -> None:
    if not groups or groups[-1].role != "assistant":
        return
    last = groups[-1].items[-1]
    text = last.block.get("text")
    if last.type == "text" and isinstance(text, str) and text != text.rstrip():
        last.block["text"] = text.rstrip()
        repairs.note("prefill_trimmed", last.path, "words for the assistant to go on with may not end in white space")


def _message(group: Group, repairs: Repairs, *, is_last: bool) -> dict[str, Any]:
    if group.role == "system":
        (item,) = group.items
        content: Any = item.blocks[0]["text"] if item.string else list(item.blocks)
        return {**(item.fields or {}), "role": "system", **({"content": content} if content else {})}
    blocks = [_answer(call, repairs, is_last=is_last) for call in group.answers or ()]
    blocks += [item.block for item in group.items]
    if len(blocks) == 1 and group.items and group.items[0].string and blocks[0].keys() == {"type", "text"}:
        return {"role": group.role, "content": blocks[0]["text"]}
    return {"role": group.role, "content": blocks}


def _answer(call: Call, repairs: Repairs, *, is_last: bool) -> dict[str, Any]:
    """The result of a client call; one that had to be added is noted, or refused."""
    assert call.result is not None
    if call.added:
        missing = repairs.options.missing_results
        if missing == "refuse" or (missing == "refuse_last" and is_last):
            words = f"call {call.block.tool_call_id!r} has no result: answer it, or allow missing_results='add'"
            raise ReplayError(words, call.path)
        repairs.note("result_added", call.path, "the call has no result; the model reads that it was interrupted")
    return call.result.block
