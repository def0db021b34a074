"""Histories made shorter, in whole groups (loop contract, "Reasoning-bound calls", row "Compaction pair integrity").

A strategy takes the groups of a history and returns those that stay. What every strategy here keeps: system messages,
the last summary of a provider, the last words of the user, the newest group, and calls that have no result yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from msgspec.structs import replace as changed

from agjson.transcript.grouping import Group, groups
from agjson.types import UNSET, AgBlock, AgMessage, TextBlock, ToolResultBlock

__all__ = [
    "Composed",
    "DropToolCalls",
    "DropToolResults",
    "SlidingWindow",
    "Strategy",
    "TokenBudget",
    "compact",
]


class Strategy(Protocol):
    """Chooses what stays of a history; any callable of this form is one."""

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]:
        """The groups that stay.

        Args:
            groups: the groups of a history, in order.
        """
        ...


def compact(messages: Sequence[AgMessage], strategy: Strategy) -> list[AgMessage]:
    """A shorter history: groups of it, each whole (row "Compaction pair integrity").

    Args:
        messages: the history; it is only read.
        strategy: what stays.

    Returns:
        The messages that stay, in order. Those that a strategy did not change are the same objects.
    """
    placed = [each for group in strategy(groups(messages)) for each in zip(group.places, group.messages, strict=True)]
    placed.sort(key=lambda each: each[0])
    return [message for _, message in placed]


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Keeps the newest groups.

    The window begins with words of the user; where it has none, the user's last words before it stay too.

    Attributes:
        size: how many groups of words or of tools it holds at most.
    """

    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("a window has no negative size")

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]:
        """The newest groups, and what always stays."""
        always = _always(groups)
        left, start = self.size, len(groups)
        while start and left:
            start -= 1
            left -= not groups[start].waits and groups[start].kind in ("user", "assistant", "tools")
        return _from(groups, start, always)


@dataclass(frozen=True, slots=True)
class DropToolResults:
    """Takes the content out of old results of tools; calls and results stay, so that the model knows what it did.

    Results of calls that a provider ran stay as they are: providers take them back only whole.

    Attributes:
        keep: how many of the newest groups with tools keep their results.
        words: what a model reads instead.
    """

    keep: int = 3
    words: str = "The result was left out to save space."

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]:
        """All groups, the older ones without the content of their results."""
        return [
            replace(group, messages=tuple([self._emptied(message, group) for message in group.messages]))
            if old
            else group
            for group, old in _old_tools(groups, self.keep)
        ]

    def _emptied(self, message: AgMessage, group: Group) -> AgMessage:
        hosted = {call.call_id for call in group.occurrences if call.hosted}
        content: list[AgBlock] = [
            changed(block, content=[TextBlock(text=self.words)], structured_content=UNSET)
            if isinstance(block, ToolResultBlock)
            and block.tool_call_id not in hosted
            and block.outcome != "input_required"
            else block
            for block in message.content
        ]
        same = all(new is old for new, old in zip(content, message.content, strict=True))
        return message if same else changed(message, content=content)


@dataclass(frozen=True, slots=True)
class DropToolCalls:
    """Leaves out old groups with tools: reasoning, calls and results together.

    Attributes:
        keep: how many of the newest groups with tools stay.
    """

    keep: int = 3

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]:
        """The groups without the older ones with tools."""
        return [group for group, old in _old_tools(groups, self.keep) if not old]


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Keeps a history within a number of tokens, as the caller counts them.

    What always stays may be more than the limit: then nothing else does.

    Attributes:
        limit: the number of tokens.
        count: how many tokens some messages are; it is asked once for each group, and again for those that `first` has
            changed.
        first: what is tried before whole groups are left out from the oldest on, one after the other while the history
            is over the limit.
    """

    limit: int
    count: Callable[[Sequence[AgMessage]], int]
    first: Sequence[Strategy] = ()

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]:
        """The groups that are within the limit."""
        sizes = _Sizes(self.count)
        for strategy in self.first:
            if sizes.total(groups) <= self.limit:
                return groups
            groups = strategy(groups)
        left = sizes.total(groups)
        if left <= self.limit:
            return groups
        always = _always(groups)
        start = 0
        while start < len(groups) and left > self.limit:
            if start not in always:
                left -= sizes.of(groups[start])
            start += 1
        return _from(groups, start, always)


@dataclass(frozen=True, slots=True)
class Composed:
    """Several strategies, each on what the one before has left.

    Attributes:
        strategies: the strategies in order.
    """

    strategies: Sequence[Strategy]

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]:
        """What the last strategy leaves."""
        for strategy in self.strategies:
            groups = strategy(groups)
        return groups


class _Sizes:
    """Counts each group once."""

    def __init__(self, count: Callable[[Sequence[AgMessage]], int]) -> None:
        self._count = count
        # The messages are held, so that no other tuple can have the same identity.
        self._known: dict[int, tuple[Sequence[AgMessage], int]] = {}

    def of(self, group: Group) -> int:
        messages = group.messages
        known = self._known.get(id(messages))
        if known is None:
            known = self._known[id(messages)] = (messages, self._count(messages))
        return known[1]

    def total(self, groups: Iterable[Group]) -> int:
        return sum(map(self.of, groups))


def _always(groups: Sequence[Group]) -> set[int]:
    """The positions of the groups that always stay."""
    always = {at for at, group in enumerate(groups) if group.kind == "system" or group.waits}
    for kinds in ({"summary"}, {"user"}, {"user", "assistant", "tools", "summary"}):
        always.update([at for at, group in enumerate(groups) if group.kind in kinds][-1:])
    return always


def _from(groups: Sequence[Group], start: int, always: set[int]) -> list[Group]:
    """The groups from a position on, as far as they stand behind words of the user, and those that always stay."""
    spoken = next((at for at in range(start, len(groups)) if groups[at].kind == "user"), start)
    return [group for at, group in enumerate(groups) if at >= spoken or at in always]


def _old_tools(groups: Sequence[Group], keep: int) -> list[tuple[Group, bool]]:
    """Each group, and whether it is one of tools that is older than the newest ones and may be taken apart."""
    tools = [at for at, group in enumerate(groups) if group.kind == "tools"]
    old = set(tools[: max(0, len(tools) - keep)])
    return [(group, at in old and not group.waits) for at, group in enumerate(groups)]
