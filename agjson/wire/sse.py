"""Server-sent events: a reader and a writer of our own, by the parsing rules of the WHATWG EventSource standard.

Reading departs from a browser in three points, each on purpose:

* ``data`` stays bytes. The strict JSON decoder that reads it next refuses invalid UTF-8; a browser would put U+FFFD.
* A stream that ends inside an event says so (`SSEReader.incomplete`, or an error of `read_sse`); a browser drops the
  event in silence.
* Lines and events longer than ``max_bytes`` are an error, so that a peer cannot fill the memory.

Lines end at CR, LF or CRLF and nowhere else: U+2028, U+0085, VT and FF are text. Time and memory are linear in the
input however it is cut into chunks.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, TypeGuard

import msgspec

from agjson.errors import DecodeError, EncodeError
from agjson.wire.writing import encode

if TYPE_CHECKING:
    from agjson.types import AgStreamEvent, UnknownEvent

__all__ = [
    "DEFAULT_MAX_BYTES",
    "SSEMessage",
    "SSEReader",
    "aread_sse",
    "encode_sse",
    "encode_sse_event",
    "event_id",
    "parse_event_id",
    "read_sse",
    "sse_comment",
]

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
"""The longest line, and the most data of one event, that a reader takes unless told otherwise: 64 MiB."""

_BOM = b"\xef\xbb\xbf"
_LF, _CR = 10, 13
# Sixteen digits hold every integer that JSON readers agree on; longer ones are noise or an attack on int().
_DIGITS = re.compile(rb"0*+([0-9]{0,16})")
_SEQ = re.compile(r"0|[1-9][0-9]{0,15}")
_MAX_SEQ = 10**16
# Besides what ends or voids an `id:` line, all that an HTTP header value (Last-Event-ID) loses or refuses.
_UNSAFE = re.compile(r"^ |[^ -~]|%")
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})?")
_ILL_FORMED_ID = re.compile(r"[^\x01-\x7f]|[\r\n]")


class SSEMessage(msgspec.Struct, frozen=True, gc=False):
    r"""One dispatched event.

    Attributes:
        data: the ``data`` lines joined by LF, as they were sent; may be empty (a bare ``data:`` line).
        event: the event type, ``"message"`` where the stream names none; invalid UTF-8 reads as U+FFFD.
        last_event_id: the stream's last event id as of this event, ``""`` before the first; it carries over from
            earlier events, as the standard has it.
        line: the 1-based number of the line where the event's first ``data`` stands.
    """

    data: bytes
    event: str = "message"
    last_event_id: str = ""
    line: int = 1


class SSEReader:
    """An incremental reader of one stream: bytes in, cut anywhere, messages out as soon as their blank line is there.

    Args:
        max_bytes: the longest line, and the most data of one event, in bytes; None lifts the limit.
        last_event_id: the id to start from when a broken connection is taken up again.
        first_line: the number of the stream's first line, for `SSEMessage.line` and for errors.
    """

    __slots__ = (
        "_after_cr",
        "_closed",
        "_data",
        "_data_line",
        "_event",
        "_failure",
        "_first_line",
        "_id",
        "_incomplete",
        "_last_event_id",
        "_line",
        "_max_bytes",
        "_open",
        "_retry",
        "_tail",
    )

    def __init__(
        self, *, max_bytes: int | None = DEFAULT_MAX_BYTES, last_event_id: str = "", first_line: int = 1
    ) -> None:
        self._max_bytes = max_bytes
        self._first_line = first_line
        self._line = first_line - 1  # lines that have ended
        self._tail = bytearray()
        self._after_cr = False
        self._data: bytes | bytearray | None = None
        self._data_line = first_line
        self._event = b""
        self._id = self._last_event_id = last_event_id
        self._retry: int | None = None
        self._open = False  # a field was read since the last blank line
        self._closed = False
        self._incomplete = False
        self._failure: str | None = None

    @property
    def last_event_id(self) -> str:
        """The id of the last event that was read whole: what a re-attaching client sends as ``Last-Event-ID``."""
        return self._last_event_id

    @property
    def retry(self) -> int | None:
        """The reconnection time that the stream last asked for, in milliseconds; None where it asked for none."""
        return self._retry

    @property
    def line(self) -> int:
        """The 1-based number of the line that the next byte belongs to."""
        return self._line + 1

    @property
    def incomplete(self) -> bool:
        """Whether the bytes so far end inside an event; after `close`, whether the stream was cut off there.

        An unfinished comment is not an event.
        """
        return self._incomplete if self._closed else self._pending()

    def feed(self, chunk: bytes) -> list[SSEMessage]:
        """Take the next bytes and return the messages that they complete.

        Args:
            chunk: any number of bytes, cut anywhere.

        Raises:
            DecodeError: a line or the data of one event exceeds ``max_bytes``. Messages of the same chunk that came
                before are returned first; the error is then raised by the next call, and by every one after it.
            ValueError: the reader is closed.
        """
        self._raise_failure()
        if self._closed:
            raise ValueError("the SSE reader is closed")
        if type(chunk) is not bytes:
            chunk = bytes(memoryview(chunk))
        messages: list[SSEMessage] = []
        try:
            self._take(chunk, messages)
        except DecodeError as error:
            # The text alone: the error's traceback would keep the refused bytes.
            self._failure = error.message
            self._release()
        if not messages:
            self._raise_failure()
        return messages

    def close(self) -> None:
        """End the stream. What an unfinished event holds is dropped, and `incomplete` says that there was one.

        Raises:
            DecodeError: the limit was exceeded and `feed` could not say so yet.
        """
        if not self._closed:
            self._incomplete = self._pending()
            self._closed = True
            self._release()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise DecodeError(self._failure)

    def _pending(self) -> bool:
        start = bytes(self._tail[:4])
        if self.line == self._first_line:
            start = start.removeprefix(_BOM)
        return self._open or self._failure is not None or (start != b"" and not start.startswith(b":"))

    def _release(self) -> None:
        self._tail = bytearray()
        self._data = None
        self._event = b""

    def _too_long(self, what: str) -> DecodeError:
        return DecodeError(f"line {self._line}: {what} is longer than {self._max_bytes} bytes")

    def _take(self, chunk: bytes, messages: list[SSEMessage]) -> None:
        if self._after_cr and chunk:
            # The LF of a CRLF that was cut in two.
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines:
            if self._tail:
                self._tail += lines[0]
                lines[0] = bytes(self._tail)
                self._tail = bytearray()
            if self._line < self._first_line:
                lines[0] = lines[0].removeprefix(_BOM)
            self._take_lines(lines, messages)
        self._tail += rest
        if self._max_bytes is not None and len(self._tail) > self._max_bytes:
            self._line += 1
            raise self._too_long("the line")

    def _take_lines(self, lines: list[bytes], messages: list[SSEMessage]) -> None:
        limit = self._max_bytes
        for line in lines:
            self._line += 1
            if not line:
                self._dispatch(messages)
                continue
            if limit is not None and len(line) > limit:
                raise self._too_long("the line")
            if line.startswith(b"data: "):
                self._add_data(line[6:])
            else:
                name, _, value = line.partition(b":")
                if name:
                    self._take_field(name, value[1:] if value.startswith(b" ") else value)

    def _add_data(self, value: bytes) -> None:
        self._open = True
        data = self._data
        if data is None:
            self._data = value
            self._data_line = self._line
            return
        if isinstance(data, bytes):
            data = self._data = bytearray(data)
        data += b"\n"
        data += value
        if self._max_bytes is not None and len(data) > self._max_bytes:
            raise self._too_long("the event's data")

    def _take_field(self, name: bytes, value: bytes) -> None:
        self._open = True
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            match = _DIGITS.fullmatch(value)
            if match and value:
                self._retry = int(match[1] or b"0")

    def _dispatch(self, messages: list[SSEMessage]) -> None:
        self._last_event_id = self._id
        data = self._data
        if data is not None:
            event = self._event.decode("utf-8", "replace") if self._event else "message"
            messages.append(SSEMessage(bytes(data), event, self._id, self._data_line))
            self._data = None
        self._event = b""
        self._open = False


def _truncated(reader: SSEReader) -> DecodeError:
    return DecodeError(f"line {reader.line}: the stream ends inside an event")


def read_sse(chunks: Iterable[bytes], *, reader: SSEReader | None = None) -> Iterator[SSEMessage]:
    """Read a whole stream of server-sent events, each message as soon as it is complete.

    Args:
        chunks: the bytes of the stream, cut anywhere.
        reader: the reader to use, for a limit of one's own or to look at its `last_event_id` and `incomplete` later.

    Raises:
        DecodeError: the limit is exceeded, or the stream ends inside an event (after all whole messages).
    """
    reader = SSEReader() if reader is None else reader
    for chunk in chunks:
        yield from reader.feed(chunk)
        reader._raise_failure()  # pyright: ignore[reportPrivateUsage]
    reader.close()
    if reader.incomplete:
        raise _truncated(reader)


async def aread_sse(chunks: AsyncIterable[bytes], *, reader: SSEReader | None = None) -> AsyncIterator[SSEMessage]:
    """Read a whole stream of server-sent events: `read_sse` for asynchronous chunks.

    Args:
        chunks: the bytes of the stream, cut anywhere.
        reader: the reader to use, for a limit of one's own or to look at its `last_event_id` and `incomplete` later.

    Raises:
        DecodeError: the limit is exceeded, or the stream ends inside an event (after all whole messages).
    """
    reader = SSEReader() if reader is None else reader
    async for chunk in chunks:
        for message in reader.feed(chunk):
            yield message
        reader._raise_failure()  # pyright: ignore[reportPrivateUsage]
    reader.close()
    if reader.incomplete:
        raise _truncated(reader)


def _field(name: str, value: str, forbidden: str) -> bytes:
    for character in forbidden:
        if character in value:
            raise EncodeError(f"the {name} of a server-sent event cannot hold U+{ord(character):04X}: {value[:80]!a}")
    try:
        return f"{name}: {value}\n".encode()
    except UnicodeEncodeError:
        raise EncodeError(f"the {name} of a server-sent event holds a lone surrogate: {value[:80]!a}") from None


def encode_sse(
    data: bytes | None, *, id: str | None = None, event: str | None = None, retry: int | None = None
) -> bytes:
    r"""Write one server-sent event, its blank line included.

    Args:
        data: the payload; CR, LF and CRLF in it all read back as LF. None writes no ``data`` line: readers dispatch
            nothing, but ``id`` and ``retry`` take effect.
        id: the event id, without CR, LF and NUL (readers ignore an id with NUL); ``""`` resets the reader's id.
        event: the event type, without CR and LF; None or ``""`` leaves it to be ``"message"``.
        retry: the reconnection time to ask for, in milliseconds.

    Raises:
        EncodeError: a forbidden character or a lone surrogate in ``id`` or ``event``, or a ``retry`` that is negative
            or has more than 16 digits.
    """
    head = b""
    if id is not None:
        head += _field("id", id, "\r\n\0")
    if event:
        head += _field("event", event, "\r\n")
    if retry is not None:
        if not 0 <= retry < 10**16:
            raise EncodeError(f"not a reconnection time in milliseconds: {retry}")
        head += b"retry: %d\n" % retry
    if data is None:
        return head + b"\n"
    if _CR in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _LF in data:
        data = data.replace(b"\n", b"\ndata: ")
    return b"".join((head, b"data: ", data, b"\n\n"))


def sse_comment(text: str = "") -> bytes:
    """Write a comment, which readers skip: the keep-alive of an idle stream.

    Args:
        text: what to say, one comment line per line of it; a lone surrogate is written as ``?``.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f": {line}\n" if line else ":\n" for line in lines).encode("utf-8", "replace") + b"\n"


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def event_id(turn_id: str, seq: int) -> str:
    """Name an event's place in its turn: ``<turnId>:<seq>``, safe as an ``id:`` line and as ``Last-Event-ID``.

    In the turn id, ``%``, non-ASCII and control characters (CR, LF and NUL among them) and a leading space are
    percent-encoded as UTF-8. A lone surrogate is encoded as the three bytes that UTF-8 would give it, so every Python
    string reads back as it was. Colons stay.

    Args:
        turn_id: any string, the empty one too.
        seq: the event's ordinal, from 0 to 10**16 - 1.

    Raises:
        EncodeError: ``seq`` is out of range.
    """
    if not _is_ordinal(seq):
        raise EncodeError(f"not the ordinal of an event: {seq}")
    # Most ids need nothing, and this asks faster than the pattern does.
    if not (turn_id.isascii() and turn_id.isprintable()) or "%" in turn_id or turn_id.startswith(" "):
        turn_id = _UNSAFE.sub(_escape, turn_id)
    return f"{turn_id}:{seq}"


def _unescape(match: re.Match[bytes]) -> bytes:
    digits = match[1]
    if digits is None:
        raise DecodeError("ill-formed event id: % without two hexadecimal digits")
    return bytes((int(digits, 16),))


def parse_event_id(text: str) -> tuple[str, int]:
    """Read back what `event_id` wrote: ``(turn_id, seq)``, cut at the last colon.

    Args:
        text: an event id, as from `SSEMessage.last_event_id` or a ``Last-Event-ID`` header.

    Raises:
        DecodeError: no colon, an ordinal that is not plain digits, a raw CR, LF, NUL or non-ASCII character, or an
            escape that is not two hexadecimal digits or not UTF-8.
    """
    turn_id, colon, seq = text.rpartition(":")
    if not colon or not _SEQ.fullmatch(seq):
        raise DecodeError(f"ill-formed event id, not <turnId>:<seq>: {text[:80]!a}")
    if _ILL_FORMED_ID.search(turn_id):
        raise DecodeError(f"ill-formed event id, a character that must be percent-encoded: {text[:80]!a}")
    if "%" in turn_id:
        try:
            turn_id = _ESCAPED.sub(_unescape, turn_id.encode()).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise DecodeError(f"ill-formed event id, not UTF-8: {text[:80]!a}") from None
    return turn_id, int(seq)


def encode_sse_event(event: AgStreamEvent | UnknownEvent, *, turn_id: str | None = None) -> bytes:
    """Write one AgJSON event as a server-sent event: its JSON as ``data``, ``<turnId>:<seq>`` as ``id``.

    No ``event`` line is written, so that a browser's ``onmessage`` sees every event. An event without a turn, or with
    a ``seq`` that is no ordinal (`agjson.wire.ingest_event` lets one in), gets no id: the reader keeps the id of the
    event before, and one that re-attaches there is sent this event again.

    Args:
        event: the event to write.
        turn_id: the turn under which the stream can be re-attached. A server that knows it gives it for every event
            of the run, those of nested turns and those without a turn too; None takes the event's own ``turn_id``.

    Raises:
        EncodeError: the event cannot be written as JSON.
    """
    owner: str | None = getattr(event, "turn_id", None) if turn_id is None else turn_id
    seq: object = event.seq
    data = encode(event)
    if owner is None or not _is_ordinal(seq):
        return encode_sse(data)
    id = event_id(owner, seq)
    # A byte is found faster than bytes are.
    if _LF in data or _CR in data:
        # An event of a later revision, which is written as it came.
        return encode_sse(data, id=id)
    return b"id: %b\ndata: %b\n\n" % (id.encode(), data)


def _is_ordinal(seq: object) -> TypeGuard[int]:
    return isinstance(seq, int) and 0 <= seq < _MAX_SEQ
