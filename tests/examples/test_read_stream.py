"""The reader in JavaScript sees what the Python client sees, however the bytes are cut."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from agjson.middleware.client import SyncAgentClient
from agjson.wire.sse import SSEReader
from tests.support.corpus import ROOT
from tests.support.http_server import Server

READER = ROOT / "examples" / "read_stream.mjs"

# Reads a list of streams, each a list of chunks of bytes, and prints for each what `readEvents` gives.
READ_ALL = f"""
import {{ readEvents }} from {json.dumps(READER.as_uri())};
import {{ readFileSync }} from "node:fs";
const seen = [];
for (const chunks of JSON.parse(readFileSync(0, "utf8"))) {{
  const body = new ReadableStream({{
    start(stream) {{
      for (const chunk of chunks) stream.enqueue(Uint8Array.from(chunk));
      stream.close();
    }},
  }});
  const events = [];
  for await (const {{ id, event }} of readEvents(new Response(body))) events.push([id, event]);
  seen.push(events);
}}
console.log(JSON.stringify(seen));
"""

STREAM = """: a comment

id: t:0
data: {"text":"Grüße 💶: a"}

event: named
id:t:1
data:{"text":
data: "two lines"}
retry: 10

id: not sent

: another: comment
id: t:2
data: {"colons":"a:b: c"}
unknown

data: {"cut":"off"}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("ANTHROPIC_API_KEY", raising=False)
        with Server("examples.anthropic_server:make_app", seconds_per_event=0.01) as started:
            yield started


def read_all(node: str, streams: list[list[bytes]]) -> Any:
    done = subprocess.run(
        [node, "--input-type=module", "--eval", READ_ALL],
        input=json.dumps([[list(chunk) for chunk in chunks] for chunks in streams]),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_line_end_and_every_cut_gives_the_same_events(node: str) -> None:
    stream = STREAM.encode()
    wanted = [["t:0", {"text": "Grüße 💶: a"}], ["t:1", {"text": "two lines"}], ["t:2", {"colons": "a:b: c"}]]
    messages = SSEReader().feed(stream)
    assert [[message.last_event_id, json.loads(message.data)] for message in messages] == wanted
    streams: list[list[bytes]] = []
    for end in (b"\n", b"\r\n", b"\r"):
        whole = stream.replace(b"\n", end)
        streams += [[whole[:at], whole[at:]] for at in range(len(whole))]
        streams += [[bytes([byte]) for byte in whole], [b"\xef\xbb\xbf" + whole]]
    assert read_all(node, streams) == [wanted] * len(streams)


def test_it_sees_what_the_python_client_sees(node: str, server: Server) -> None:
    done = subprocess.run(
        [node, str(READER), server.url, "What are 50 dollars in euros?"],
        capture_output=True,
        timeout=120,
        check=True,
    )
    seen = json.loads(done.stderr)
    with SyncAgentClient(server.url) as client:
        events: list[Any] = list(turn := client.start("What are 50 dollars in euros?"))
    assert done.stdout.decode() == "".join(event.delta for event in events if event.type == "text.delta")
    assert seen["events"] == len(events) == 46
    assert turn.outcome is not None
    assert (seen["last"], seen["outcome"]) == (events[-1].type, turn.outcome.type) == ("turn.done", "success")
    assert seen["id"].endswith(f":{len(events) - 1}")


def test_it_tells_why_it_was_refused(node: str, server: Server) -> None:
    done = subprocess.run(
        [node, str(READER), f"{server.url}/nothing"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert '404: {"error":{"code":"not_found"' in done.stderr


def test_it_stays_short() -> None:
    lines = READER.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith("//")]) <= 40
