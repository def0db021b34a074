"""Bodies of answers, unpacked a piece at a time: a short answer that unpacks to a long one must not fill the memory.

The HTTP client would unpack each chunk whole, as often as the server says that it has packed it. Here one packing is
understood, and no piece is longer than a limit, so that who reads can stop.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx

from agjson.middleware.client.errors import StreamError

__all__ = ["ACCEPT_ENCODING", "Unpacker", "apieces", "pieces"]

ACCEPT_ENCODING: Final = {"accept-encoding": "gzip, deflate"}
"""What the client asks servers for, and all that it understands."""

_PIECE = 64 * 1024
_GZIP, _ZLIB, _BARE = 31, 15, -15


class Unpacker:
    """Unpacks one body.

    Args:
        encoding: its ``Content-Encoding``.
        status: the HTTP status, for errors.
    """

    def __init__(self, encoding: str, status: int) -> None:
        self._encoding = encoding.strip().lower()
        self._status = status
        self._ended = False
        self._head = b""
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that some bytes unpack to; none is empty.

        Args:
            data: the next bytes of the body.

        Raises:
            StreamError: it is packed in another way than asked for.
            DecodingError: of httpx; it is not what its encoding says.
        """
        if self._encoding in ("", "identity"):
            if data:
                yield data
            return
        while data and not self._ended:
            stream = self._stream or self._begun(data)
            if stream is None:
                return
            data, self._head = self._head + data, b""
            try:
                piece = stream.decompress(data, _PIECE)
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from None
            if piece:
                yield piece
            if stream.eof:
                # What follows is another member of a gzip file; of the other format there is one.
                data, self._stream = stream.unused_data, None
                self._ended = self._encoding == "deflate"
                continue
            data = stream.unconsumed_tail
            while not data and len(piece) == _PIECE:
                piece = stream.decompress(b"", _PIECE)
                if piece:
                    yield piece

    def _begun(self, data: bytes) -> zlib._Decompress | None:
        """What unpacks from here on; None: the first bytes do not tell yet."""
        if self._encoding in ("gzip", "x-gzip"):
            self._stream = zlib.decompressobj(_GZIP)
        elif self._encoding == "deflate":
            head = self._head + data
            if len(head) < 2:
                self._head = head
                return None
            # Some servers leave out the header that the encoding has.
            has_header = head[0] & 15 == 8 and int.from_bytes(head[:2]) % 31 == 0
            self._stream = zlib.decompressobj(_ZLIB if has_header else _BARE)
        else:
            message = "the answer is compressed in a way that was not asked for"
            raise StreamError(message, code="unsupported_encoding", status=self._status)
        return self._stream


def _unpacker(response: httpx.Response) -> Unpacker:
    return Unpacker(response.headers.get("content-encoding", ""), response.status_code)


def pieces(response: httpx.Response) -> Iterator[bytes]:
    """The body of an answer, a piece at a time.

    Args:
        response: the answer, not read yet, or read by a hook or transport of the caller.
    """
    if response.is_stream_consumed:
        yield from _read_before(response)
        return
    unpacker = _unpacker(response)
    for chunk in response.iter_raw():
        yield from unpacker.feed(chunk)


async def apieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """`pieces` for an answer of an `httpx.AsyncClient`.

    Args:
        response: the answer.
    """
    if response.is_stream_consumed:
        for piece in _read_before(response):
            yield piece
        return
    unpacker = _unpacker(response)
    async for chunk in response.aiter_raw():
        for piece in unpacker.feed(chunk):
            yield piece


def _read_before(response: httpx.Response) -> Iterator[bytes]:
    if response.content:
        yield response.content
