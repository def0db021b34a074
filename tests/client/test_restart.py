"""A server that is killed in the middle of a turn and started again: the client gets the end that is stored."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from agjson.middleware.client import AgentClient
from tests.support.corpus import ROOT

PROGRAM = """
import asyncio, sys
import uvicorn
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from tests.support.scripted import ScriptAgent, text

def script(invocation):
    natives = text("one two three four")
    return [*natives[:4], asyncio.sleep(60), *natives[4:]]

agent = ScriptAgent(script, store=SQLiteThreadStore(sys.argv[2]))
uvicorn.run(AgentApp(agent, poll=0.05), port=int(sys.argv[1]), log_level="error", ws="none")
"""


def serve(port: int, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM, str(port), str(path)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


async def test_a_server_that_is_killed_and_started_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = tmp_path / "threads.sqlite"
    # The client may well be there first: it waits for the server.
    server = serve(port, path)
    try:
        async with AgentClient(f"http://127.0.0.1:{port}", max_retries=200, max_backoff=0.2) as client:
            turn = client.start("Hello", thread_id="th", turn_id="t1")
            events: list[Any] = []
            async for event in turn:
                events.append(event)
                if getattr(event, "delta", None) == "two":
                    server.kill()
                    server.wait()
                    server = serve(port, path)
            assert [event.seq for event in events] == list(range(len(events)))
            assert [event.delta for event in events if event.type == "text.delta"] == ["one", "two"]
            assert (events[-1].type, events[-1].reason) == ("turn.abort", "interrupted")
            assert turn.resyncs == ()
            assert turn.reconnects >= 1
            assert turn.result == (await client.snapshot("th")).result
    finally:
        server.kill()
        await asyncio.to_thread(server.wait)
