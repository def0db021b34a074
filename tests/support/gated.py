"""An agent whose tools need approval, behind a ledger: for servers in this process and in others.

The user's words say what it wants to do: ``mail NAME…`` (a gated call for each name, and a safe one beside several),
``relay NAME NAME`` (a gated call, and when it has run another one), ``stuck before|after`` (a gated call that waits
for ever before or after its effect), ``grant NAME`` (a gated call that offers a standing grant; none is asked for where
a rule allows it). Everything else is repeated.

Calls and asks are named after their turn: ``<turn>.<n>`` and ``ask-<turn>.<n>``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agjson.agents import Invocation
from agjson.approvals import CallRequest, Grant, Keys, Ledger, LedgerStore, Plan, Policy
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from agjson.types import AgGrantMode
from tests.support.scripted import Native, ScriptAgent, text

TOOL = "send_mail"
KEYS = {"k1": b"k" * 32}
MODES = [AgGrantMode(id="once"), AgGrantMode(id="always")]
EDITS = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"], "additionalProperties": False}


def ledger_on(store: LedgerStore, **fields: Any) -> Ledger:
    """A ledger with a fixed key."""
    return Ledger(store, Policy(**{"keys": Keys(KEYS), "grants": {"always": Grant(arguments="any")}, **fields}))


class Gated:
    """The script.

    Args:
        effect: the side effect of the tool: it is given ``sent`` or ``read`` and the name. Before it ``begun`` is told.
    """

    def __init__(self, effect: Callable[[str, str], object] | None = None) -> None:
        self.ran: list[tuple[str, str]] = []
        self._effect = effect

    @property
    def sent(self) -> list[str]:
        """To whom mails were sent."""
        return [name for what, name in self.ran if what == "sent"]

    def __call__(self, run: Invocation) -> Iterator[Any]:
        if run.decisions:
            yield from self._go_on(run)
            return
        block: Any = run.messages[-1].content[0] if run.messages else None
        command, *names = (block.text if block is not None else "nothing").split()
        if command == "mail":
            yield from asking(run.turn_id, [{"to": name} for name in names], safe=len(names) > 1)
        elif command == "relay":
            yield from asking(run.turn_id, [{"to": names[0], "then": names[1]}])
        elif command == "stuck":
            yield from asking(run.turn_id, [{"to": "ann", "stuck": names[0]}])
        elif command == "grant":
            yield from self._granted(run, names[0])
        else:
            yield from text(f"heard {command}", id=run.turn_id)

    def _go_on(self, run: Invocation) -> Iterator[Any]:
        then: list[str] = []
        for call in [each.call for each in run.decisions if each.runs and each.call is not None] + list(run.held):
            arguments: Any = call.arguments
            yield from self._run(call.call_id, arguments)
            then += [arguments["then"]] if "then" in arguments else []
        for each in run.decisions:
            if not each.runs and each.call is not None:
                yield done(each.call.call_id, "denied")
        if then:
            yield from asking(run.turn_id, [{"to": name} for name in then])
        else:
            yield from text(f"done {len(self.ran)}", id=run.turn_id)

    def _run(self, call_id: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
        name, stuck = arguments["to"], arguments.get("stuck")
        self._tell("begun", name)
        if stuck == "before":
            yield asyncio.sleep(3600)
        what = "read" if arguments.get("safe") else "sent"
        self.ran.append((what, name))
        self._tell(what, name)
        if stuck == "after":
            yield asyncio.sleep(3600)
        yield done(call_id)

    def _granted(self, run: Invocation, name: str) -> Iterator[Any]:
        plans: list[Plan] = []

        async def look() -> None:
            call = CallRequest(call_id=f"{run.turn_id}.1", name=TOOL, arguments={"to": name})
            plans.append(await run.plan([call], lambda _: True))

        yield look()
        if plans[0].ask:
            yield from asking(run.turn_id, [{"to": name}], grant_modes=MODES)
            return
        yield from called(run.turn_id, [{"to": name}])
        yield from self._run(f"{run.turn_id}.1", {"to": name})
        yield from text("as you have allowed", id=run.turn_id)

    def _tell(self, what: str, name: str) -> None:
        if self._effect is not None:
            self._effect(what, name)


def called(turn: str, calls: Sequence[Mapping[str, Any]]) -> Iterator[Native]:
    """A message with calls."""
    yield {"do": "message_start", "id": f"m-{turn}"}
    for place, arguments in enumerate(calls, 1):
        yield {"do": "tool_call", "tool_call_id": f"{turn}.{place}", "name": TOOL, "input": dict(arguments)}
    yield {"do": "message_end"}


def asking(turn: str, calls: Sequence[Mapping[str, Any]], *, safe: bool = False, **fields: Any) -> Iterator[Native]:
    """Calls that are asked about, and the pause."""
    yield from called(turn, [*calls, *([{"to": "all", "safe": True}] if safe else [])])
    for place, arguments in enumerate(calls, 1):
        id = f"{turn}.{place}"
        words = f"Send a mail to {arguments['to']}?"
        yield {
            "do": "hitl_ask",
            "kind": "approval",
            "ask_id": f"ask-{id}",
            "tool_call_id": id,
            "message": words,
            **fields,
        }
    yield {"do": "turn_paused"}


def done(call_id: str, outcome: str = "ok") -> Native:
    """The result of a call."""
    return {"do": "tool_done", "tool_call_id": call_id, "outcome": outcome, "message_id": f"{call_id}:result"}


def written(log: str) -> Callable[[str, str], object]:
    """An effect: a line in a file, whole whatever happens to the process."""

    def write(what: str, name: str) -> None:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{what} {name}\n".encode())
        os.close(file)

    return write


def gated_agent(script: Gated, **settings: Any) -> ScriptAgent:
    """The agent: it runs its tools itself."""
    return ScriptAgent(script, client_tools=set(), **settings)


def make_app(path: str, log: str, owned: bool = False, **settings: Any) -> AgentApp:
    """The app of a server process, on one file; ``owned``: the header ``x-user`` says who asks."""
    threads = SQLiteThreadStore(path)
    if owned:
        settings["authorize"] = lambda request, _: request.headers.get("x-user")
    approvals = ledger_on(SQLiteLedgerStore(threads))
    return AgentApp(gated_agent(Gated(written(log))), store=threads, approvals=approvals, **settings)
