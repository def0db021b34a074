"""A server in a process of its own, on a real socket: started, ended, killed and started again at the same address."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from tests.support.corpus import ROOT

__all__ = ["Server"]


class Server:
    """uvicorn with an app that a factory makes. Its socket outlives it: clients of a dead server wait for the next.

    Args:
        factory: ``module:function``; called with the settings, returns the ASGI app.
        send_buffer: how many bytes the system takes of what a client does not read; None: as it likes: megabytes.
        ready: a path that answers 200 as soon as the server does.
        settings: keyword arguments of the factory; JSON.
        uvicorn: settings of uvicorn.
    """

    def __init__(
        self,
        factory: str,
        *,
        uvicorn: dict[str, Any] | None = None,
        send_buffer: int | None = None,
        ready: str = "/capabilities",
        **settings: Any,
    ) -> None:
        self._ready = ready
        self._arguments = [factory, json.dumps(settings), json.dumps(uvicorn or {})]
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=2048)
        if send_buffer is not None:  # connections have it of the socket that they came by
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.process is not None and self.process.poll() is None:
                self.kill()
        finally:
            self._socket.close()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        number = self._socket.fileno()
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.http_server", str(number), *self._arguments],
            pass_fds=(number,),
            cwd=ROOT,
            env=environment,
        )
        with httpx.Client(base_url=self.url, timeout=30) as client:
            assert client.get(self._ready).status_code == 200

    def kill(self) -> None:
        """Kill it, as the system would for want of memory."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def terminate(self, timeout: float = 30) -> int:
        """Ask it to end, as a supervisor does; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def memory(self) -> int:
        """The memory that it has in use, in bytes."""
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the system does not tell")

    def wait_for(self, thread_id: str, *, running: bool, timeout: float = 30) -> dict[str, Any]:
        """Wait until a turn of a thread runs, or none does; returns what the server says of the thread."""
        end = time.monotonic() + timeout
        with httpx.Client(base_url=self.url, timeout=timeout) as client:
            while True:
                answer = client.get(f"/threads/{thread_id}")
                if answer.status_code == 200 and (answer.json()["turnId"] is not None) is running:
                    told: dict[str, Any] = answer.json()
                    return told
                assert time.monotonic() < end, answer.text
                time.sleep(0.01)


def _main() -> None:
    import uvicorn

    number, factory, settings, options = sys.argv[1:]
    module, _, name = factory.partition(":")
    app = getattr(importlib.import_module(module), name)(**json.loads(settings))
    config = uvicorn.Config(app, log_level="warning", **json.loads(options))
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(number))])


if __name__ == "__main__":
    _main()
