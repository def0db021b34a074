"""JSON values out of whatever holds them: JSON Lines, one array, values one after another, or server-sent events.

The kind is recognised by the first thing that the input says:

* ``[``: an array; its elements are the values.
* a line that starts with ``:``, ``data:``, ``event:``, ``id:`` or ``retry:``: server-sent events; each event's data is
  a value.
* ``{``, and the value goes on after the line, or another value follows it on the line: values one after another, each
  on as many lines as it likes (pretty-printed JSON). Where the lines taken together cannot be JSON, the first line is
  broken rather than unfinished, and the input is JSON Lines.
* anything else: JSON Lines.

Values are cut out, not checked: whoever decodes one sees what is wrong with it and knows its line. Memory is flat: one
value and one chunk at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from json import JSONDecodeError, JSONDecoder
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from agjson.errors import DecodeError
from agjson.wire.sse import SSEReader, read_sse

__all__ = ["Item", "iter_json"]

_Kind: TypeAlias = Literal["lines", "array", "values", "sse"]

_CHUNK = 64 * 1024
_LOOKAHEAD = 64 * 1024  # how far a first value over several lines is judged
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_SSE_STARTS = (b":", b"data:", b"event:", b"id:", b"retry:")
_OPENERS = b"{["
_QUOTE, _COMMA, _BACKSLASH, _OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT = b'",\\[]{'

_SPACE = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb'[^ \t\r\n,\[\]{}"]++')
# Possessive throughout: nothing is retried, so a string of any length costs one pass and no memory.
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)


class Item(msgspec.Struct, frozen=True, gc=False):
    """One value of the input.

    Attributes:
        line: the 1-based number of the line where it starts.
        data: its bytes as they stand in the input, without the whitespace around them; of a broken JSON line, the line.
    """

    line: int
    data: bytes


def iter_json(source: Iterable[bytes] | BinaryIO | bytes, *, max_bytes: int | None = None) -> Iterator[Item]:
    """Yield every JSON value of an input, each as soon as it is complete.

    A JSON line that is no JSON is yielded as it is, blank lines are skipped, and so is a server-sent event without
    data. A number, ``true``, ``false`` or ``null`` in an array is complete with the byte after it.

    Args:
        source: a binary file (read as its bytes arrive), chunks cut anywhere, or the whole input.
        max_bytes: the longest value (of JSON Lines and server-sent events: line) to take, in bytes; None, the default,
            sets no limit.

    Raises:
        DecodeError: an array, a value over several lines or a server-sent event that the input ends inside of; text
            between values; a value over the limit. The message names the line; every whole value before was yielded.
    """
    chunks = _chunks(source)
    kind, line, head = _recognise(chunks, max_bytes)
    chunks = chain((head,), chunks)
    del head
    if kind == "lines":
        yield from _read_lines(chunks, line, max_bytes)
    elif kind == "sse":
        yield from _read_events(chunks, line, max_bytes)
    else:
        yield from _read_values(chunks, line, max_bytes, array=kind == "array")


def _chunks(source: Iterable[bytes] | BinaryIO | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), _CHUNK):
            yield source[start : start + _CHUNK]
        return
    # read1 returns what a pipe holds by now, where read would wait for a full buffer.
    read: Callable[[int], bytes] | None = getattr(source, "read1", None) or getattr(source, "read", None)
    if read is None:
        yield from source
        return
    while chunk := read(_CHUNK):
        yield chunk


def _recognise(chunks: Iterator[bytes], limit: int | None) -> tuple[_Kind, int, bytes]:
    """Read as far as needed to know the kind; returns it, the line of the first value, and what was read from there."""
    head = bytearray()
    line = 1
    at_start = line_start = True
    for chunk in chunks:
        head += chunk
        if at_start:
            if len(head) < len(_BOM) and _BOM.startswith(head):
                continue
            at_start = False
            if head.startswith(_BOM):
                del head[: len(_BOM)]
        blank = _space_end(head, 0)
        if blank:
            line += head.count(b"\n", 0, blank)
            line_start = head[blank - 1] in b"\r\n"
            del head[:blank]
        if not head:
            continue
        if head[0] == _OPEN_ARRAY:
            return "array", line, bytes(head)
        if head[0] == _OPEN_OBJECT:
            kind = _recognise_object(head, chunks, limit)
            return kind, line, bytes(head)
        if not line_start:
            break
        if head.startswith(_SSE_STARTS):
            return "sse", line, bytes(head)
        if not any(start.startswith(head) for start in _SSE_STARTS):
            break
    return "lines", line, bytes(head)


def _recognise_object(head: bytearray, chunks: Iterator[bytes], limit: int | None) -> _Kind:
    """Tell JSON Lines from values over several lines; `head` begins with ``{`` and grows by what had to be read."""
    value = _Balance()
    value.depth = 1
    end = value.find_end(head, 1)
    searched, judged = 0, 1
    broken = False  # a line ends before the value does
    while True:
        if not broken:
            stop = len(head) if end < 0 else end
            broken = head.find(b"\n", searched, stop) >= 0
            searched = stop
        if broken:
            # Judged at the first line, the second, the fourth and so on: the cost stays linear, and how the bytes
            # arrive decides nothing.
            limit_of_lines = min(len(head) if end < 0 else end, _LOOKAHEAD)
            while (cut := _after_lines(head, judged, limit_of_lines)) >= 0:
                if not _may_be_json(bytes(head[:cut])):
                    return "lines"
                judged *= 2
            if end >= 0 or len(head) >= _LOOKAHEAD:
                return "values" if _may_be_json(_prefix(head, end)) else "lines"
        elif end >= 0:
            after = _space_end(head, end)
            if after < len(head) or head.find(b"\n", end, after) >= 0:
                same_line = head.find(b"\n", end, after) < 0
                return "values" if same_line and head[after] in _OPENERS else "lines"
        elif limit is not None and len(head) > limit:
            return "lines"
        chunk = next(chunks, None)
        if chunk is None:
            return "values" if broken and not _only_first_broken(head) else "lines"
        if end < 0:
            end = value.find_end(chunk, 0)
            if end >= 0:
                end += len(head)
        head += chunk


def _after_lines(head: bytearray, count: int, stop: int) -> int:
    """Where the line after the first ``count`` lines begins, -1 if they do not all end before ``stop``."""
    at = -1
    for _ in range(count):
        at = head.find(b"\n", at + 1, stop)
        if at < 0:
            return -1
    return at + 1


def _prefix(head: bytearray, end: int) -> bytes:
    """The first value, or of a long or unfinished one the whole lines within the look-ahead."""
    if 0 <= end <= _LOOKAHEAD:
        return bytes(head[:end])
    return bytes(head[: head.rfind(b"\n", 0, _LOOKAHEAD) + 1])


def _may_be_json(prefix: bytes) -> bool:
    """Whether whole lines are a JSON value or the beginning of one."""
    # Latin-1 keeps positions and cannot fail; numbers stay text, for they may be of any length.
    text = prefix.decode("latin-1").rstrip(" \t\r\n")
    try:
        JSONDecoder(parse_int=str, parse_float=str).raw_decode(text or "0")
    except JSONDecodeError as error:
        return error.pos >= len(text)
    except RecursionError:
        return True
    return True


def _only_first_broken(head: bytearray) -> bool:
    """Whether every line after the first, if any, is an object of its own: then the first line alone is at fault."""
    return all(_is_object(line) for line in head.split(b"\n")[1:] if line.strip(_BLANK))


def _is_object(line: bytearray) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _space_end(text: bytes | bytearray, start: int) -> int:
    match = _SPACE.match(text, start)
    return start if match is None else match.end()


def _scalar_end(chunk: bytes, start: int) -> int:
    match = _SCALAR.match(chunk, start)
    end = start if match is None else match.end()
    return -1 if end == len(chunk) else end


class _Balance:
    """Finds where a value ends, over any number of chunks, by brackets and strings alone."""

    __slots__ = ("_escaped", "depth", "in_string")

    def __init__(self) -> None:
        self.depth = 0
        self.in_string = False
        self._escaped = False  # the last chunk ended with the backslash of an escape

    def find_end(self, chunk: bytes | bytearray, start: int) -> int:
        """The index after the byte that ends the value, or -1 where the chunk ends first."""
        end = len(chunk)
        if self._escaped and start < end:
            self._escaped = False
            start += 1
        while start < end:
            pattern = _IN_STRING if self.in_string else _TO_BRACKET
            match = pattern.match(chunk, start)
            if match is not None:
                start = match.end()
            if start == end:
                break
            byte = chunk[start]
            start += 1
            if self.in_string:
                if byte == _BACKSLASH:
                    self._escaped = True
                    break
                self.in_string = False
                if self.depth == 0:
                    return start
            elif byte == _QUOTE:
                self.in_string = True
            elif byte in _OPENERS:
                self.depth += 1
            else:
                self.depth -= 1
                if self.depth == 0:
                    return start
        return -1


def _too_long(line: int, limit: int) -> DecodeError:
    return DecodeError(f"line {line}: the value is longer than {limit} bytes")


def _read_lines(chunks: Iterable[bytes], line: int, limit: int | None) -> Iterator[Item]:
    tail = bytearray()
    for chunk in chunks:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and tail:
            tail += lines[0]
            lines[0] = bytes(tail)
            tail = bytearray()
        for text in lines:
            if limit is not None and len(text) > limit:
                raise _too_long(line, limit)
            data = text.strip(_BLANK)
            if data:
                yield Item(line, data)
            line += 1
        tail += rest
        if limit is not None and len(tail) > limit:
            raise _too_long(line, limit)
    data = bytes(tail).strip(_BLANK)
    if data:
        yield Item(line, data)


def _read_events(chunks: Iterable[bytes], line: int, limit: int | None) -> Iterator[Item]:
    for message in read_sse(chunks, reader=SSEReader(max_bytes=limit, first_line=line)):
        data = message.data.strip(_BLANK)
        if data:
            yield Item(message.line, data)


# Where a reader of values stands: what may come next.
_OPENING, _FIRST, _NEXT, _INSIDE, _IN_SCALAR, _AFTER, _DONE = range(7)
_UNFINISHED = (_INSIDE, _IN_SCALAR)
_MAY_CLOSE = (_FIRST, _AFTER)


def _read_values(chunks: Iterable[bytes], line: int, limit: int | None, *, array: bool) -> Iterator[Item]:
    value = _Balance()
    carry = bytearray()  # the beginning of a value that earlier chunks hold
    state = _OPENING if array else _NEXT
    start_line = line
    for chunk in chunks:
        end = len(chunk)
        at = counted = start = 0
        while at < end:
            if state in _UNFINISHED:
                stop = value.find_end(chunk, at) if state == _INSIDE else _scalar_end(chunk, at)
                if stop < 0:
                    break
                data = chunk[start:stop]
                if carry:
                    carry += data
                    data = bytes(carry)
                    carry = bytearray()
                if limit is not None and len(data) > limit:
                    raise _too_long(start_line, limit)
                state = _AFTER if array else _NEXT
                at = stop
                yield Item(start_line, data)
                continue
            byte = chunk[at]
            if byte in _BLANK:
                at = _space_end(chunk, at)
                continue
            if state == _AFTER and byte == _COMMA:
                state = _NEXT
                at += 1
            elif array and byte == _CLOSE_ARRAY and state in _MAY_CLOSE:
                state = _DONE
                at += 1
            elif state == _OPENING:
                state = _FIRST
                at += 1
            else:
                line += chunk.count(b"\n", counted, at)
                counted = at
                state = _begin(value, byte, state, line, array=array)
                start, start_line = at, line
                at += state == _INSIDE
        line += chunk.count(b"\n", counted)
        if state in _UNFINISHED:
            carry += chunk[start:]
            if limit is not None and len(carry) > limit:
                raise _too_long(start_line, limit)
    if state in _UNFINISHED:
        raise DecodeError(f"line {start_line}: the input ends inside the value that starts here")
    if array and state != _DONE:
        raise DecodeError(f"line {line}: the input ends inside the array")


def _begin(value: _Balance, byte: int, state: int, line: int, *, array: bool) -> int:
    """Begin a value with its first byte; returns the state that reads it."""
    if state == _DONE:
        raise DecodeError(f"line {line}: text after the end of the array")
    if state == _AFTER:
        raise DecodeError(f"line {line}: expected a comma or the end of the array after a value")
    if byte in _OPENERS:
        value.depth = 1
        return _INSIDE
    if not array:
        raise DecodeError(f"line {line}: expected an object or an array")
    if byte == _QUOTE:
        value.depth = 0
        value.in_string = True
        return _INSIDE
    if byte in b",]}":
        raise DecodeError(f"line {line}: expected a value")
    return _IN_SCALAR
