"""The Anthropic adapter: a delta against what the provider's client spends on it, and memory over a long answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from agjson import Reducer, encode
from agjson.adapters.anthropic import AnthropicNormalizer
from agjson.agents import Agent, Invocation, NormalizerSettings
from agjson.normalizer import HostEnd
from agjson.types import AgMessage, StartInput, TextBlock
from benchmarks.measure import Effort, Row, drain, each, fastest, most_used
from benchmarks.streams import ARGUMENTS, THOUGHTS, WORDS

if TYPE_CHECKING:
    from anthropic import Anthropic

GROUP = "anthropic"
# What an open block has is kept as it came, which takes more than its text does.
IN_A_BLOCK = 1_000

Native = dict[str, Any]

# The most of the client's own cost that a delta may add, by the form in which it comes. An object costs some lookups
# more than a dict: where pydantic keeps what it knows, and where it keeps what it does not.
AIMS = {"dicts": 0.1, "objects": 0.125}

# Each kind of delta: its block, the delta's field, and the pieces that come.
KINDS: dict[str, tuple[Native, str, tuple[str, ...]]] = {
    "text": ({"type": "text", "text": ""}, "text", WORDS),
    "thinking": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking", THOUGHTS),
    "input_json": (
        {"type": "tool_use", "id": "toolu_01", "name": "get_forecast", "input": {}},
        "partial_json",
        ARGUMENTS,
    ),
}


def answer(count: int, kind: str = "text", in_a_block: int | None = None) -> Iterator[Native]:
    """The raw events of one answer: a message of so many deltas.

    Args:
        count: how many deltas.
        kind: a key of `KINDS`.
        in_a_block: how many deltas each of its blocks has; None: one block has all of them.
    """
    block, field, pieces = KINDS[kind]
    usage = {"input_tokens": 812, "output_tokens": 1}
    head = {"id": "msg_01", "type": "message", "role": "assistant", "model": "model-1", "content": []}
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    size = in_a_block or count
    for index in range(count // size):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for number in range(size):
            delta = {"type": f"{kind}_delta", field: pieces[number % len(pieces)]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": count}}
    yield {"type": "message_stop"}


def rows(effort: Effort) -> Iterator[Row]:
    for kind in KINDS:
        yield from _deltas(effort, kind)
    for name, what in (("normalizer", "pushed and encoded"), ("agent", "run by an agent")):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.bench_anthropic", name, str(effort.deltas)],
            check=True,
            capture_output=True,
            text=True,
        )
        early, late = json.loads(done.stdout)
        yield Row(
            GROUP,
            f"the process after {effort.deltas:,} deltas, {what}",
            late / early,
            1.1,
            f"{late / 1e6:.0f} MB",
            f"the process after {effort.deltas // 2:,} ({early / 1e6:.0f} MB)",
        )


def _deltas(effort: Effort, kind: str) -> Iterator[Row]:
    client, ask = replaying(answer(effort.events, kind))
    with client:
        objects = ask()
        dicts = [json.loads(json.dumps(native)) for native in answer(effort.events, kind)]
        times = fastest(
            {"client": ask, "dicts": lambda: normalize(dicts), "objects": lambda: normalize(objects)},
            min(effort.rounds, 15),
        )
    floor = f"the client's Stream over the same bytes ({each(times['client'], effort.events)})"
    for form, words in (("dicts", "dicts"), ("objects", "the client's objects")):
        yield Row(
            GROUP,
            f"push and encode, {kind}_delta, from {words}",
            times[form] / times["client"],
            AIMS[form],
            each(times[form], effort.events),
            floor,
        )


def normalize(natives: Iterable[Any]) -> None:
    """What an adapter adds to each event of the client: `push`, and `encode` of what comes of it."""
    normalizer = AnthropicNormalizer("turn-1", "thread-1")
    push = normalizer.push
    for native in natives:
        for event in push(native):
            encode(event)
    drain(map(encode, normalizer.flush()))


def replaying(natives: Iterable[Native]) -> tuple[Anthropic, Callable[[], list[Any]]]:
    """The provider's own client in front of recorded bytes, without a network.

    Returns:
        The client, and what makes it read the whole answer and returns its events.
    """
    import anthropic
    import httpx2

    # An event a chunk, as they come over a network.
    chunks = [b"event: %b\ndata: %b\n\n" % (native["type"].encode(), json.dumps(native).encode()) for native in natives]

    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=iter(chunks))

    client = anthropic.Anthropic(
        api_key="not-needed", max_retries=0, http_client=httpx2.Client(transport=httpx2.MockTransport(respond))
    )

    def ask() -> list[Any]:
        question: Any = {"role": "user", "content": "?"}
        with client.messages.create(model="model-1", max_tokens=1, messages=[question], stream=True) as stream:
            return list(stream)

    return client, ask


# Memory


class ReplayAgent(Agent):
    """The whole driver around one answer, which is read as it is made.

    Args:
        natives: makes the events of a run.
    """

    def __init__(self, natives: Callable[[], Iterable[Any]]) -> None:
        super().__init__()
        self.natives = natives

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> AnthropicNormalizer:
        return AnthropicNormalizer(**settings)

    def _invoke(self, invocation: Invocation) -> Iterable[Any]:
        yield from self.natives()


def pushed(natives: Iterable[Native]) -> Iterator[bytes]:
    """Every event of one answer on the wire, by the normalizer alone."""
    normalizer = AnthropicNormalizer("turn-1", "thread-1")
    for native in chain(natives, [HostEnd()]):
        for event in normalizer.push(native):
            yield encode(event)
    yield from map(encode, normalizer.flush())


def driven(natives: Iterable[Native]) -> Iterator[bytes]:
    """Every event of one answer on the wire, by an agent that stores the conversation."""
    question = AgMessage(id="user-1", role="user", content=[TextBlock(text="?")])
    start = StartInput(thread_id="thread-1", turn_id="turn-1", messages=[question])
    for event in ReplayAgent(lambda: natives).run_sync(start):
        yield encode(event)


def folded(natives: Iterable[Native]) -> Iterator[bytes]:
    """The same without the agent: the normalizer, and the fold of its events."""
    normalizer, reducer = AnthropicNormalizer("turn-1", "thread-1"), Reducer()
    for native in chain(natives, [HostEnd()]):
        for event in normalizer.push(native):
            reducer.push(event)
            yield encode(event)
    reducer.result()


WAYS: dict[str, Callable[[Iterable[Native]], Iterator[bytes]]] = {
    "normalizer": pushed,
    "fold": folded,
    "agent": driven,
}


def peaks(
    way: str, count: int, in_a_block: int | None = IN_A_BLOCK, used: Callable[[], int] = most_used
) -> tuple[int, int]:
    """The most memory in use, in bytes, after half of an answer and just before its end.

    Args:
        way: a key of `WAYS`.
        count: how many deltas the answer has.
        in_a_block: as for `answer`.
        used: what tells the most memory in use so far.
    """
    # Parsed one at a time, so that no two deltas share their strings.
    natives = (json.loads(json.dumps(native)) for native in answer(count, in_a_block=in_a_block))
    lines = WAYS[way](natives)
    drain(islice(lines, count // 2))
    early = used()
    drain(islice(lines, count - count // 2))
    late = used()
    drain(lines)
    return early, late


if __name__ == "__main__":
    print(json.dumps(peaks(sys.argv[1], int(sys.argv[2]))))
