"""Another process of a test: it reads tasks as lines of JSON, and says in the same way what it has done."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

from tests.support.corpus import ROOT


class ChildProcess:
    """A module that runs in a process of its own, and says ``ready`` first.

    Args:
        module: the module, as ``python -m`` takes it.
    """

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.heard() == ["ready"]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, *task: object) -> None:
        """Give it a task: a name and arguments."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()

    def heard(self) -> list[Any]:
        """The next line; empty at the end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else []

    def send(self, sent: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(sent)

    def close(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.communicate()
