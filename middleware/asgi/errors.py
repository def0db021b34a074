"""What a request is refused with: a status, a code for programs, words for people, the JSON path of what is wrong."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from agjson.agents import (
    InputError,
    MessageConflictError,
    ThreadBusyError,
    ThreadPausedError,
    UnknownAskError,
    UnknownContinuationError,
    UnknownThreadError,
    UnknownToolCallError,
)
from agjson.approvals import AnswerError, LedgerError, OtherOwnerError, OtherThreadError, UnissuedAskError
from agjson.errors import AgJSONError, DecodeError, ReplayError
from agjson.wire import encode

__all__ = [
    "Forbidden",
    "Refusal",
    "TurnExistsError",
    "Unauthorized",
    "error_response",
    "new_error_id",
    "refusal_of",
    "refusal_of_host",
    "unknown_thread",
]


class Refusal(AgJSONError):
    """The answer to a request that is not served. A host's ``authorize`` and push policy may raise one.

    Attributes:
        status: the HTTP status, 400 to 599.
        code: what programs go by, in snake_case.
        message: what people read; nothing secret.
        path: the JSON path inside the input; None: it is not about a place in it.
        members: further members of the ``error`` object.
        headers: headers of the response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.path = path
        self.members = members
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON body: ``{"error": {"code", "message", "path"?, ...}}``."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.path is not None:
            error["path"] = self.path
        return {"error": error | self.members}


class Unauthorized(Refusal):
    """The request does not say who it comes from, or not so that the host believes it: 401.

    Args:
        message: what people read.
        challenge: the ``WWW-Authenticate`` header.
    """

    def __init__(self, message: str = "this needs authentication", *, challenge: str = "Bearer") -> None:
        super().__init__(401, "unauthorized", message, headers={"WWW-Authenticate": challenge})


class Forbidden(Refusal):
    """Whoever asks may not do this: 403.

    Args:
        message: what people read.
    """

    def __init__(self, message: str = "this is not allowed") -> None:
        super().__init__(403, "forbidden", message)


class TurnExistsError(InputError):
    """The thread has the turn of this start already: it is a repetition, and must not run a second time.

    Attributes:
        turn_id: the turn.
    """

    def __init__(self, turn_id: str) -> None:
        super().__init__(f"the thread has a turn {turn_id!r} already: attach to it, or choose a new id", "$.turnId")
        self.turn_id = turn_id


_INPUT_ERRORS: tuple[tuple[type[InputError], int, str], ...] = (
    (UnknownThreadError, 404, "unknown_thread"),
    (UnknownToolCallError, 409, "unknown_tool_call"),
    (UnknownAskError, 409, "unknown_ask"),
    (ThreadPausedError, 409, "thread_paused"),
    (MessageConflictError, 409, "message_conflict"),
    (ThreadBusyError, 409, "thread_busy"),
    (UnknownContinuationError, 409, "unknown_continuation"),
    (TurnExistsError, 409, "turn_exists"),
    (InputError, 409, "input_refused"),
)

_STATUS_CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    422: "not_allowed",
    429: "too_many_requests",
    503: "unavailable",
}


def unknown_thread(thread_id: str) -> Refusal:
    """What everybody gets who asks for a thread that is not theirs, whether there is one or not.

    Args:
        thread_id: the thread that was asked for.
    """
    return Refusal(404, "unknown_thread", f"there is no thread {thread_id!r}", path="$.threadId")


def refusal_of(error: Exception) -> Refusal | None:
    """Read an exception as a refusal; None: it is none, but a fault of the server.

    Args:
        error: what was raised before the first event.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InputError):
        members: dict[str, Any] = {}
        if isinstance(error, ThreadPausedError):
            members["askIds"] = list(error.ask_ids)
        elif isinstance(error, TurnExistsError):
            members["turnId"] = error.turn_id
        told = _refused_answer(error)
        if told is not None:
            return told
        for kind, status, code in _INPUT_ERRORS:
            if isinstance(error, kind):
                return Refusal(status, code, error.message, path=error.path, **members)
    if isinstance(error, LedgerError):
        return Refusal(409, "asks_changed", "the asks of the thread were acted on meanwhile: read the thread again")
    if isinstance(error, ReplayError):
        return Refusal(422, "replay_refused", error.message, path=error.path)
    if isinstance(error, DecodeError):
        return Refusal(400, "invalid_input", error.message, path=error.path)
    return None


def _refused_answer(error: InputError) -> Refusal | None:
    """An answer that the ledger refuses; an ask of somebody else, or of another thread, is none."""
    if not isinstance(error, AnswerError):
        return None
    if isinstance(error, (OtherOwnerError, OtherThreadError)):
        path = error.path.rpartition(".")[0]
        error = UnissuedAskError(f"the thread has no ask {error.ask_id!r}", error.ask_id, path)
    return Refusal(409, error.code, error.message, path=error.path, askId=error.ask_id)


def refusal_of_host(error: HTTPException | PermissionError) -> Refusal:
    """Read what a function of the host has raised to refuse a request.

    Args:
        error: what was raised.
    """
    if isinstance(error, PermissionError):
        return Forbidden()
    code = _STATUS_CODES.get(error.status_code, "refused")
    return Refusal(error.status_code, code, str(error.detail), headers=error.headers)


def new_error_id() -> str:
    """A name for one fault, which the client is told and the server's log has."""
    return uuid.uuid4().hex[:16]


def error_response(refusal: Refusal) -> Response:
    """The response that says why.

    Args:
        refusal: why.
    """
    headers = {"Cache-Control": "no-store", **refusal.headers}
    return Response(encode(refusal.body()), refusal.status, headers, "application/json")
