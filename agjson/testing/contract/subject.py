"""What the contract suite is told of an adapter."""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agjson.adapter import Adapter
from agjson.agents import Agent
from agjson.jsonable import jsonable
from agjson.types import AgMessage, ToolCallBlock

if TYPE_CHECKING:
    from agjson.testing.contract.scene import Gating

__all__ = ["MakeAgent", "NotApplicable", "Path", "Respond", "Sample", "Subject", "Terminal"]

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands in a native event: names of members and indexes of elements, from the outside in."""

Respond: TypeAlias = Callable[[Any], Iterable[Any]]
"""What a scripted framework does: it takes the native request and gives the native events of the answer.

An iterator that raises is a framework that raises. A rule recognises its own words in the request, so the request has
to be what the framework would have got, in any form that `agjson.jsonable` can read.
"""

MakeAgent: TypeAlias = Callable[[Respond], Agent]
"""Makes the adapter's agent on a framework that answers from a script."""

Terminal: TypeAlias = Literal["turn.done", "turn.error", "turn.abort"]


class NotApplicable(unittest.SkipTest):
    """A rule has nothing to test in a subject; the message says what it lacks.

    pytest and unittest report a test that raises it as skipped.
    """


def _none(native: Any, path: Path) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The native events of one invoke.

    Attributes:
        name: what failures call it.
        natives: the events in order, as plain data; no `HostEnd`.
        terminal: how the turn ends when the host pushes a `HostEnd` behind them.
        code: the code of that `turn.error`.
        whole: the same answer as the framework gives it without streaming, as the normalizer takes it.
        known_ids: ids that the thread had before, where the events name them (the result of an earlier call).
        replays: the messages can be sent back by themselves; False where the framework would refuse them.
        withheld: opaque values that must not go back, such as the signature of reasoning that nothing follows.
        repeats: in a later invoke the same natives say something new; False where the ids in them name messages that
            the thread has then, so that nothing is said again.
    """

    name: str
    natives: Sequence[Any]
    terminal: Terminal = "turn.done"
    code: str | None = None
    whole: Sequence[Any] | None = None
    known_ids: frozenset[str] = frozenset()
    replays: bool = True
    withheld: frozenset[str] = frozenset()
    repeats: bool = True
    _first: tuple[Any, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_first", tuple(copy.deepcopy([jsonable(native) for native in self.natives])))

    @property
    def as_given(self) -> tuple[Any, ...]:
        """The natives as plain data, as they were when the sample was made; not to be changed."""
        return self._first


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One adapter, as the contract suite sees it. A rule that lacks an optional member raises `NotApplicable`.

    Attributes:
        adapter: the adapter's record.
        samples: native streams: together they should show every kind of event that the adapter maps.
        has_ended: whether natives hold the framework's own end of the run, and nothing after it opens it again; always
            False for a framework without one. Rules put natives of any type among those of a sample (null, texts,
            lists, objects of unknown classes), so look at what is a dict alone.
        unknown: natives of types that the adapter does not know, such as a future version may send.
        excused: whether the string at a path of a native event may be missing in the output: kinds that became event
            types, what ``surface.json`` lists as dropped. The default excuses nothing.
        overruled: whether the string at a path counts for nothing once a later event has said it again; excused where
            a rule puts another string in its place, but not where it is the original.
        opaque: the values of a native event that must go back to the framework byte for byte (signatures, encrypted
            reasoning, provider ids).
        rechunk: the same natives with every delta of text cut into pieces of a number of characters, or with 0 joined
            where that is possible.
        lanes: for each native the lane that it belongs to, where natives of different blocks may come interleaved;
            None: nothing passes this native.
        messages_from_native: a native history as messages.
        call: a call of a client tool that a history may hold; rules send results for it.
        agents: makers of the adapter's agent on a scripted framework, by name: one for each kind of client, such as
            blocking and asynchronous.
        gating: how the adapter lets people approve tools; None: it does not.
        budget: how many natives a rule may push for one sample, at most, where it would otherwise be quadratic.

    Raises:
        ValueError: there is no sample, or one without a native event; a name of a sample is not unique; `has_ended` is
            true of no events.
    """

    adapter: Adapter
    samples: Sequence[Sample]
    has_ended: Callable[[Sequence[Any]], bool]
    unknown: Sequence[Any] = ()
    excused: Callable[[Any, Path], bool] = _none
    overruled: Callable[[Any, Path], bool] = _none
    opaque: Callable[[Any], Iterable[str]] | None = None
    rechunk: Callable[[Sequence[Any], int], Sequence[Any]] | None = None
    lanes: Callable[[Sequence[Any]], Sequence[Hashable | None]] | None = None
    messages_from_native: Callable[[Sequence[Any]], Sequence[AgMessage]] | None = None
    call: ToolCallBlock = field(default_factory=lambda: ToolCallBlock(tool_call_id="call_1", name="look_up", input={}))
    agents: Mapping[str, MakeAgent] = field(default_factory=dict[str, MakeAgent])
    gating: Gating | None = None
    budget: int = 15_000

    def __post_init__(self) -> None:
        names = [sample.name for sample in self.samples]
        if not names:
            raise ValueError("a subject has at least one sample: without any, every rule would hold")
        if len(set(names)) < len(names):
            raise ValueError(f"sample names are not unique: {sorted(names)}")
        if any(not sample.natives for sample in self.samples):
            raise ValueError("a sample has at least one native event")
        if self.has_ended(()):
            raise ValueError("has_ended says that no events at all are an end")

    @property
    def name(self) -> str:
        """The adapter's name."""
        return self.adapter.name
