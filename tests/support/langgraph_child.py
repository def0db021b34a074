"""A process with a LangGraph agent whose threads and checkpoints are in SQLite files; driven by `ChildProcess`.

Each task is ``[name, folder, kind, input]``: the name ``run`` tells the last event and the codes of errors as a line,
``stall`` says ``running`` when the tool runs, and never ends. Every run of the tool is a line of ``sent.txt``.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agjson.adapters.langgraph.agent import LangGraphAgent
from agjson.errors import AgJSONError
from agjson.stores import SQLiteThreadStore
from agjson.wire import to_dict
from tests.support.langgraph_agents import ScriptedModel, calling, saying


def agent_in(folder: Path, saver: Any, store: Any, *, stalls: bool = False) -> LangGraphAgent:
    """The agent of these tests."""

    @tool
    def send(to: str) -> str:
        """Send a letter."""
        with (folder / "sent.txt").open("a") as file:
            file.write(f"{to}\n")
        if stalls:
            say("running")
            time.sleep(60)
        return f"sent to {to}"

    # Each process asks its model anew: what it answers follows from what the conversation ends with.
    model = FollowingModel()
    reviews = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    graph = create_agent(model, [send], middleware=[reviews], checkpointer=saver)
    return LangGraphAgent(graph, store=store)


class FollowingModel(ScriptedModel):
    """Calls a tool when the user says ``send``, and is done otherwise."""

    def _next(self, messages: list[Any]) -> Any:
        last = messages[-1]
        if last.type == "human" and last.text == "send":
            return calling(("c1", "send", {"to": "ann"}), ("c2", "send", {"to": "bob"}))
        return saying(f"done after {len(messages)}", f"ai-{len(messages)}")


def say(*words: object) -> None:
    """Tell the other process something."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


async def run(folder: Path, kind: str, ag_input: Any, *, stalls: bool) -> list[Any]:
    """Run one turn on stores of its own."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(SQLiteThreadStore(folder / "threads.db"))
        if kind == "async":
            path = str(folder / "graph.db")
            saver: Any = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(path))
        else:
            connection = sqlite3.connect(folder / "graph.db", check_same_thread=False)
            stack.callback(connection.close)
            saver = SqliteSaver(connection)
        agent = agent_in(folder, saver, store, stalls=stalls)
        try:
            return [to_dict(event) async for event in agent.run(ag_input)]
        except AgJSONError as error:
            return [{"type": "refused", "error": type(error).__name__}]


def main() -> None:
    """Do what the lines of the input say."""
    say("ready")
    for line in sys.stdin:
        name, folder, kind, ag_input = json.loads(line)
        say(asyncio.run(run(Path(folder), kind, ag_input, stalls=name == "stall")))


if __name__ == "__main__":
    main()
