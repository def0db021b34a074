"""agjson: one typed stream out of any agent, one typed input back (AgJSON v1).

The types and the wire are here at once; the fold, the checker, the schemas and the parts that agents are made of load
at their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agjson import types as _types
from agjson.errors import (
    AgJSONError,
    DecodeError,
    EncodeError,
    MissingExtraError,
    ReplayError,
    UnknownTypeError,
    ValidationError,
)
from agjson.types import *  # noqa: F403  # every wire type is public, and `agjson.types.__all__` is the one list of them
from agjson.wire import (
    answer_to,
    decode_answer,
    decode_ask,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    encode,
    extra_fields,
    from_dict,
    ingest_event,
    match_answer,
    to_dict,
)

if TYPE_CHECKING:
    from agjson.agents import (
        Agent,
        CallbackSource,
        Continuations,
        InputError,
        Invocation,
        LoggedTurn,
        MemoryContinuations,
        MemoryThreadStore,
        MessageConflictError,
        NormalizerSettings,
        OnPaused,
        Pending,
        Recovered,
        SharedThreadStore,
        SourceClosed,
        Thread,
        ThreadBusyError,
        ThreadLease,
        ThreadPausedError,
        ThreadStore,
        UnknownAskError,
        UnknownContinuationError,
        UnknownThreadError,
        UnknownToolCallError,
        recover,
    )
    from agjson.checker import Checker, Violation, check
    from agjson.emitter import Emitter, EmitterSettings, ProfileError
    from agjson.fold import FoldViolation, Reducer, Reduction, reduce, snapshot
    from agjson.known_ids import KnownIds
    from agjson.normalizer import HostAbort, HostEnd, HostError, Normalizer
    from agjson.schema import json_schema
    from agjson.stores import SQLiteThreadStore
    from agjson.urls import safe_url

__version__ = "0.1.0"

_LAZY = {
    "Agent": "agjson.agents",
    "CallbackSource": "agjson.agents",
    "Checker": "agjson.checker",
    "Continuations": "agjson.agents",
    "Emitter": "agjson.emitter",
    "EmitterSettings": "agjson.emitter",
    "FoldViolation": "agjson.fold",
    "HostAbort": "agjson.normalizer",
    "HostEnd": "agjson.normalizer",
    "HostError": "agjson.normalizer",
    "InputError": "agjson.agents",
    "Invocation": "agjson.agents",
    "KnownIds": "agjson.known_ids",
    "LoggedTurn": "agjson.agents",
    "MemoryContinuations": "agjson.agents",
    "MemoryThreadStore": "agjson.agents",
    "MessageConflictError": "agjson.agents",
    "Normalizer": "agjson.normalizer",
    "NormalizerSettings": "agjson.agents",
    "OnPaused": "agjson.agents",
    "Pending": "agjson.agents",
    "ProfileError": "agjson.emitter",
    "Recovered": "agjson.agents",
    "Reducer": "agjson.fold",
    "Reduction": "agjson.fold",
    "SQLiteThreadStore": "agjson.stores",
    "SharedThreadStore": "agjson.agents",
    "SourceClosed": "agjson.agents",
    "Thread": "agjson.agents",
    "ThreadBusyError": "agjson.agents",
    "ThreadLease": "agjson.agents",
    "ThreadPausedError": "agjson.agents",
    "ThreadStore": "agjson.agents",
    "UnknownAskError": "agjson.agents",
    "UnknownContinuationError": "agjson.agents",
    "UnknownThreadError": "agjson.agents",
    "UnknownToolCallError": "agjson.agents",
    "Violation": "agjson.checker",
    "check": "agjson.checker",
    "json_schema": "agjson.schema",
    "recover": "agjson.agents",
    "reduce": "agjson.fold",
    "safe_url": "agjson.urls",
    "snapshot": "agjson.fold",
}

__all__ = [
    "AgJSONError",
    "Agent",
    "CallbackSource",
    "Checker",
    "Continuations",
    "DecodeError",
    "Emitter",
    "EmitterSettings",
    "EncodeError",
    "FoldViolation",
    "HostAbort",
    "HostEnd",
    "HostError",
    "InputError",
    "Invocation",
    "KnownIds",
    "LoggedTurn",
    "MemoryContinuations",
    "MemoryThreadStore",
    "MessageConflictError",
    "MissingExtraError",
    "Normalizer",
    "NormalizerSettings",
    "OnPaused",
    "Pending",
    "ProfileError",
    "Recovered",
    "Reducer",
    "Reduction",
    "ReplayError",
    "SQLiteThreadStore",
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
    "UnknownTypeError",
    "ValidationError",
    "Violation",
    "answer_to",
    "check",
    "decode_answer",
    "decode_ask",
    "decode_block",
    "decode_event",
    "decode_input",
    "decode_message",
    "decode_result",
    "encode",
    "extra_fields",
    "from_dict",
    "ingest_event",
    "json_schema",
    "match_answer",
    "recover",
    "reduce",
    "safe_url",
    "snapshot",
    "to_dict",
]
__all__ += _types.__all__


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'agjson' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
