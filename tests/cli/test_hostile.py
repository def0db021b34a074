"""Inputs that no command was made for: each ends with a message and a status, never with a traceback."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from agjson.cli.files import Input
from agjson.cli.streams import Streams, Unusable
from tests.support.cli import agjson, file, process

READERS = [("show",), ("fold",), ("fold", "--skip-invalid"), ("check",), ("validate",)]
DELTA = b'{"type":"text.delta","seq":0,"id":"b","delta":"%s"}\n'


@pytest.mark.parametrize("args", READERS, ids=" ".join)
@pytest.mark.parametrize(
    ("content", "statuses"),
    [
        pytest.param(b"", (0, 0, 0, 0, 0), id="empty"),
        pytest.param(b"\n \n\t\r\n", (0, 0, 0, 0, 0), id="blank"),
        pytest.param(b"\xef\xbb\xbf", (0, 0, 0, 0, 0), id="bom"),
        pytest.param(random.Random(7).randbytes(200_000), (2, 2, 0, 1, 1), id="binary"),
        pytest.param(b"\x00" * 5000, (2, 2, 0, 1, 1), id="zeros"),
        pytest.param(DELTA % b"\xff\xfe", (2, 2, 0, 1, 1), id="invalid utf-8"),
        pytest.param(DELTA[:-4], (2, 2, 0, 1, 1), id="cut line"),
        pytest.param(b"[" + DELTA[:-4], (2, 2, 2, 2, 2), id="cut array"),
        pytest.param(b"[1,2", (2, 2, 2, 2, 2), id="cut number"),
        pytest.param(b"data: {\n\n", (2, 2, 0, 1, 1), id="broken sse"),
        pytest.param(b"5\n", (2, 2, 0, 1, 1), id="number"),
        pytest.param(b'{"type":"x.start"}\n', (2, 2, 0, 1, 1), id="no seq"),
        pytest.param(b"[" * 100_000, (2, 2, 2, 2, 2), id="deep array"),
        pytest.param(
            b'{"type":"state.snapshot","seq":0,"snapshot":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n",
            (2, 2, 0, 1, 1),
            id="deep event",
        ),
        pytest.param(b'{"a":' * 100_000, (2, 2, 0, 1, 1), id="deep object"),
        pytest.param(b'{"type":"state.snapshot","seq":1e400,"snapshot":1}\n', (2, 2, 0, 1, 1), id="huge number"),
        pytest.param(b'{"type":"state.snapshot","seq":0,"snapshot":NaN}\n', (2, 2, 0, 1, 1), id="nan"),
    ],
)
def test_every_reader_ends_with_its_status(
    args: tuple[str, ...], content: bytes, statuses: tuple[int, ...], tmp_path: Path
) -> None:
    done = agjson(*args, file(tmp_path, content))
    assert done.status == statuses[READERS.index(args)], done
    assert "Traceback" not in done.out + done.err
    if done.status == 2:
        assert done.err.count("\n") == 1
        assert str(tmp_path) in done.err


@pytest.mark.parametrize("args", READERS, ids=" ".join)
def test_one_line_of_5_mb(args: tuple[str, ...], tmp_path: Path) -> None:
    assert agjson(*args, file(tmp_path, DELTA % (b"x" * 5_000_000))).status in (0, 1)
    garbage = agjson(*args, file(tmp_path, b"x" * 5_000_000))
    assert garbage.status in (0, 1, 2)
    assert len(garbage.err) + len(garbage.out) < 10_000


ENDLESS = {
    "one line": (b"", b"x"),
    "object": (b'{"type":"', b"x"),
    "object over lines": (b'{"a":[\n', b"1,\n"),
    "array": (b'[{"a":"', b"x"),
    "sse": (b"data: ", b"x"),
}


class Endless:
    """A file that goes on as long as it is read, in chunks; a test fails before memory does."""

    def __init__(self, begin: bytes, more: bytes) -> None:
        self._begin = begin
        self._more = more
        self.count = 0

    def read1(self, size: int = -1, /) -> bytes:
        self.count += size
        assert self.count < 512 * 1024 * 1024
        begin, self._begin = self._begin, b""
        return begin or self._more * (size // len(self._more))


@pytest.mark.parametrize("name", ENDLESS)
def test_a_value_that_does_not_end_is_given_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agjson.cli.files._LONGEST_VALUE", 1_000_000)
    source = Input(Endless(*ENDLESS[name]), "pipe", Streams())
    with pytest.raises(Unusable, match=r"^pipe:1: the (value|line) is longer than 1000000 bytes$"):
        list(source.items())


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="an endless file of the system")
def test_an_endless_file_has_status_2() -> None:
    done = agjson("check", "/dev/zero")
    assert (done.status, done.out, done.err) == (2, "", "/dev/zero:1: the value is longer than 268435456 bytes\n")


@pytest.mark.parametrize("args", [*READERS, ("to-native", "anthropic")], ids=" ".join)
def test_files_that_cannot_be_read(args: tuple[str, ...], tmp_path: Path) -> None:
    if args[0] == "to-native":
        pytest.importorskip("agjson.adapters.anthropic")
    assert agjson(*args, tmp_path / "none").status == 2
    directory = agjson(*args, tmp_path)
    assert directory.status == 2


def test_the_messages_name_the_file_and_the_trouble(tmp_path: Path) -> None:
    assert agjson("fold", tmp_path / "none").err == f"{tmp_path / 'none'}: No such file or directory\n"
    assert agjson("fold", tmp_path).err == f"{tmp_path}: Is a directory\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = file(tmp_path, b"{}")
    path.chmod(0)
    assert agjson("fold", path).err == f"{path}: Permission denied\n"


def test_a_file_name_with_control_characters_is_shown_as_escapes(tmp_path: Path) -> None:
    done = agjson("fold", tmp_path / "a\x1b[31m\nb")
    assert done.err == f"{tmp_path}/a\\x1b[31m\\nb: No such file or directory\n"


@pytest.mark.parametrize("args", [*READERS, ("schema", "x"), ("normalize", "none")], ids=" ".join)
def test_no_traceback_from_a_process_either(args: tuple[str, ...]) -> None:
    done = process(*args, stdin=b"\xff{[") if args[0] not in ("schema",) else process(*args)
    assert "Traceback" not in done.err
    assert done.status in (0, 1, 2)
