"""A browser's own readers, fetch and EventSource, against the server: every event once, in order, to the end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agjson.fold import reduce
from agjson.stores import SQLiteThreadStore
from agjson.wire import from_dict, to_dict
from examples.anthropic_server import make_app
from tests.support.browser import Asked, Host, opened
from tests.support.corpus import ROOT

# Three seconds of it are how long a browser waits before it connects again.
TIMEOUT = 60.0

# Reads the answer to its post, and then asks whether there is more.
FETCH = """<!doctype html><meta charset="utf-8"><script type="module">
import { readEvents, start } from "/read_stream.mjs";
const events = [];
let place;
for await (const { id, event } of readEvents(await start("/", "Wie viel?", "th/é"))) events.push(event), (place = id);
const more = new EventSource(`/threads/${encodeURIComponent("th/é")}/events?lastEventId=${encodeURIComponent(place)}`);
more.onmessage = ({ data }) => events.push(JSON.parse(data));
more.onerror = () => fetch("/seen", { method: "POST", body: JSON.stringify({ events, state: more.readyState }) });
</script>"""

# Leaves the answer to its post after one event, and follows the turn by an EventSource until that gives up.
EVENT_SOURCE = """<!doctype html><meta charset="utf-8"><script type="module">
import { readEvents, start } from "/read_stream.mjs";
for await (const _ of readEvents(await start("/", "How much?", "th"))) break;
const messages = [];
let opens = 0;
const source = new EventSource("/threads/th/events");
source.onopen = () => opens++;
source.onmessage = ({ data, lastEventId }) => messages.push([lastEventId, data]);
source.onerror = () => {
  if (source.readyState === EventSource.CLOSED)
    fetch("/seen", { method: "POST", body: JSON.stringify({ messages, opens }) });
};
</script>"""

# Stands at the end of the example's page: sends what stands in its form, comes back in the middle of the answer and
# again after it, asks once more and stops that. Tells what the page shows each time.
VISITOR = """<script type="module">
const [form, said, stop] = ["form", "said", "stop"].map((id) => document.getElementById(id));
const until = async (holds) => { while (!holds()) await new Promise((later) => setTimeout(later, 20)); };
const shows = (words) => until(() => said.lastChild?.textContent.includes(words));
const tell = async () => {
  const lines = [...said.children].map((line) => [line.className, line.textContent]);
  await fetch("/seen", { method: "POST", body: JSON.stringify(lines) });
};
await until(() => form.onsubmit);
const visit = (sessionStorage.visits = Number(sessionStorage.visits ?? 0) + 1);
if (visit === 1) {
  form.requestSubmit();
  await shows("The other way");
} else {
  await shows("change any money.");
  await until(() => stop.disabled);
  await tell();
}
if (visit < 3) location.reload();
else {
  form.requestSubmit();
  await until(() => said.childElementCount > 6);
  stop.click();
  await shows("cut off: stopped");
  await tell();
}
</script>"""


def stored(path: Path, thread_id: str) -> tuple[list[bytes], Any]:
    """The events of a thread's only turn as they were stored, and the thread's fold."""

    async def read() -> tuple[list[bytes], Any]:
        async with SQLiteThreadStore(path) as store:
            thread, turn = await store.load(thread_id), await store.latest_turn(thread_id)
            assert thread is not None
            assert turn is not None
            return list(await store.read_log(thread_id, turn.turn_id)), to_dict(thread.result)

    return asyncio.run(read())


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the threads. Nothing here may ask the provider."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return tmp_path / "threads.db"


def test_fetch_reads_the_stream_of_its_post(chromium: str, path: Path, tmp_path: Path) -> None:
    app = make_app(str(path), seconds_per_event=0.005)
    with Host(app, {"/page": FETCH}) as host, opened(chromium, f"{host.url}/page", tmp_path):
        seen = host.seen(TIMEOUT)
        log, result = stored(path, "th/é")
        assert seen["events"] == [json.loads(event) for event in log]
        assert to_dict(reduce(from_dict(event, as_="event") for event in seen["events"]).result) == result
        # After the terminal there is nothing: 204, and the EventSource is closed for good.
        assert (host.asked, seen["state"]) == ([Asked(None, 204)], 2)


def test_an_event_source_goes_on_after_a_drop_and_stops_at_the_end(chromium: str, path: Path, tmp_path: Path) -> None:
    app = make_app(str(path), seconds_per_event=0.05)
    with Host(app, {"/page": EVENT_SOURCE}, drops=[9]) as host, opened(chromium, f"{host.url}/page", tmp_path):
        seen = host.seen(TIMEOUT)
        log, _ = stored(path, "th")
        assert [data.encode() for _, data in seen["messages"]] == log
        turn_id = json.loads(log[0])["turnId"]
        assert [place for place, _ in seen["messages"]] == [f"{turn_id}:{seq}" for seq in range(len(log))]
        assert json.loads(log[-1])["type"] == "turn.done"
        # From the first event; from where the connection was dropped; and at the end.
        assert host.asked == [Asked(None, 200), Asked(f"{turn_id}:8", 200), Asked(f"{turn_id}:{len(log) - 1}", 204)]
        assert seen["opens"] == 2


def test_the_example_page_comes_back_to_its_turn_and_stops_one(chromium: str, path: Path, tmp_path: Path) -> None:
    app = make_app(str(path), seconds_per_event=0.1)
    page = (ROOT / "examples" / "page.html").read_text(encoding="utf-8")
    # The connection of the first post breaks, so that what comes back to the turn begins in the page itself.
    with Host(app, {"/": page + VISITOR}, post_drops=[20]) as host, opened(chromium, host.url, tmp_path):
        followed = host.seen(TIMEOUT)
        assert followed[0] == ["user", "What are 50 dollars in euros?"]
        assert followed[1:3] == [["tool", 'get_rate {"pair":"USD/EUR"}'], ["tool", "0.92"]]
        [[kind, words]] = followed[3:]
        assert kind == "assistant"
        assert words.startswith("50 dollars are 46 euros 💶: a dollar")
        assert host.seen(TIMEOUT) == followed  # what was seen live is what is loaded later
        stopped = host.seen(TIMEOUT)
        assert stopped[:5] == [*followed, followed[0]]
        assert stopped[-1] == ["note", "cut off: stopped"]
    assert host.asked[0].status == 200
