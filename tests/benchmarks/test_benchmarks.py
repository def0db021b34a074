"""The benchmarks run, measure what they say, and write their table; how fast anything is does not matter here."""

from __future__ import annotations

import json
import math
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from agjson import AgEvent, Checker, decode_event, encode, reduce
from agjson.adapters.anthropic import AnthropicNormalizer
from agjson.adapters.langgraph import LangGraphNormalizer
from agjson.wire.sse import read_sse
from benchmarks import bench_langgraph, page
from benchmarks.__main__ import BENCHES, main
from benchmarks.bench_anthropic import KINDS, WAYS, answer, peaks, replaying
from benchmarks.bench_langgraph import LEAN, OURS, PEER, SHORT, read, turn_sizes, ways
from benchmarks.bench_memory import stream
from benchmarks.measure import TINY, Row, fastest
from benchmarks.streams import ARGUMENTS, THOUGHTS, WORDS, agent, endless, long_message

AIMS = {
    "decode_event": 1.5,
    "ingest_event": 2.0,
    "encode": 1.5,
    "Reducer.push": 1.4,
    "line to folded state (decode_event, push)": 3.0,
    "import agjson": 4.0,
    f"what {OURS} adds to a token, beside {PEER}": 0.1,
    f"what {OURS} adds to a token, beside {LEAN}": 0.125,
    **{f"push and encode, {kind}_delta, from dicts": 0.1 for kind in KINDS},
    **{f"push and encode, {kind}_delta, from the client's objects": 0.125 for kind in KINDS},
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
    names = {row.name for bench in ("wire", "fold", "start", "anthropic", "langgraph") for row in BENCHES[bench](TINY)}
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


@pytest.mark.parametrize("kind", KINDS)
def test_client_and_adapter_read_the_same_answer(kind: str) -> None:
    """What the adapter is measured against: the client reads every delta, and each becomes one of ours."""
    natives = list(answer(50, kind))
    client, ask = replaying(natives)
    with client:
        read = ask()
    assert [native.type for native in read] == [native["type"] for native in natives]
    assert [native.to_dict() for native in read][2:-3] == natives[2:-3]
    ours = {"text": "text.delta", "thinking": "reasoning.delta", "input_json": "tool.args.delta"}[kind]
    for form in (natives, read):
        normalizer = AnthropicNormalizer("t", "th")
        events = [event for native in form for event in normalizer.push(native)]
        assert [event.type for event in events].count(ours) == 50
        assert not normalizer.flush()


def test_all_ways_of_the_long_answer_end_in_the_same_content() -> None:
    natives = list(answer(40, in_a_block=20))
    streams = {way: [decode_event(line) for line in run(natives)] for way, run in WAYS.items()}
    answers = {way: reduce(events).result.messages[-1] for way, events in streams.items()}
    (first, *others) = answers.values()
    words = "".join(WORDS[number % len(WORDS)] for number in range(20))
    assert [getattr(block, "text", None) for block in first.content] == [words, words]
    assert all(other == first for other in others)


def _said(lines: list[bytes], member: str) -> str:
    """The text of an answer that came as server-sent events."""
    events = [json.loads(message.data) for message in read_sse(lines)]
    return "".join(event["delta"] for event in events if event["type"] == member)


@pytest.mark.parametrize("kind", bench_langgraph.KINDS)
def test_graph_and_agent_tell_the_same_answer(kind: str) -> None:
    """What the adapter is measured against: the graph streams every delta, and each becomes one of ours."""
    turns = ways(50, kind)
    parts = read(turns["native"]("thread-1", "turn-1"))
    pieces = {"text": WORDS, "reasoning": THOUGHTS, "arguments": ARGUMENTS}[kind]
    assert sum(part["type"] == "messages" for part in parts) >= 50
    ours = {"text": "text.delta", "reasoning": "reasoning.delta", "arguments": "tool.args.delta"}[kind]
    said = "".join(pieces[number % len(pieces)] for number in range(50))
    assert _said(read(turns[OURS]("thread-2", "turn-1")), ours) == said
    normalizer = LangGraphNormalizer("turn-1", "thread-1")
    events = [event for part in parts for event in normalizer.push(part)]
    assert [event.type for event in events].count(ours) == 50


@pytest.mark.parametrize("peer", [PEER, LEAN])
def test_the_peer_tells_the_same_answer(peer: str) -> None:
    pytest.importorskip("ag_ui_langgraph")
    said = "".join(WORDS[number % len(WORDS)] for number in range(50))
    assert _said(read(ways(50)[peer]("thread-1", "turn-1")), "TEXT_MESSAGE_CONTENT") == said


def test_a_turn_of_a_long_thread_takes_no_more_bytes_than_one_of_a_short() -> None:
    first, *others = turn_sizes(ways(SHORT)[OURS], 8)
    assert first > 1_000
    assert max(others) - min(others) < 10  # digits of a seq
    assert others[0] <= first


def test_rows_beside_the_peer_are_left_out_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_langgraph, "has_peer", lambda: False)
    names = [row.name for row in bench_langgraph.rows(TINY)]
    assert f"a token through {OURS}, as a server-sent event" in names
    assert not any("ag_ui_langgraph" in name for name in names)
    assert "ag_ui_langgraph is not installed" in capsys.readouterr().err


def _traced() -> int:
    return tracemalloc.get_traced_memory()[1]


def _growth(way: str, count: int) -> int:
    """How many bytes the second half of an answer of one block adds to the most that is in use."""
    peaks(way, 500, None)  # what is made once is there before
    tracemalloc.start()
    try:
        early, late = peaks(way, count, None, _traced)
    finally:
        tracemalloc.stop()
    return late - early


def test_a_long_answer_leaves_nothing_in_the_normalizer() -> None:
    assert _growth("normalizer", 20_000) < 1_000


def test_a_run_keeps_of_a_long_answer_only_what_the_fold_keeps() -> None:
    kept, run = _growth("fold", 10_000), _growth("agent", 10_000)
    assert kept > 100_000  # the text itself
    assert abs(run - kept) < 0.02 * kept


def test_the_fastest_time_of_each_piece_is_kept() -> None:
    calls: list[str] = []
    times = fastest({"a": lambda: calls.append("a"), "b": lambda: [calls.append("b"), sum(range(20_000))]}, 3)
    assert calls == ["a", "b"] * 3
    assert 0 <= times["a"] < times["b"]


ROWS = [
    Row("wire", "reading", 1.234, 1.5, "0.20 us", "bare"),
    Row("wire", "writing", 2.5, 1.5, "0.30 us", "bare"),
    Row("fold", "folding", 9.0, None, "1.00 us", "bare"),
    Row("fold", "a small part", 0.1041, 0.1, "1.00 us", "bare"),
]


def test_the_table_has_a_line_for_every_row() -> None:
    lines = page.table(ROWS).splitlines()
    assert "| reading | 1.23 | 1.5 | ok | 0.20 us | bare |" in lines
    assert "| writing | 2.50 | 1.5 | over | 0.30 us | bare |" in lines
    assert "| folding | 9.00 |  |  | 1.00 us | bare |" in lines
    assert "| a small part | 0.104 | 0.1 | over | 1.00 us | bare |" in lines


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
