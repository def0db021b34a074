"""Which thing a request is about: ids in paths are percent-encoded, and may hold any character, slashes too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

__all__ = ["METHODS", "Route", "find_route"]


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names.

    Attributes:
        name: the kind of thing.
        thread_id: the thread; ``""`` for what belongs to none.
        turn_id: the turn; ``""`` for what belongs to none.
    """

    name: Literal["root", "thread", "events", "stop", "capabilities"]
    thread_id: str = ""
    turn_id: str = ""


METHODS: Mapping[str, tuple[str, ...]] = {
    "root": ("POST", "OPTIONS"),
    "thread": ("GET", "HEAD", "OPTIONS"),
    "events": ("GET", "HEAD", "OPTIONS"),
    "stop": ("POST", "OPTIONS"),
    "capabilities": ("GET", "HEAD", "OPTIONS"),
}
"""The methods of each kind of thing."""


def find_route(scope: Scope) -> Route | None:
    """Read the path of a request, below the place where the app is mounted; None: there is nothing.

    Args:
        scope: the ASGI scope.
    """
    match _segments(scope):
        case [] | [""]:
            return Route("root")
        case ["capabilities"]:
            return Route("capabilities")
        case ["threads", thread_id] if thread_id:
            return Route("thread", thread_id)
        case ["threads", thread_id, "events"]:
            return Route("events", thread_id)
        case ["threads", thread_id, "turns", turn_id, "stop"]:
            return Route("stop", thread_id, turn_id)
        case _:
            return None


def _segments(scope: Scope) -> list[str] | None:
    """The parts of the path below the mount, decoded after they were split; without the one after a trailing slash."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    # Servers differ in whether the path has the root path in it.
    mounted = root if root and (path == root or path.startswith(f"{root}/")) else ""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        segments = path.split("/")
    else:
        try:
            segments = [
                unquote_to_bytes(segment).decode("utf-8", "surrogatepass")
                for segment in raw.partition(b"?")[0].split(b"/")
            ]
        except UnicodeDecodeError:
            return None
    below = segments[mounted.count("/") + 1 :]
    return below[:-1] if len(below) > 1 and not below[-1] else below
