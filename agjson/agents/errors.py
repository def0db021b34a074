"""Why an agent does not take an input; each is raised before the first event of the run (spec §3, §7)."""

from __future__ import annotations

from collections.abc import Sequence

from agjson.errors import AgJSONError

__all__ = [
    "InputError",
    "MessageConflictError",
    "ThreadBusyError",
    "ThreadPausedError",
    "UnknownAskError",
    "UnknownContinuationError",
    "UnknownThreadError",
    "UnknownToolCallError",
]


class InputError(AgJSONError):
    """An input is well-formed, but its thread cannot take it. Nothing was stored, and no model was called.

    Attributes:
        message: what is wrong, without the place.
        path: the JSON path inside the input, ``"$"`` for the whole.
    """

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message if path == "$" else f"{message} - at `{path}`")
        self.message = message
        self.path = path


class UnknownThreadError(InputError):
    """The store has no such thread, so there is nothing that the input could answer."""


class UnknownToolCallError(InputError):
    """A result names a call that waits for none: it was never made, is not the client's, or has its result already."""


class UnknownAskError(InputError):
    """An answer names an ask that waits for none: it was never asked, is answered already, or was given up."""


class UnknownContinuationError(InputError):
    """What the framework needs to continue a paused run is not there: it was used already, or has expired."""


class MessageConflictError(InputError):
    """A message has the id of another one of the thread, but not its content."""


class ThreadBusyError(InputError):
    """Another run of the same thread is still going on."""


class ThreadPausedError(InputError):
    """The thread waits for answers, and a start that gives none would leave them behind.

    Attributes:
        ask_ids: the asks that it waits for.
    """

    def __init__(self, message: str, path: str, ask_ids: Sequence[str]) -> None:
        super().__init__(message, path)
        self.ask_ids = tuple(ask_ids)
