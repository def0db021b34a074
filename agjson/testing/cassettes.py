"""Recordings of HTTP traffic: reading them as data, and playing them back to the real client of a provider.

Three forms of file are read, all as plain data (the safe YAML loader, no tags that run code): what VCR.py writes, the
same with JSON bodies under ``parsed_body``, and two parallel lists ``requests`` and ``responses``.

Reading needs PyYAML, playing back needs VCR.py: ``pip install 'agjson[testing]'``.
"""

from __future__ import annotations

import errno
import json
import re
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agjson.errors import DecodeError, MissingExtraError

if TYPE_CHECKING:
    from vcr.cassette import Cassette  # pyright: ignore[reportMissingTypeStubs]

_OPENING = re.compile(
    r"\s*(?:---|(?:interactions|requests|responses|version):|\{\s*\"(?:interactions|requests|version)\")"
)
# Bodies are stored decoded, so these headers would describe bytes that are not there.
_TRANSPORT_HEADERS = {"content-encoding", "content-length", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request with its response.

    Attributes:
        method: the HTTP method, upper case.
        uri: the request URI; ``""`` where the recording has it redacted.
        request: the request body, decoded; empty where there is none.
        status: the HTTP status code.
        headers: the response headers that still hold for the decoded body, names in lower case.
        body: the response body, decoded.
    """

    method: str
    uri: str
    request: bytes
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def streamed(self) -> bool:
        """Whether the response is a stream of server-sent events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")


def read_cassette(path: Path | str) -> list[Exchange]:
    """The exchanges of a recording, in recorded order.

    Args:
        path: a YAML or JSON file in one of the three forms.

    Raises:
        DecodeError: the file is no recording in a known form.
        MissingExtraError: PyYAML is not installed.
        OSError: the file cannot be read.
    """
    return parse_cassette(Path(path).read_bytes())


def parse_cassette(data: bytes) -> list[Exchange]:
    """The exchanges of a recording that was read already, as `read_cassette`.

    Args:
        data: the file's contents, UTF-8.

    Raises:
        DecodeError: the text is no recording in a known form, or not UTF-8.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        return _exchanges(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DecodeError(f"invalid UTF-8 (byte {error.start})") from None


def is_cassette(text: str) -> bool:
    """Whether the beginning of a file looks like a recording rather than like JSON lines or a stream of events."""
    return _OPENING.match(text.removeprefix("\ufeff")) is not None


@contextmanager
def replay(path: Path | str) -> Generator[Cassette]:
    """Play a recording back: within the block each request of the process is answered from the file, in order.

    Requests match on method, host and path. Nothing reaches the network: a request that the recording lacks,
    or has only once and gets twice, fails by VCR.py's ``CannotOverwriteExistingCassetteException``. A provider's client
    may raise it as its own connection error, whose ``__cause__`` it is then; the `turn.error` of an agent names it.

    Args:
        path: the recording.

    Yields:
        VCR.py's cassette: ``requests`` as recorded, ``play_count``, ``all_played``.

    Raises:
        FileNotFoundError: there is no such file.
        MissingExtraError: VCR.py is not installed.
    """
    if not Path(path).is_file():  # VCR.py would take it for a recording without requests
        raise FileNotFoundError(errno.ENOENT, "no such recording", str(path))
    with replayer().use_cassette(str(path)) as cassette:  # pyright: ignore[reportUnknownMemberType]
        yield cassette


def replayer(**settings: Any) -> Any:
    """A configured `vcr.VCR` that reads every form, replays only, and ignores bodies and queries in matching.

    Args:
        **settings: further settings of `vcr.VCR`, or other values for these.

    Raises:
        MissingExtraError: VCR.py is not installed.
    """
    try:
        import vcr  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("testing", "vcrpy") from None
    machine = vcr.VCR(**{**vcr_config(), **settings})
    register(machine)
    return machine


def vcr_config() -> dict[str, Any]:
    """The settings to return from pytest-recording's ``vcr_config`` fixture."""
    return {"record_mode": "none", "match_on": ["method", "host", "path"], "before_record_request": _upper_method}


def register(machine: Any) -> None:
    """Teach a `vcr.VCR` every form; call it from pytest-recording's ``pytest_recording_configure`` hook.

    The serializer takes the name ``yaml``, since pytest-recording uses the name as the file suffix.
    """
    machine.register_serializer("yaml", _Serializer)


class _Serializer:
    """VCR.py's serializer interface over `Exchange`; recordings are never written through it."""

    @staticmethod
    def deserialize(cassette_string: str) -> dict[str, Any]:
        return {"version": 1, "interactions": [_interaction(exchange) for exchange in _exchanges(cassette_string)]}

    @staticmethod
    def serialize(cassette_dict: Any) -> str:
        raise RuntimeError("recordings are read-only")


def _interaction(exchange: Exchange) -> dict[str, Any]:
    return {
        "request": {
            "method": exchange.method,
            "uri": exchange.uri or _guessed_uri(exchange.body),
            "body": exchange.request.decode(errors="surrogateescape"),
            "headers": {},
        },
        "response": {
            "status": {"code": exchange.status, "message": ""},
            "headers": {name: [value] for name, value in exchange.headers.items()},
            "body": {"string": exchange.body},
        },
    }


def _exchanges(text: str) -> list[Exchange]:
    document = _load(text)
    try:
        pairs = document.get("interactions")
        if pairs is None:
            pairs = [
                {"request": request, "response": response}
                for request, response in zip(document["requests"], document["responses"], strict=True)
            ]
        return [_exchange(pair["request"], pair["response"]) for pair in pairs]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"not a recording in a known form ({type(error).__name__}: {error})") from None


def _exchange(request: dict[str, Any], response: dict[str, Any]) -> Exchange:
    body = _body(response)
    status: dict[str, Any] | None = response.get("status")
    uri = request.get("uri") or request.get("url") or ""
    return Exchange(
        method=str(request["method"]).upper(),
        uri=uri if "://" in uri else "",
        request=_body(request),
        status=int(status["code"] if status is not None else response.get("status_code", 200)),
        headers=_headers(response.get("headers") or {}, body),
        body=body,
    )


def _body(part: Mapping[str, Any]) -> bytes:
    if part.get("parsed_body") is not None:
        return json.dumps(part["parsed_body"], ensure_ascii=False).encode()
    body: Any = part.get("body")
    if isinstance(body, dict):
        body = cast("dict[str, Any]", body).get("string")
    if isinstance(body, str):
        body = body.encode()
    if body and body[:2] == b"\x1f\x8b":
        return zlib.decompress(body, 31)
    return bytes(body or b"")


def _headers(recorded: Mapping[str, Any], body: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in recorded.items():
        if name.lower() not in _TRANSPORT_HEADERS:
            headers[name.lower()] = value if isinstance(value, str) else str(next(iter(value), ""))
    if "/" not in headers.get("content-type", ""):  # absent, or redacted in the recording
        stream = body.lstrip().startswith((b"event:", b"data:"))
        headers["content-type"] = "text/event-stream" if stream else "application/json"
    return headers


def _guessed_uri(body: bytes) -> str:
    """A redacted URI told from the response: the host only has to match what the provider's client asks."""
    text = body.replace(b": ", b":")
    if b'"type":"message' in text and b'"object":"response"' not in text:
        return "https://api.anthropic.com/v1/messages"
    if b"chat.completion" in text:
        return "https://api.openai.com/v1/chat/completions"
    return "https://api.openai.com/v1/responses"


def _load(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise DecodeError(f"not a recording: {error}") from None
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("testing", "PyYAML") from None
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise DecodeError(f"not a recording: {error}") from None


def _upper_method(request: Any) -> Any:
    """One client asks for ``post``; VCR.py compares methods case by case."""
    request.method = request.method.upper()
    return request
