"""The benchmarks run, measure what they say, and write their table; how fast anything is does not matter here."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import pytest

from agjson import AgEvent, Checker, decode_event, encode, reduce
from benchmarks import page
from benchmarks.__main__ import BENCHES, main
from benchmarks.bench_memory import stream
from benchmarks.measure import TINY, Row, fastest
from benchmarks.streams import agent, endless, long_message

AIMS = {
    "decode_event": 1.5,
    "ingest_event": 2.0,
    "encode": 1.5,
    "Reducer.push": 1.4,
    "line to folded state (decode_event, push)": 3.0,
    "import agjson": 4.0,
}


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_measures_every_row(name: str) -> None:
    rows = list(BENCHES[name](TINY))
    assert rows
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert math.isfinite(row.ratio)
        assert row.cost
        assert row.floor
        assert AIMS.get(row.name, row.aim) == row.aim
        if row.group != "fold" or "result()" not in row.name:  # a difference of two times, which may be too small
            assert row.ratio > 0


def test_every_stated_aim_has_its_row() -> None:
    names = {row.name for bench in ("wire", "fold", "start") for row in BENCHES[bench](TINY)}
    assert set(AIMS) <= names


@pytest.mark.parametrize("events", [agent(2_000), long_message(50), list(islice(endless(), 12_000))], ids=len)
def test_the_measured_streams_are_valid_and_whole_on_the_wire(events: list[AgEvent]) -> None:
    checker = Checker()  # without its end: two of the streams are cut off
    assert [violation for event in events for violation in checker.push(event)] == []
    assert not reduce(events).needs_resync
    assert [decode_event(encode(event)) for event in events] == events


def test_most_of_the_measured_stream_is_deltas() -> None:
    events = agent(5_000)
    deltas = [event for event in events if event.type.endswith(".delta")]
    assert 0.85 < len(deltas) / len(events) < 0.95
    assert all(100 < len(encode(event)) <= 150 for event in deltas)
    assert {"tool.start", "tool.done", "state.snapshot", "messages.snapshot"} <= {event.type for event in events}


def test_the_endless_stream_stays_small() -> None:
    """What flat memory is measured with: the conversation itself must not grow."""
    sizes = [len(encode(reduce(islice(endless(), count)).result)) for count in (5_000, 20_000)]
    assert max(sizes) < 100_000
    early, late = stream(3_000)
    assert 0 < early <= late


def test_the_fastest_time_of_each_piece_is_kept() -> None:
    calls: list[str] = []
    times = fastest({"a": lambda: calls.append("a"), "b": lambda: [calls.append("b"), sum(range(20_000))]}, 3)
    assert calls == ["a", "b"] * 3
    assert 0 <= times["a"] < times["b"]


ROWS = [
    Row("wire", "reading", 1.234, 1.5, "0.20 us", "bare"),
    Row("wire", "writing", 2.5, 1.5, "0.30 us", "bare"),
    Row("fold", "folding", 9.0, None, "1.00 us", "bare"),
]


def test_the_table_has_a_line_for_every_row() -> None:
    lines = page.table(ROWS).splitlines()
    assert "| reading | 1.23 | 1.5 | ok | 0.20 us | bare |" in lines
    assert "| writing | 2.50 | 1.5 | over | 0.30 us | bare |" in lines
    assert "| folding | 9.00 |  |  | 1.00 us | bare |" in lines


def test_the_text_around_the_table_stays(tmp_path: Path) -> None:
    target = tmp_path / "performance.md"
    target.write_text(f"before\n\n{page.BEGIN}\nstale\n{page.END}\n\nafter\n", encoding="utf-8")
    for rows in (ROWS[:1], ROWS):
        page.write(rows, target)
        text = target.read_text(encoding="utf-8")
        assert text.startswith(f"before\n\n{page.BEGIN}\n")
        assert text.endswith(f"{page.END}\n\nafter\n")
        assert "stale" not in text
        assert text.count("| reading |") == 1
    target.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="no place"):
        page.write(ROWS, target)


def test_the_page_in_the_tree_has_a_place_for_every_group() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.index(page.BEGIN) < text.index(page.END)


def test_a_part_can_be_run_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    written: list[object] = []
    monkeypatch.setitem(BENCHES, "emitter", lambda effort: iter(ROWS[:1]))
    monkeypatch.setitem(BENCHES, "start", lambda effort: iter(ROWS[1:2]))
    monkeypatch.setattr(page, "write", written.append)
    assert main(["emitter", "--quick"]) == 0
    assert "reading" in capsys.readouterr().out
    assert main(["emitter", "start"]) == 1
    assert "over the aim: writing" in capsys.readouterr().err
    assert written == []
    with pytest.raises(SystemExit):
        main(["nothing"])
