"""The command among other processes: pipes, terminals, signals, live streams."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import ENVIRONMENT, command, ev, file, lines, process, wire
from tests.support.corpus import ROOT

EVENTS = wire(
    [
        ev("turn.start", turnId="t1", threadId="th1"),
        ev("message.start", id="m1", role="assistant", turnId="t1", threadId="th1"),
        ev("text.start", id="b1", turnId="t1"),
        ev("text.delta", id="b1", delta="first words"),
        ev("text.delta", id="b1", delta=" and the last"),
        ev("text.end", id="b1"),
        ev("message.end", id="m1"),
        ev("turn.done", turnId="t1", outcome={"type": "success"}, finishReason="stop"),
    ]
)
ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
DEADLINE_SECONDS = 30


class Terminal:
    """A pseudo-terminal: what a process wrote to it, read as it comes."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        self.text = ""

    def wait_for(self, words: str) -> None:
        """Read until the words have come."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while words not in self.text:
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{words!r} did not come, only {self.text!r}"
            self.text += os.read(self._master, 65536).decode()

    def rest(self) -> str:
        """Everything, once all writers have gone."""
        self.close_slave()
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return self.text
            if not data:
                return self.text
            self.text += data.decode()

    def close_slave(self) -> None:
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1

    def close(self) -> None:
        self.close_slave()
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


@contextmanager
def started(*args: str | Path, stdin: int, stdout: int, stderr: int, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command(*args), stdin=stdin, stdout=stdout, stderr=stderr, cwd=ROOT, env=ENVIRONMENT | env
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def test_show_prints_text_before_the_stream_goes_on(terminal: Terminal) -> None:
    with started("show", stdin=subprocess.PIPE, stdout=terminal.slave, stderr=subprocess.PIPE, TERM="xterm") as process:
        assert process.stdin is not None
        for event, words in ((EVENTS[:4], "first words"), (EVENTS[4:5], "and the last"), (EVENTS[5:], "done")):
            process.stdin.write(lines(event).encode())
            process.stdin.flush()
            terminal.wait_for(words)
            assert process.poll() is None
        process.stdin.close()
        assert process.wait(DEADLINE_SECONDS) == 0
        text = ESCAPE_SEQUENCE.sub("", terminal.rest()).replace("\r\n", "\n")
    assert text == ("── turn t1 · thread th1\nassistant\n  first words and the last\n── turn t1 done · stop\n")


def test_show_prints_text_before_the_stream_goes_on_also_into_a_pipe() -> None:
    with started("show", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(EVENTS[:4]).encode())
        process.stdin.flush()
        text = b""
        while b"first words" not in text:
            ready, _, _ = select.select([process.stdout], [], [], DEADLINE_SECONDS)
            assert ready
            text += os.read(process.stdout.fileno(), 65536)
        assert process.poll() is None


def test_server_sent_events_are_shown_as_they_come(terminal: Terminal) -> None:
    with started("show", stdin=subprocess.PIPE, stdout=terminal.slave, stderr=subprocess.PIPE, TERM="xterm") as process:
        assert process.stdin is not None
        for event in EVENTS[:4]:
            process.stdin.write(f"data: {lines([event])}\n".encode())
        process.stdin.flush()
        terminal.wait_for("first words")


def test_a_terminal_gets_colours_and_a_pipe_does_not(terminal: Terminal, tmp_path: Path) -> None:
    path = file(tmp_path, lines(EVENTS))
    with started("show", path, stdin=subprocess.DEVNULL, stdout=terminal.slave, stderr=subprocess.PIPE, TERM="xterm"):
        terminal.wait_for("stop")
    assert "\x1b[1;34m── turn t1 · thread th1\x1b[0m" in terminal.text
    assert "\x1b" not in process("show", path).out
    assert "\x1b" not in process("show", path, TERM="xterm-256color").out


@pytest.mark.parametrize("env", [{"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(terminal: Terminal, tmp_path: Path, env: dict[str, str]) -> None:
    path = file(tmp_path, lines(EVENTS))
    with started("show", path, stdin=subprocess.DEVNULL, stdout=terminal.slave, stderr=subprocess.PIPE, **env):
        terminal.wait_for("stop")
    assert "\x1b" not in terminal.text


@pytest.mark.parametrize(
    "args", [("show",), ("validate",), ("check",), ("schema", "AgEvent"), ("fold", "--pretty"), ("schema", "--list")]
)
def test_a_reader_that_goes_away_ends_the_command_quietly(args: tuple[str, ...], tmp_path: Path) -> None:
    broken = wire([*EVENTS[:3], *(ev("text.delta", id="b9", delta="x\n" * 50) for _ in range(5000))])
    for number, event in enumerate(broken):
        event["seq"] = number
    path = file(tmp_path, lines(broken))
    files = [path] if args[0] != "schema" else []
    with started(*args, *files, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(DEADLINE_SECONDS) == 141


def test_ctrl_c_ends_the_command_quietly(terminal: Terminal) -> None:
    with started("show", stdin=subprocess.PIPE, stdout=terminal.slave, stderr=subprocess.PIPE, TERM="xterm") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(lines(EVENTS[:4]).encode())
        process.stdin.flush()
        terminal.wait_for("first words")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 130
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("size_mb", "drawn"), [(12, True), (1, False)])
def test_progress_is_drawn_on_stderr_of_a_terminal_for_large_files(
    terminal: Terminal, tmp_path: Path, size_mb: int, drawn: bool
) -> None:
    line = '{"type":"text.delta","seq":0,"id":"b","delta":"' + "x" * 1000 + '"}\n'
    path = file(tmp_path, line * (size_mb * 1000))
    with started(
        "validate", path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal.slave, TERM="xterm"
    ) as process:
        assert process.stdout is not None
        out = process.stdout.read().decode()
        assert process.wait(DEADLINE_SECONDS) == 0
    assert out.splitlines()[0] == '{"line":1,"valid":true,"error":null,"path":null}'
    assert len(out.splitlines()) == size_mb * 1000
    assert ("stream.jsonl" in terminal.rest()) is drawn


def test_progress_is_not_drawn_into_a_pipe(tmp_path: Path) -> None:
    line = '{"type":"text.delta","seq":0,"id":"b","delta":"' + "x" * 1000 + '"}\n'
    assert process("validate", file(tmp_path, line * 9000)).err == ""


def test_check_sums_up_on_a_terminal_only(terminal: Terminal, tmp_path: Path) -> None:
    path = file(tmp_path, lines(EVENTS))
    assert process("check", path).err == ""
    with started(
        "check", path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal.slave, TERM="xterm"
    ) as checking:
        assert checking.wait(DEADLINE_SECONDS) == 0
    assert terminal.rest() == "8 events, nothing broken\r\n"


def test_a_terminal_as_input_is_told_how_to_end_it(terminal: Terminal) -> None:
    with started("fold", stdin=terminal.slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, TERM="xterm") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"Reading from the terminal; Ctrl-D ends the input.\n"


def test_output_that_cannot_be_written_has_status_2() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    with full.open("wb") as device:
        done = subprocess.run(
            command("schema", "AgEvent"), stdout=device, stderr=subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT, check=False
        )
    assert (done.returncode, done.stderr) == (2, b"No space left on device\n")


def test_an_encoding_without_the_characters_gets_escapes(tmp_path: Path) -> None:
    done = process("show", file(tmp_path, lines(EVENTS)), PYTHONIOENCODING="ascii")
    assert done.status == 0
    assert done.out.startswith("\\u2500\\u2500 turn t1")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("name", ["check", "validate", "show"])
def test_memory_is_flat(name: str, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from agjson.cli import main\n"
        "main()\n"
        "status = open('/proc/self/status').read()\n"
        "print(status.partition('VmHWM:')[2].split()[0], file=sys.stderr)\n"
    )
    peaks: list[int] = []
    for count in (20_000, 200_000):
        deltas = (f'{{"type":"text.delta","seq":{n},"id":"b1","delta":"word {n} "}}\n' for n in range(3, count))
        path = file(tmp_path, lines(EVENTS[:3]) + "".join(deltas))
        done = subprocess.run(
            [command()[0], "-c", program, name, str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=ENVIRONMENT,
            check=True,
        )
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] < peaks[0] * 1.1
