"""An agent of LangChain that asks before it sends a mail, behind one endpoint; `make chat` talks to it.

    .venv/bin/pip install langchain langgraph-checkpoint-sqlite
    .venv/bin/python -m examples.langgraph_server

`make serve`, done once, makes the .venv. Ask it something, stop the server while it waits, start it again, and answer:
the run goes on, and the mail is sent once. No key is needed: its model follows a script, and whatever is asked, it
wants to write to Ann.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from agjson.adapters.langgraph import LangGraphAgent
from agjson.approvals import Keys, Ledger, Policy
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from examples.approvals_server import kept_key


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    print(f"send_mail runs: {to}: {text}", flush=True)
    return f"Sent to {to}."


GATE: InterruptOnConfig = {"allowed_decisions": ["approve", "reject"], "description": "Send this mail?"}


class ScriptedModel(BaseChatModel):
    """Calls a tool when it is spoken to, and repeats in words what came of it."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **settings: Any) -> ScriptedModel:
        """Every model of an agent can be given tools."""
        return self

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        id = f"answer-{len(messages)}"
        if isinstance(messages[-1], ToolMessage):
            return AIMessage(id=id, content=f"The mail: {messages[-1].text}")
        call = {"name": "send_mail", "args": {"to": "ann", "text": "See you at noon."}, "id": f"call-{len(messages)}"}
        return AIMessage(id=id, content="I write to Ann.", tool_calls=[call])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        for word in re.findall(r"\S+\s*", answer.text):
            yield ChatGenerationChunk(message=AIMessageChunk(id=answer.id, content=word))
        if answer.tool_calls:
            yield ChatGenerationChunk(message=AIMessageChunk(id=answer.id, content="", tool_calls=answer.tool_calls))


def make_graph(file: str) -> Any:
    """The agent as it was before: LangChain's own, with LangChain's approval and a checkpointer."""
    return create_agent(
        ScriptedModel(),
        tools=[send_mail],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send_mail": GATE})],
        checkpointer=SqliteSaver(sqlite3.connect(file, check_same_thread=False)),
    )


def make_app(store: str) -> AgentApp:
    """The agent over HTTP. Threads and asks are in the file `store`; beside it, the graph's checkpoints and a key."""
    threads = SQLiteThreadStore(store)
    policy = Policy(keys=Keys({"1": kept_key(Path(f"{store}.key"))}))
    return AgentApp(
        LangGraphAgent(make_graph(f"{store}.graph")),
        store=threads,
        approvals=Ledger(SQLiteLedgerStore(threads), policy),
    )


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--port", default=8000, type=int, help="the port (default: %(default)s)")
    parser.add_argument(
        "--store", metavar="FILE", default="langgraph.db", help="keep threads and asks in this file (%(default)s)"
    )
    arguments = parser.parse_args()
    uvicorn.run(make_app(arguments.store), host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
