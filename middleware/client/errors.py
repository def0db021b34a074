"""What goes wrong between a client and its server, told apart by what the caller can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agjson.errors import AgJSONError

__all__ = ["ClientError", "ConnectionLostError", "RequestError", "StreamError"]


class ClientError(AgJSONError):
    """A request or a stream failed. What was received before stays with the `Turn`.

    Attributes:
        message: what is wrong, in words; of a server's own text at most a few hundred characters.
        code: the server's code, or one of this client's, in snake case; each subclass lists its own.
        status: the HTTP status; None: there was no answer.
        path: the JSON path of what is wrong in the input or in an event; None: nothing in particular.
        retriable: the same call may succeed later.
        retry_after: how many seconds the server asked to wait; None: it did not say.
        details: the further members of the server's error object, such as ``turnId`` and ``askIds``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        path: str | None = None,
        retriable: bool = False,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        words = message if path is None else f"{message} - at `{path}`"
        super().__init__(f"{words} ({code})" if status is None else f"{words} ({code}, status {status})")
        self.message = message
        self.code = code
        self.status = status
        self.path = path
        self.retriable = retriable
        self.retry_after = retry_after
        self.details: dict[str, Any] = dict(details or {})


class RequestError(ClientError):
    """The server answered, and the answer is no.

    The code is the server's, such as ``thread_busy`` or ``invalid_input``. Where its answer has none, it is
    ``http_<status>``; ``redirected`` is a redirect that is not followed, to another server or in a circle;
    ``invalid_address`` is a request that was not sent, as no address can hold its ids, ``invalid_header`` one with a
    header that HTTP does not allow; ``turn_id_used`` is an input whose ``turn_id`` the thread has for another one. What
    a server refuses for now is tried again first, and told when the attempts are used up.
    """


class ConnectionLostError(ClientError):
    """The connection could not be made, or broke and could not be taken up again.

    Codes:

    * ``unreachable``: no request of this call got through; nothing was run.
    * ``retries_used_up``: every attempt to go on failed; the turn may be going on at the server.
    * ``not_resumable``: the stream broke before its end, and the source has nothing to take it up with.
    * ``fate_unknown``: the connection broke before any event, and whether the server has run the input cannot be found
      out. Sending it again could run it twice.
    * ``interrupted``: reading was cancelled, or failed, and then events are asked for again.
    * ``turn_lost``: the server does not know the turn, or not how it ended.
    """


class StreamError(ClientError):
    """What came is no stream of AgJSON events.

    Codes: ``not_a_stream`` (another media type, or no answer body where one is needed), ``malformed_event`` (``path``
    names the place in the event), ``malformed_answer`` (an answer in JSON that is not what it should be), ``too_large``
    (more bytes than ``max_bytes``), ``unsupported_encoding`` (compressed, and neither by gzip nor by deflate, or more
    than once).
    """
