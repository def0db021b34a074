"""The Messages API of Anthropic, plain and beta: events in, AgJSON out, and back (spec §8, §10).

The provider's client is not imported: everything works on its objects and on plain data alike.
"""

from __future__ import annotations

from functools import partial

from agjson.adapter import Adapter
from agjson.adapters.anthropic._recorded import recorded
from agjson.adapters.anthropic.agent import AnthropicAgent
from agjson.adapters.anthropic.inbound import AnthropicCall, approved_calls, to_native
from agjson.adapters.anthropic.messages import (
    NativeMessages,
    Repair,
    RepairCode,
    messages_from_native,
    messages_to_native,
)
from agjson.adapters.anthropic.normalizer import AnthropicNormalizer

__all__ = [
    "ADAPTER",
    "AnthropicAgent",
    "AnthropicCall",
    "AnthropicNormalizer",
    "NativeMessages",
    "Repair",
    "RepairCode",
    "approved_calls",
    "messages_from_native",
    "messages_to_native",
    "to_native",
]

ADAPTER = Adapter(
    name="anthropic",
    # A file may hold the requests of a whole tool loop; its end is pushed as a `HostEnd`.
    normalizer=partial(AnthropicNormalizer, multi=True),
    recorded=recorded,
    to_native=to_native,
    messages_to_native=messages_to_native,
)
"""The adapter for tools that are told its name."""
