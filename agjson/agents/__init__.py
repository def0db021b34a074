"""Agents: one input in, the events of one turn out; their threads, and what they need to continue."""

from agjson.agents.agent import Agent
from agjson.agents.continuations import Continuations, MemoryContinuations
from agjson.agents.errors import (
    InputError,
    MessageConflictError,
    ThreadBusyError,
    ThreadPausedError,
    UnknownAskError,
    UnknownContinuationError,
    UnknownThreadError,
    UnknownToolCallError,
)
from agjson.agents.intake import OnPaused
from agjson.agents.invocation import Invocation, NormalizerSettings
from agjson.agents.recovery import Recovered, recover
from agjson.agents.shared import LoggedTurn, SharedThreadStore
from agjson.agents.source import CallbackSource, SourceClosed
from agjson.agents.store import MemoryThreadStore, ThreadLease, ThreadStore
from agjson.agents.thread import Pending, Thread

__all__ = [
    "Agent",
    "CallbackSource",
    "Continuations",
    "InputError",
    "Invocation",
    "LoggedTurn",
    "MemoryContinuations",
    "MemoryThreadStore",
    "MessageConflictError",
    "NormalizerSettings",
    "OnPaused",
    "Pending",
    "Recovered",
    "SharedThreadStore",
    "SourceClosed",
    "Thread",
    "ThreadBusyError",
    "ThreadLease",
    "ThreadPausedError",
    "ThreadStore",
    "UnknownAskError",
    "UnknownContinuationError",
    "UnknownThreadError",
    "UnknownToolCallError",
    "recover",
]
