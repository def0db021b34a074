"""The Messages API of Anthropic for the contract suite: recordings, and clients that answer from a script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from agjson.adapters.anthropic import ADAPTER, AnthropicAgent, AnthropicNormalizer, messages_from_native
from agjson.agents import Agent
from agjson.normalizer import HostError
from agjson.testing.contract import Path, Respond, Sample, Subject, Terminal
from agjson.types import ToolCallBlock
from tests.contract.subjects.anthropic_gated import GATING
from tests.support.anthropic_wire import (
    AUTHORED,
    SAID_AGAIN,
    Native,
    Recording,
    fold_recording,
    read_recordings,
    recording_files,
    whole_messages,
)

# Members whose value goes back byte for byte, wherever they stand.
OPAQUE = frozenset(("signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout", "tool_use_id"))
# The authored recordings that do not end well, and how they end.
ENDS: dict[str, tuple[Terminal, str | None]] = {
    "authored--truncated-0": ("turn.abort", None),
    "authored--error-in-stream-0": ("turn.error", "overloaded_error"),
    "authored--error-of-request-0": ("turn.error", "overloaded_error"),
}
# The arguments of the call are no JSON, or the blocks are not known: there is no reading without streaming.
NO_WHOLE = frozenset(("authored--arguments-cut-0", "authored--not-yet-known-0"))
# Answers that go on with a call of the answer before them, without which they cannot be sent.
GO_ON = frozenset(("langchain--programmatic-tool-use-1", "pydantic-ai--pause-turn-web-search-streaming-vcr-1"))
# How opaque values begin that must not go back: of reasoning that nothing follows, and of what a model thought before
# it declined and another one went on.
WITHHELD: dict[str, tuple[str, ...]] = {
    "authored--thinking-only-0": ("PNPBNzVlUQ34liwX/vYf",),
    "authored--fallback-0": ("nKJJHBO65vCO0TU1FKx1",),
}
SURFACE: dict[str, Any] = json.loads(files("agjson.adapters.anthropic").joinpath("surface.json").read_text("utf-8"))
# Type and field of what the surface says is left out.
DROPPED = {
    (model["type"], field)
    for model in SURFACE["models"].values()
    if "type" in model
    for field, said in model["fields"].items()
    if said.startswith("dropped:")
}
UNKNOWN: tuple[Native, ...] = (
    {"type": "contract_event", "words": "contract-unknown-event", "deep": {"sealed": ["contract-1"]}},
    {"type": 5, "words": "contract-unknown-type"},
    {"no_type": "contract-no-type"},
)
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def has_ended(natives: Sequence[Any]) -> bool:
    """Whether the last message was ended by the provider."""
    ended = False
    for native in natives:
        kind = native.get("type") if isinstance(native, dict) else None
        if kind == "message_start":
            ended = False
        elif kind == "message_stop":
            ended = True
        elif kind == "message":
            ended = native.get("stop_reason") is not None
    return ended


def excused(native: Any, path: Path) -> bool:
    """The types, which become those of events and blocks, and what ``surface.json`` says is dropped."""
    if not path:
        return False
    holder = native
    for name in path[:-1]:
        holder = holder[name]
    return path[-1] == "type" or (isinstance(holder, dict) and (holder.get("type"), path[-1]) in DROPPED)


def overruled(native: Any, path: Path) -> bool:
    """What the deltas of a block and the end of a message say again."""
    kind = native.get("content_block", native).get("type")
    return any((kind, name) in SAID_AGAIN for name in path)


def opaque(native: Any) -> Iterator[str]:
    """Every opaque value of a native event."""
    if isinstance(native, dict):
        for name, each in native.items():
            if name in OPAQUE and isinstance(each, str) and each:
                yield each
            else:
                yield from opaque(each)
    elif isinstance(native, list):
        for each in native:
            yield from opaque(each)


def rechunk(natives: Sequence[Any], size: int) -> list[Any]:
    """The stream with every delta cut into pieces, or with size 0 joined with the next of its kind."""
    found: list[Any] = []
    for native in natives:
        kind = native["delta"].get("type") if native.get("type") == "content_block_delta" else None
        name = DELTAS.get(kind or "")
        if name is None:
            found.append(native)
            continue
        value = native["delta"][name]
        last = found[-1] if found else {}
        if size:
            pieces = [value[at : at + size] for at in range(0, len(value), size)] or [""]
            found += [{**native, "delta": {**native["delta"], name: piece}} for piece in pieces]
        elif last.get("index") == native["index"] and last.get("delta", {}).get("type") == kind:
            found[-1] = {**native, "delta": {**native["delta"], name: last["delta"][name] + value}}
        else:
            found.append(native)
    return found


def lanes(natives: Sequence[Any]) -> list[Hashable | None]:
    """Blocks interleave by their index; the result of a server's call comes after its call."""
    lane_of_call: dict[str, Hashable] = {}
    lane_of_index: dict[int, Hashable] = {}
    found: list[Hashable | None] = []
    for native in natives:
        index = native.get("index")
        if native.get("type") == "message_start":
            lane_of_index = {}
        if index is not None and native["type"] == "content_block_start":
            block = native["content_block"]
            call = block.get("id") or block.get("tool_use_id")
            lane_of_index[index] = lane_of_call.setdefault(call, f"call {call}") if call else len(found)
        found.append(lane_of_index.get(index, index) if index is not None else None)
    return found


# Clients that answer from a script


class _Stream:
    response: ClassVar[None] = None

    def __init__(self, natives: Iterable[Any]) -> None:
        self._natives = iter(natives)

    def __iter__(self) -> Iterator[Any]:
        return self._natives

    def close(self) -> None:
        close = getattr(self._natives, "close", None)
        if close is not None:
            close()


class _AsyncStream(_Stream):
    async def __aiter__(self) -> AsyncIterator[Any]:
        for native in self._natives:
            yield native

    async def close(self) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        super().close()


class _Client:
    """The part of ``Anthropic`` that an agent calls."""

    def __init__(self, respond: Respond) -> None:
        self.messages = self
        self.beta = self
        self._respond = respond

    def create(self, **params: Any) -> Any:
        return _Stream(self._respond(params))


class _AsyncClient(_Client):
    """The same of ``AsyncAnthropic``."""

    async def __aenter__(self) -> _AsyncClient:
        return self

    async def __aexit__(self, *raised: object) -> None:
        return None

    async def create(self, **params: Any) -> Any:  # type: ignore[override]  # pyright: ignore
        return _AsyncStream(self._respond(params))


def _agent(client: Callable[[Respond], Any]) -> Callable[[Respond], Agent]:
    return lambda respond: AnthropicAgent(client(respond), model="claude-contract", max_continuations=1)


# Samples


def sample_of(recording: Recording) -> Sample:
    """A recorded answer as a sample."""
    terminal, code = ENDS.get(recording.name, ("turn.done", None))
    if isinstance(recording.natives[0], HostError):
        terminal, code = "turn.error", recording.natives[0].code
    has_whole = recording.streamed and terminal == "turn.done" and recording.name not in NO_WHOLE
    _, known_ids = fold_recording(recording)
    return Sample(
        name=recording.name,
        natives=recording.natives,
        terminal=terminal,
        code=code,
        whole=whole_messages(recording) if has_whole else None,
        known_ids=known_ids,
        replays=recording.name not in GO_ON,
        withheld=frozenset(
            value
            for native in recording.natives
            for value in opaque(native)
            if value.startswith(WITHHELD.get(recording.name, ()))
        ),
    )


@cache
def samples(corpus: bool) -> tuple[Sample, ...]:
    """The recorded answers of the corpus, or those of the project."""
    return tuple(
        sample_of(recording)
        for path in recording_files()
        if (path.parent != AUTHORED) == corpus
        for recording in read_recordings(path)
    )


def single() -> Subject:
    """Anthropic as `agjson.middleware.anthropic` wraps one request: the end of its message is the end of the turn."""
    adapter = replace(ADAPTER, normalizer=AnthropicNormalizer)
    return replace(subject(), adapter=adapter, has_ended=has_ended_once, agents={}, gating=None)


def has_ended_once(natives: Sequence[Any]) -> bool:
    """Whether any message was ended by the provider."""
    return any(has_ended(natives[: length + 1]) for length in range(len(natives)))


def subject(corpus: bool = False) -> Subject:
    """Anthropic, on the project's own recordings or on those of the corpus."""
    return Subject(
        adapter=ADAPTER,
        samples=samples(corpus),
        has_ended=has_ended,
        unknown=UNKNOWN,
        excused=excused,
        overruled=overruled,
        opaque=opaque,
        rechunk=rechunk,
        lanes=lanes,
        messages_from_native=messages_from_native,
        call=ToolCallBlock(tool_call_id="toolu_contract", name="look_up", input={"of": "Bern"}),
        agents={"blocking": _agent(_Client), "asynchronous": _agent(_AsyncClient)},
        gating=None if corpus else GATING,
        budget=4_000 if corpus else 15_000,
    )
