"""Items as messages that the Messages API takes: roles in turn, results behind their calls, nothing left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agjson.adapters.anthropic._api import REASONING_TYPES
from agjson.adapters.anthropic._carry import CALLER
from agjson.adapters.anthropic._items import Call, Group, Item
from agjson.adapters.anthropic._out_blocks import plain_text
from agjson.adapters.anthropic._out_tools import added_result
from agjson.adapters.anthropic._repair import Ledger, RepairCode
from agjson.errors import ReplayError

__all__ = ["arrange", "lifted_system"]

_OPENING = "(The assistant speaks first.)"


def arrange(items: Sequence[Item], ledger: Ledger) -> list[dict[str, Any]]:
    """The native messages.

    Args:
        items: the items; those that do not go back are marked.
        ledger: where repairs are noted.

    Raises:
        ReplayError: a result is missing and may not be added.
    """
    _drop_compacted(items, ledger)
    _drop_declined(_build(items)[0], ledger)
    groups, moved = _build(items)
    while _drop_one_kind(groups, ledger):
        groups, moved = _build(items)
    for item in moved:
        ledger.note("result_moved", item.path, "a result must follow its call at once")
    _trim_prefill(groups, ledger)
    last = len(groups) - 1
    messages = [
        _message(group, groups[index - 1] if index else None, ledger, is_last=index == last)
        for index, group in enumerate(groups)
    ]
    if groups and groups[0].role == "assistant" and groups[0].items[0].block.get("type") != "compaction":
        ledger.note("user_added", groups[0].items[0].path, "the user speaks first")
        messages.insert(0, {"role": "user", "content": [plain_text(_OPENING)]})
    return messages


def lifted_system(items: Sequence[Item], ledger: Ledger) -> list[dict[str, Any]]:
    """The blocks of system messages that do not stay in their place, for the ``system`` argument.

    Args:
        items: the items, after `arrange`.
        ledger: where repairs are noted.
    """
    blocks: list[dict[str, Any]] = []
    spoken = False
    for item in items:
        if item.role != "system":
            spoken = True
        elif not item.kept:
            if spoken:
                ledger.note("system_moved", item.path, "a system message inside the conversation is lifted to its head")
            blocks.extend(item.blocks)
    return blocks


def _build(items: Sequence[Item]) -> tuple[list[Group], list[Item]]:
    """Group what one role says at a stretch, with each result behind its call; also the results that had to move."""
    groups: list[Group] = []
    results: dict[Group, list[Item]] = {}
    late: list[Item] = []
    moved: list[Item] = []
    # Where each group stands, and the last one of anybody but the assistant; results of client tools do not count.
    places: dict[Group, int] = {}
    others = -1
    for item in items:
        if item.call is not None and not item.result:
            item.call.group = None
    answered = False
    for item in items:
        if not item.live or (item.role == "system" and not item.kept):
            continue
        call, last = item.call, groups[-1] if groups else None
        home = None if call is None else call.group
        if call is not None and item.result and not call.server:
            if home is None:
                late.append(item)
            else:
                results.setdefault(home, []).append(item)
            if home is None or home is not last:
                moved.append(item)
            else:
                # What the assistant says after a result is a message of its own.
                answered = True
            continue
        if call is not None and item.result and home is not None and others > places[home]:
            home.items.insert(_place(home, call) + 1, item)
            moved.append(item)
            continue
        if last is None or last.role != item.role or item.role == "system" or (answered and item.role == "assistant"):
            last = Group(item.role)
            places[last] = len(groups)
            groups.append(last)
            if last.role != "assistant":
                others = places[last]
            answered = False
        last.items.append(item)
        if call is not None and not item.result:
            call.group = last
    for item in late:
        if item.call is not None and item.call.group is not None:
            results.setdefault(item.call.group, []).append(item)
    return _with_results(groups, results), moved


def _place(group: Group, call: Call) -> int:
    return next(index for index, item in enumerate(group.items) if item is call.item)


def _with_results(groups: Sequence[Group], results: dict[Group, list[Item]]) -> list[Group]:
    """A user message behind each message with client calls, which begins with their results."""
    whole: list[Group] = []
    for group in groups:
        before = whole[-1] if whole else None
        if before is not None and _client_calls(before):
            answers = group if group.role == "user" else Group("user")
            answers.results = results.get(before, [])
            whole.append(answers)
            if answers is group:
                continue
        whole.append(group)
    if whole and _client_calls(whole[-1]):
        whole.append(Group("user", results=results.get(whole[-1], [])))
    return whole


def _client_calls(group: Group) -> list[Call]:
    return [item.call for item in group.items if item.call is not None and not item.call.server and not item.result]


def _drop_compacted(items: Sequence[Item], ledger: Ledger) -> None:
    """A signed compaction stands first, in place of the messages that it sums up."""
    last = max(
        (
            index
            for index, item in enumerate(items)
            if item.block.get("type") == "compaction" and item.block.get("signature") and item.live
        ),
        default=0,
    )
    gone = [item for item in items[:last] if item.live and item.role != "system"]
    for item in gone:
        item.live = False
        if item.call is not None and not item.result and item.call.result is not None:
            item.call.result.live = False
    if gone:
        ledger.note("compacted_dropped", items[last].path, "a signed compaction stands for everything before it")


def _drop_declined(groups: Sequence[Group], ledger: Ledger) -> None:
    """What a model said that then declined, as far as it may not go back, and the seams of a feature that is not on."""
    for group in groups:
        seams = [index for index, item in enumerate(group.items) if item.block.get("type") == "fallback"]
        for item in group.items[: seams[-1]] if seams else ():
            call = item.call
            unpaired = call is not None and not item.result and (not call.server or not call.answered)
            if unpaired or item.block.get("type") in REASONING_TYPES:
                _drop(item, "declined_dropped", "the model that said this declined; another one went on", ledger)
        if not ledger.options.fallbacks:
            for index in seams:
                item = group.items[index]
                _drop(item, "fallback_dropped", "the request does not ask for server-side fallbacks", ledger)


def _drop(item: Item, code: RepairCode, message: str, ledger: Ledger) -> None:
    """Leave an item out; with a call its result."""
    if not item.live:
        return
    item.live = False
    ledger.note(code, item.path, message)
    result = item.call.result if item.call is not None and not item.result else None
    if result is not None and result.live:
        result.live = False
        ledger.note("result_dropped", result.path, "its call was left out")


def _drop_one_kind(groups: Sequence[Group], ledger: Ledger) -> bool:
    """Leave out what the API refuses without its other half, one kind of it at a time; whether anything changed."""
    before = len(ledger.repairs)
    for drop in (_drop_ending_reasoning, _lift_misplaced, _drop_server_calls, _drop_callers):
        if drop(groups, ledger) or len(ledger.repairs) > before:
            return True
    return False


def _drop_ending_reasoning(groups: Sequence[Group], ledger: Ledger) -> None:
    for group in groups:
        for item in _ending_reasoning(group):
            _drop(item, "trailing_reasoning_dropped", "a message of the assistant may not end in reasoning", ledger)


def _lift_misplaced(groups: Sequence[Group], ledger: Ledger) -> bool:
    found = [group for index, group in enumerate(groups) if group.role == "system" and not _is_placed(groups, index)]
    for group in found:
        group.items[0].kept = False
    return bool(found)


def _drop_server_calls(groups: Sequence[Group], ledger: Ledger) -> None:
    """Leave out calls that the provider ran and whose result is missing, and the calls that their code made."""
    reason = "a call that the provider ran may not stand without its result"
    made: dict[object, list[Call]] = {}
    for call in _calls(groups):
        if call.program is not None:
            made.setdefault(call.program, []).append(call)
    waiting = _waiting(groups, made)
    for call in _calls(groups):
        if call.server and not call.answered and call not in waiting and call.item is not None:
            _drop(call.item, "server_call_dropped", reason, ledger)
            for other in made.get(call.id, ()):
                if other.item is not None:
                    _drop(other.item, "server_call_dropped", "the code that made this call was left out", ledger)


def _drop_callers(groups: Sequence[Group], ledger: Ledger) -> None:
    """Take the maker off a call that no running code can have made."""
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
                ledger.note("caller_dropped", item.path, "the code that made this call does not run where it stands")


def _calls(groups: Sequence[Group]) -> list[Call]:
    return [item.call for group in groups for item in group.items if item.call is not None and not item.result]


def _ending_reasoning(group: Group) -> list[Item]:
    found: list[Item] = []
    for item in reversed(group.items):
        if item.block.get("type") not in REASONING_TYPES:
            break
        found.append(item)
    return found


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


def _trim_prefill(groups: Sequence[Group], ledger: Ledger) -> None:
    if not groups or groups[-1].role != "assistant":
        return
    last = groups[-1].items[-1]
    text = last.block.get("text")
    if last.block.get("type") == "text" and isinstance(text, str) and text != text.rstrip():
        last.block["text"] = text.rstrip()
        ledger.note("prefill_trimmed", last.path, "words for the assistant to go on with may not end in white space")


def _message(group: Group, before: Group | None, ledger: Ledger, *, is_last: bool) -> dict[str, Any]:
    if group.role == "system":
        (item,) = group.items
        content: Any = item.blocks[0]["text"] if item.string else item.blocks
        return {**item.fields, "role": "system", **({"content": content} if content else {})}
    blocks = [item.block for item in group.results]
    if before is not None:
        blocks += [_added(call, ledger, is_last=is_last) for call in _client_calls(before) if not call.answered]
    blocks += [item.block for item in group.items]
    if len(blocks) == 1 and group.items and group.items[0].string and blocks[0].keys() == {"type", "text"}:
        return {"role": group.role, "content": blocks[0]["text"]}
    return {"role": group.role, "content": blocks}


def _added(call: Call, ledger: Ledger, *, is_last: bool) -> dict[str, Any]:
    missing = ledger.options.missing_results
    if missing == "refuse" or (missing == "refuse_last" and is_last):
        raise ReplayError(
            f"call {call.block.tool_call_id!r} has no result: answer it, or allow missing_results='add'", call.path
        )
    ledger.note("result_added", call.path, "the call has no result; the model reads that it was interrupted")
    return added_result(call.id, call.toolset)
