"""A recorded conversation through the provider's real client, live on the screen, then what it folds to.

Run it with `make demo`. Nothing reaches the network: the answers come from a recording, one with a tool call in the
middle. Everything else is as in an agent of your own: the client's stream goes through the normalizer, event by event.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from anthropic import Anthropic

from agjson import AgStreamEvent, HostEnd, Reducer, encode, to_dict
from agjson.adapters.anthropic import AnthropicNormalizer
from agjson.testing.cassettes import read_cassette, replay

ROOT = Path(__file__).resolve().parents[1]
RECORDED = "cassettes/anthropic/langchain--agent-loop-streaming.yaml"
AUTHORED = "cassettes/anthropic/authored--interleaved.yaml"

# A recording plays at once; an event a moment makes it look as it did when it was made.
SECONDS_PER_EVENT = 0.02


def recording() -> Path:
    """A real recording where the corpus is there, else the one that this project wrote."""
    real = ROOT / os.environ.get("AGJSON_CORPUS", "../shared") / RECORDED
    return real if real.is_file() else ROOT / AUTHORED


def conversation(path: Path) -> Iterator[AgStreamEvent]:
    """Ask what was asked in the recording, and yield the answers as AgJSON events."""
    requests = [json.loads(exchange.request) for exchange in read_cassette(path)]
    normalizer = AnthropicNormalizer("turn-1", "demo", multi=True)
    with replay(path), Anthropic(api_key="not-needed", max_retries=0) as client:
        for number, request in enumerate(requests):
            if number:  # the last message of a later request holds the results of the tools
                yield from normalizer.push(request["messages"][-1])
            with client.messages.create(**{**request, "stream": True}) as stream:
                for native in stream:
                    yield from normalizer.push(native)
    yield from normalizer.push(HostEnd())
    yield from normalizer.flush()


def main() -> int:
    """Play the recording into `agjson show`, then print the fold."""
    path = recording()
    print(f"Playing {path.name} through the provider's client into `agjson show`:\n", flush=True)
    reducer = Reducer()
    pause = SECONDS_PER_EVENT if sys.stdout.isatty() else 0
    with subprocess.Popen([sys.executable, "-m", "agjson", "show", "-"], stdin=subprocess.PIPE) as show:
        assert show.stdin is not None
        for event in conversation(path):
            reducer.push(event)
            show.stdin.write(encode(event) + b"\n")
            show.stdin.flush()
            time.sleep(pause)
        show.stdin.close()
        if show.wait():
            return show.returncode
    print("\nThe same events, folded into the stored conversation:\n")
    print(json.dumps(to_dict(reducer.result()), indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
