"""A browser without a window, and a server that drops connections, for pages that tell what they have seen."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

__all__ = ["Asked", "Host", "find_chromium", "opened"]

_EVENTS = re.compile(r"/threads/.+/events")
# What goes wrong in a page is told in place of what it would have seen.
_TELL = """<script>
for (const kind of ["error", "unhandledrejection"])
  addEventListener(kind, (event) =>
    fetch("/seen", { method: "POST", body: JSON.stringify({ failed: String(event.reason ?? event.message) }) }));
</script>"""


@dataclass(frozen=True)
class Asked:
    """A request for the rest of a turn: the ``Last-Event-ID`` that the browser sent, and the status of the answer."""

    last_event_id: str | None
    status: int


class Host:
    """An application on a socket of its own, with test pages beside it.

    Args:
        app: the application.
        pages: HTML by its path.
        drops: after how many events the first streams of ``GET .../events`` break off, one after the other.
        post_drops: the same of the streams of ``POST /``.
    """

    def __init__(
        self,
        app: Any,
        pages: Mapping[str, str] | None = None,
        *,
        drops: Sequence[int] = (),
        post_drops: Sequence[int] = (),
    ) -> None:
        self._app = app
        self._pages = dict(pages or {})
        self._drops = list(drops)
        self._post_drops = list(post_drops)
        self._seen: queue.Queue[Any] = queue.Queue()
        self.asked: list[Asked] = []
        self.url = ""

    def __enter__(self) -> Host:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        # A stream that breaks off is an error to the server's log.
        config = uvicorn.Config(
            self._serve, interface="asgi3", ws="none", log_level="critical", timeout_graceful_shutdown=2
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(15)
        self._listener.close()

    def seen(self, timeout: float) -> Any:
        """What a page has posted to ``/seen``: JSON, waited for so many seconds."""
        seen = self._seen.get(timeout=timeout)
        assert not isinstance(seen, dict) or "failed" not in seen, seen
        return seen

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path")
        if scope["type"] == "http" and path == "/seen":
            self._seen.put(json.loads(await Request(scope, receive).body()))
            await Response(status_code=204)(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and path in self._pages:
            # Behind the document's own beginning, which must stay the first thing in it.
            await HTMLResponse(self._pages[path] + _TELL)(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and _EVENTS.fullmatch(path):
            place = Request(scope).headers.get("last-event-id")
            await self._app(scope, receive, _dropping(send, self._drops, lambda status: self._ask(place, status)))
        elif scope["type"] == "http" and scope["method"] == "POST" and path == "/":
            await self._app(scope, receive, _dropping(send, self._post_drops, lambda _: None))
        else:
            await self._app(scope, receive, send)

    def _ask(self, last_event_id: str | None, status: int) -> None:
        self.asked.append(Asked(last_event_id, status))


def _dropping(send: Any, drops: list[int], answered: Callable[[int], None]) -> Any:
    """A ``send`` that breaks a stream off where the next of the drops says."""
    left = -1

    async def pass_on(message: Any) -> None:
        nonlocal left
        if message["type"] == "http.response.start":
            answered(message["status"])
            if message["status"] == 200 and drops:
                left = drops.pop(0)
        elif left >= 0:
            frames = message.get("body", b"").split(b"\n\n")
            left += sum(frame.startswith(b"retry:") for frame in frames)  # which is no event
            if len(frames) > left:
                # Half an event more, which the browser must not take for one.
                half = frames[left][: len(frames[left]) // 2]
                await send({**message, "body": b"\n\n".join([*frames[:left], half]), "more_body": True})
                raise ConnectionAbortedError("dropped")
            left -= len(frames) - 1
        await send(message)

    return pass_on


def find_chromium() -> str | None:
    """The browser's program; None: there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def opened(program: str, url: str, folder: Path) -> Iterator[None]:
    """A page in a browser of its own; at the end every process of it is killed.

    Args:
        program: the browser.
        url: the page.
        folder: where it may write.
    """
    command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"]
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    with (folder / "browser.log").open("wb") as log:
        browser = subprocess.Popen(
            [*command, f"--user-data-dir={folder / 'profile'}", url],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait(30)
