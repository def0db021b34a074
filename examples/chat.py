"""A chat in the terminal with any AgJSON server, such as examples/anthropic_server.py.

Type a message, or /stop while the agent answers, or /quit. What the agent asks is answered by yes, or by no and why;
what else it may let a person do, such as to change the arguments of a call, is not for this chat. Ctrl-C leaves; the
turn goes on at the server, or waits there, and --thread comes back to it. A server that restarts in the middle of an
answer, or while it waits for yours, is waited for.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import shlex
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from agjson import AgHitlAnswer, AgToolResult, TextBlock, answer_to
from agjson.cli.terminal import shown_text, shown_word
from agjson.errors import DecodeError
from agjson.middleware.client import AgentClient, ClientError, ConnectionLostError, Turn
from agjson.types import UNSET, AgClientCapabilities, AgHitlCapabilities, AgPausedAsk, ToolCallBlock
from agjson.urls import safe_url
from agjson.wire import encode

# So that the server sends no ask that cannot be answered here.
CAPABILITIES = AgClientCapabilities(hitl=AgHitlCapabilities(ask=True, form=True, grant_modes=True, auth=False))


class Screen:
    """Writes what a turn says. Whatever comes from a model or a tool is made harmless for a terminal."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._fresh = True  # the cursor is at the beginning of a line

    def show(self, event: Any, *, with_user: bool) -> None:
        """Write an event as it comes; `with_user`: also what the user has said."""
        match event.type:
            case "text.delta":
                self._write(shown_text(event.delta))
            case "text.end":
                self.line("")
            case "reasoning.start":
                self.line("… thinks")
            case "content.block" if with_user and event.block.type == "text":
                self.line(f"> {shown_text(event.block.text)}")
            case "tool.start":
                self._names[event.tool_call_id] = event.name or event.tool_call_id
            case "tool.args.assembled":
                name = self._names.get(event.tool_call_id) or event.tool_call_id
                self.line(f"→ {shown_word(name)} {as_json(event.input)}")
            case "tool.done":
                outcome = "" if event.outcome in (None, "ok") else f"{event.outcome}: "
                self.line(f"← {outcome}{shown_word(text_of(event.content))}")
            case "messages.snapshot":
                for message in event.messages:
                    if words := text_of(message.content):
                        self.line(f"{'> ' if message.role == 'user' else ''}{shown_text(words)}")
            case "error" | "turn.error":
                self.note(event.message)
            case "turn.abort":
                self.note(f"cut off: {event.reason or 'no reason given'}")
            case _:
                pass

    def line(self, text: str) -> None:
        """Write a line of its own; nothing: end the one that is being written."""
        if not self._fresh:
            self._write("\n")
        if text:
            self._write(f"{text}\n")

    def note(self, text: str) -> None:
        """Say something about the conversation."""
        self.line(f"! {shown_word(text)}")

    def prompt(self, text: str) -> None:
        """Ask for a line."""
        self.line("")
        self._write(text)
        self._fresh = True  # the user's own line end follows

    def _write(self, text: str) -> None:
        if text:
            print(text, end="", flush=True)
            self._fresh = text.endswith("\n")


class Chat:
    """One thread, from the keyboard to the server and back."""

    def __init__(self, client: AgentClient, thread_id: str) -> None:
        self._client = client
        self._thread_id = thread_id
        self._screen = Screen()
        self._lines: deque[str | None] = deque()
        self._came = asyncio.Event()
        self._turn: Turn | None = None
        self.begun = False  # the server has said something of the thread, so that it can be come back to
        self._stopping: set[asyncio.Task[None]] = set()

    def take(self, line: str | None) -> None:
        """Take a line of the keyboard, None at its end: /stop at once, everything else when it is asked for."""
        if line == "/stop" and self._turn is not None:
            stopping = asyncio.ensure_future(self._stop(self._turn))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)
        else:
            self._lines.append(line)
            self._came.set()

    async def talk(self, *, come_back: bool) -> None:
        """Talk until the user goes; `come_back`: first what was said, and the turn that runs or waits."""
        if come_back:
            await self._answer(self._client.attach(self._thread_id), with_user=True)
        while (line := await self._ask("> ")) is not None and line != "/quit":
            if line == "/stop":
                self._screen.note("nothing runs")
            elif line:
                await self._answer(self._client.start(line, thread_id=self._thread_id, capabilities=CAPABILITIES))

    async def _answer(self, turn: Turn | None, *, with_user: bool = False) -> None:
        """Show a turn, and those that follow from what it asks of the user."""
        send_again: Callable[[], Turn] | None = None
        try:
            while turn is not None:
                turn = await self._show(turn, with_user, send_again)
                with_user, send_again = False, None
                if turn.open_asks:
                    send_again = await self._answers_to(turn)
                    turn = None if send_again is None else send_again()
                elif turn.open_calls:
                    turn = await self._bring(turn.open_calls)
                else:
                    turn = None
        except ClientError as error:
            self._screen.note(str(error))

    async def _show(self, turn: Turn, with_user: bool, send_again: Callable[[], Turn] | None) -> Turn:
        """Show a turn to its end. It may outlive its server: then it is taken up from the next one.

        `send_again` makes the turn anew where no server was there to take its input.
        """
        waiting = False
        try:
            while True:
                self._turn = turn
                try:
                    async for event in turn:
                        waiting = False
                        self.begun = True
                        self._screen.show(event, with_user=with_user)
                    return turn
                except ConnectionLostError as error:
                    is_new = turn.last_event_id is None
                    if error.code not in ("retries_used_up", "unreachable") or (is_new and send_again is None):
                        raise
                    if not waiting:
                        self._screen.note("the server has gone; waiting for it (Ctrl-C leaves)")
                    waiting = True
                    if is_new and send_again is not None:
                        turn = send_again()
                    else:
                        turn = self._client.attach(self._thread_id, turn.last_event_id)
        finally:
            self._turn = None
            self._screen.line("")

    async def _stop(self, turn: Turn) -> None:
        try:
            await turn.stop()
        except ClientError as error:
            self._screen.note(str(error))

    async def _answers_to(self, turn: Turn) -> Callable[[], Turn] | None:
        """Ask the user what a turn asks; returns what sends the answers. None: the user has gone."""
        calls = {
            block.tool_call_id: block
            for message in turn.result.messages
            for block in message.content
            if isinstance(block, ToolCallBlock)
        }
        answers: list[AgHitlAnswer] = []
        for ask in turn.open_asks:
            answer = await self._answer_to(ask, calls.get(ask.tool_call_id or ""))
            if answer is None:
                return None
            answers.append(answer)
        return lambda: self._client.resume(self._thread_id, answers, capabilities=CAPABILITIES)

    async def _bring(self, calls: Sequence[ToolCallBlock]) -> Turn | None:
        results: list[AgToolResult] = []
        for call in calls:
            line = await self._ask(f"? the result of {shown_word(call.name)} {as_json(call.input)}: ")
            if line is None:
                return None
            results.append(AgToolResult(tool_call_id=call.tool_call_id, content=[TextBlock(text=line)]))
        return self._client.tool_result(self._thread_id, results, capabilities=CAPABILITIES)

    async def _answer_to(self, ask: AgPausedAsk, call: ToolCallBlock | None) -> AgHitlAnswer | None:
        """Ask the user until the answer fits; None: the user has gone, and the ask stays open."""
        if call is not None:  # whoever agrees has to see to what
            self._screen.line(f"  {shown_word(call.name)} {as_json(call.input)}")
        for choice in (ask.choices or ()) if ask.kind == "choice" else ():
            self._screen.line(f"  {shown_word(choice.id)}: {shown_word(choice.label)}")
        for mode in ask.grant_modes or ():
            self._screen.line(f"  {shown_word(mode.id)}: {shown_word(mode.label or mode.id)}")
        if ask.kind == "form" and ask.schema is not UNSET:
            self._screen.line(f"  schema: {as_json(ask.schema)}")
        if ask.url is not None:
            self._screen.line(f"  {safe_url(ask.url) or 'a link that is not shown'}")
        while True:
            words = shown_word(ask.message or ask.reason or ask.kind)
            hint = HINTS["choice" if ask.grant_modes else ask.kind]
            line = await self._ask(f"? {words} [{hint}, or no and why]: ")
            if line is None:
                return None
            try:
                answer = answer_of(ask, line)
            except DecodeError as error:
                self._screen.note(error.message)
                continue
            if answer is not None:
                return answer

    async def _ask(self, prompt: str) -> str | None:
        self._screen.prompt(prompt)
        while not self._lines:
            self._came.clear()
            await self._came.wait()
        line = self._lines.popleft()
        if line is None:
            self._lines.append(None)  # the keyboard has ended for every later question too
        return line


HINTS = {
    "approval": "yes",
    "choice": "one of these",
    "text": "words",
    "form": "a JSON object",
    "url": "yes, once you have opened it",
    "auth": "yes",
}


def answer_of(ask: AgPausedAsk, line: str) -> AgHitlAnswer | None:
    """The answer that a line is to an ask; None: it is none. A grant mode that is none raises."""
    first, _, rest = line.strip().partition(" ")

    if first.lower() in ("n", "no"):
        return answer_to(ask, "declined", reason=rest or None)
    match ask.kind:
        case "approval" if ask.grant_modes:
            return answer_to(ask, grant_mode_id=line.strip())
        case "choice" if line.strip() in [choice.id for choice in ask.choices or ()]:
            return answer_to(ask, reply=line.strip())
        case "text" if line:
            return answer_to(ask, reply=line)
        case "form":
            try:
                return answer_to(ask, reply=json.loads(line))
            except ValueError:
                return None
        case "approval" | "url" | "auth" if first.lower() in ("y", "yes"):
            return answer_to(ask)
        case _:
            return None


def text_of(content: Sequence[Any]) -> str:
    """The text of blocks; of the others their kind."""
    shown = [block.text if block.type == "text" else f"[{block.type}]" for block in content if block.type not in HIDDEN]
    return "\n".join(shown)


HIDDEN = ("reasoning", "provider-raw")


def as_json(value: object) -> str:
    """A value as JSON on one line."""
    return shown_word(encode(value).decode())


def read_lines(put: Callable[[str | None], object]) -> None:
    """Give each line of the keyboard away, and None at its end."""
    # Not through sys.stdin: a thread that waits in there holds its lock when the program ends.
    with io.FileIO(0, closefd=False) as keyboard:
        for line in keyboard:
            put(line.decode(errors="replace").rstrip("\r\n"))
    put(None)


async def chat(url: str, thread_id: str, *, come_back: bool, headers: dict[str, str]) -> None:
    """Talk with the agent at an address, and say at the end how to come back."""
    try:
        client = AgentClient(url, headers=headers, max_retries=3)
    except ValueError as error:
        raise SystemExit(f"chat.py: {error}") from None
    talk = Chat(client, thread_id)
    try:
        async with client:
            loop = asyncio.get_running_loop()
            threading.Thread(
                target=read_lines, args=[lambda line: loop.call_soon_threadsafe(talk.take, line)], daemon=True
            ).start()
            await talk.talk(come_back=come_back)
    finally:
        if talk.begun:
            again = shlex.join([python(), sys.argv[0], url, "--thread", thread_id])
            print(f"\nTo come back: {again}{', with the same --header' if headers else ''}")


def python() -> str:
    """The interpreter that runs this, from here if it is below."""
    here = os.path.relpath(sys.executable)
    return sys.executable if here.startswith(os.pardir) else here


def main() -> None:
    """Read the command line, and talk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000", help="the agent (default: %(default)s)")
    parser.add_argument("--thread", metavar="ID", help="come back to a thread; without it a new one begins")
    parser.add_argument(
        "--header", metavar="NAME:VALUE", action="append", default=[], help="send it with every request"
    )
    arguments = parser.parse_args()
    headers = {name.strip(): value.strip() for name, _, value in (each.partition(":") for each in arguments.header)}
    thread_id = arguments.thread or f"chat-{uuid.uuid4()}"
    with suppress(KeyboardInterrupt):
        asyncio.run(chat(arguments.url, thread_id, come_back=arguments.thread is not None, headers=headers))


if __name__ == "__main__":
    main()
