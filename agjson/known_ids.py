"""The ids that a thread has already, told apart by what bears them (spec §5.0 INV-BLOCK, INV-OWNER)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, fields, replace

from agjson.types import AgReduceResult, DataBlock, ToolCallBlock

__all__ = ["KnownIds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIds(Collection[str]):
    """Every id that the streams of a thread have used: a read-only set that knows the kinds.

    New ids are chosen apart from all of them, whatever their kind. What an event refers to is looked up among its own
    kind: the id of an artifact names no tool call.

    ``|`` joins two of them; ``in``, iteration and ``len`` go over all kinds. Treat the sets as read-only: they are
    shared.

    Attributes:
        turns: nested ones included.
        messages: also those that a tool result made.
        blocks: text and reasoning blocks, and data blocks that have an id.
        calls: tool calls.
        asks: answered ones included.
        artifacts: those that a later delta may add to.
        sources: grounding sources.
        steps: iterations of an agent's loop.
        gone: ids whose bearers are there no more (removed, or replaced by a snapshot): nothing can refer to them.
    """

    turns: Set[str] = frozenset()
    messages: Set[str] = frozenset()
    blocks: Set[str] = frozenset()
    calls: Set[str] = frozenset()
    asks: Set[str] = frozenset()
    artifacts: Set[str] = frozenset()
    sources: Set[str] = frozenset()
    steps: Set[str] = frozenset()
    gone: Set[str] = frozenset()

    @classmethod
    def of(cls, result: AgReduceResult) -> KnownIds:
        """The ids in a fold. Text blocks, reasoning blocks and steps are folded without theirs.

        Args:
            result: the fold.
        """
        messages, blocks, calls = set[str](), set[str](), set[str]()
        for message in result.messages:
            messages.add(message.id)
            for block in message.content:
                if isinstance(block, ToolCallBlock):
                    calls.add(block.tool_call_id)
                elif isinstance(block, DataBlock) and block.id is not None:
                    blocks.add(block.id)
        return cls(
            turns={turn.turn_id for turn in result.turns},
            messages=messages,
            blocks=blocks,
            calls=calls,
            asks={ask.ask_id for turn in result.turns for ask in turn.asks or ()},
            artifacts={artifact.artifact_id for artifact in result.artifacts},
            sources={id for turn in result.turns for id in turn.source_ids or ()},
        )

    @classmethod
    def of_any_kind(cls, ids: Collection[str]) -> KnownIds:
        """Ids whose kinds nobody has noted: each passes for whatever it is used as.

        Args:
            ids: the ids; one that knows its kinds is returned as it is.
        """
        if isinstance(ids, KnownIds):
            return ids
        known = ids if isinstance(ids, Set) else frozenset(ids)
        return cls(**dict.fromkeys(_KINDS, known))

    def narrowed(self, **there: Set[str]) -> KnownIds:
        """The same ids, when it is known which of them still have a bearer; the others are gone.

        Args:
            **there: by kind, the ids that are there; kinds that are not named stay as they are.
        """
        gone = self.gone
        for kind, ids in there.items():
            gone = gone | (getattr(self, kind) - ids)
        return replace(self, gone=gone, **there)

    def __or__(self, other: KnownIds) -> KnownIds:
        """The ids of both; kinds to which the other adds nothing are shared."""
        joined: dict[str, Set[str]] = {}
        for kind in _KINDS:
            mine: Set[str] = getattr(self, kind)
            theirs: Set[str] = getattr(other, kind)
            joined[kind] = mine | theirs if theirs else mine
        return KnownIds(**joined)

    def __contains__(self, id: object) -> bool:
        """Whether anything of the thread bears an id."""
        return (
            id in self.calls
            or id in self.messages
            or id in self.blocks
            or id in self.turns
            or id in self.asks
            or id in self.artifacts
            or id in self.sources
            or id in self.steps
            or id in self.gone
        )

    def __iter__(self) -> Iterator[str]:
        """Every id once."""
        return iter(self._all())

    def __len__(self) -> int:
        """How many different ids there are."""
        return len(self._all())

    def _all(self) -> set[str]:
        return set[str]().union(*(getattr(self, kind) for kind in _KINDS))


_KINDS = tuple(field.name for field in fields(KnownIds))
