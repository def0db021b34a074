"""A program in a process of its own, talked to through its standard input and output."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

from tests.support.corpus import ROOT


class Dialog:
    """A program that is running.

    Args:
        command: the program and its arguments.
        environment: further variables; None: not set.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str | None] | None = None) -> None:
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", **(environment or {})}
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={name: value for name, value in variables.items() if value is not None},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._printed = bytearray()
        self._read = 0
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def __enter__(self) -> Dialog:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self._reader.join(30)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def until(self, text: str, timeout: float = 60) -> str:
        """Wait until it has printed a text; returns what it has printed since the last one that was waited for."""
        wanted = text.encode()
        with self._changed:
            found = self._changed.wait_for(lambda: self._ended or wanted in self._printed[self._read :], timeout)
            at = self._printed.find(wanted, self._read)
            assert found and at >= 0, f"{text!r} was not printed, but {self._printed.decode(errors='replace')!r}"
            printed = self._printed[self._read : at + len(wanted)].decode()
            self._read = at + len(wanted)
            return printed

    def type(self, line: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        """End its input; returns its exit status and what it has printed since."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; returns its exit status and what it has printed since."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self, timeout: float = 60) -> tuple[int, str]:
        """Wait for its end; returns its exit status and what it has printed since."""
        status = self.process.wait(timeout)
        self._reader.join(timeout)
        return status, self._printed[self._read :].decode()

    def _collect(self) -> None:
        assert self.process.stdout is not None
        while piece := os.read(self.process.stdout.fileno(), 65536):
            with self._changed:
                self._printed += piece
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
