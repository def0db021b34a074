"""LangGraph and LangChain: graphs and agents in, AgJSON out, and back (spec §3.1, §7, §8, §12).

Neither framework is imported before a graph runs or a history goes to it: everything else works on their objects and on
plain data alike.
"""

from __future__ import annotations

from functools import partial

from agjson.adapter import Adapter
from agjson.adapters.langgraph._recorded import recorded
from agjson.adapters.langgraph.agent import LangGraphAgent
from agjson.adapters.langgraph.inbound import LangGraphCall, build_resume, to_native
from agjson.adapters.langgraph.messages import (
    NativeMessages,
    Repair,
    RepairCode,
    messages_from_native,
    messages_to_native,
)
from agjson.adapters.langgraph.normalizer import LangGraphNormalizer

__all__ = [
    "ADAPTER",
    "LangGraphAgent",
    "LangGraphCall",
    "LangGraphNormalizer",
    "NativeMessages",
    "Repair",
    "RepairCode",
    "build_resume",
    "messages_from_native",
    "messages_to_native",
    "to_native",
]

ADAPTER = Adapter(
    name="langgraph",
    normalizer=LangGraphNormalizer,
    recorded=recorded,
    to_native=to_native,
    messages_to_native=partial(messages_to_native, plain=True, hidden=False),
)
"""The adapter for tools that are told its name."""
