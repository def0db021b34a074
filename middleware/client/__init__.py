"""The other end of the stream: a client of any AgJSON source over HTTP (spec §3, §4).

Raises:
    MissingExtraError: httpx is not installed.
"""

from __future__ import annotations

from agjson.errors import MissingExtraError

try:
    import httpx as _httpx
except ModuleNotFoundError:
    raise MissingExtraError("client", "httpx") from None

from agjson.middleware.client._aio import AgentClient, Turn
from agjson.middleware.client._following import Resync, Skipped, ThreadSnapshot
from agjson.middleware.client._sync import SyncAgentClient, SyncTurn
from agjson.middleware.client.errors import ClientError, ConnectionLostError, RequestError, StreamError

__all__ = [
    "AgentClient",
    "ClientError",
    "ConnectionLostError",
    "RequestError",
    "Resync",
    "Skipped",
    "StreamError",
    "SyncAgentClient",
    "SyncTurn",
    "ThreadSnapshot",
    "Turn",
]

del _httpx
