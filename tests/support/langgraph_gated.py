"""An agent of LangChain whose dangerous tool needs a person, for the rules on approvals."""

from __future__ import annotations

import shutil
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, messages_to_dict
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver

from agjson.adapters.langgraph.agent import LangGraphAgent
from agjson.testing.contract import GatedScene, Gating
from tests.support.langgraph_agents import ScriptedModel

__all__ = ["GATING"]


class SceneModel(ScriptedModel):
    """Answers what the scene says."""

    scene: Any = None

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        reply = self.scene.reply(messages_to_dict(messages))
        calls: list[Any] = [
            {"id": call.call_id, "name": call.name, "args": dict(call.arguments)} for call in reply.calls
        ]
        return AIMessage(content=reply.words, tool_calls=calls, id=f"ai-{len(self.scene.requests)}")


class FileSaver(SqliteSaver):
    """The checkpointer on SQLite, for graphs on an event loop too: it makes the loop wait for the file."""

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.put_writes(config, writes, task_id, task_path)


def _agent(scene: GatedScene, *, blocking: bool) -> LangGraphAgent:
    """An agent that reviews calls in batches: with a review for each call the safe ones beside them do not wait.

    Its checkpoints are in a file; each agent of the scene opens it anew. The calls of one answer run in their order.
    """

    def tool(name: str) -> StructuredTool:
        def run(to: str) -> str:
            return scene.run_tool(name, {"to": to})

        return StructuredTool.from_function(run, name=name, description="A tool of the contract.")

    model = SceneModel()
    model.scene = scene
    if "folder" not in scene.kept:
        scene.kept["folder"] = mkdtemp()
        weakref.finalize(scene, shutil.rmtree, scene.kept["folder"], ignore_errors=True)
    database = sqlite3.connect(Path(scene.kept["folder"]) / "checkpoints", check_same_thread=False)
    database.execute("PRAGMA synchronous = OFF")  # no rule takes the power away
    saver = (SqliteSaver if blocking else FileSaver)(database)
    weakref.finalize(saver, database.close)
    reviews = HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(scene.gated, True))
    graph = create_agent(model, [tool(name) for name in scene.tools], middleware=[reviews], checkpointer=saver)
    # Blocking, LangGraph waits for its own stream in one of these.
    return LangGraphAgent(graph, config={"max_concurrency": 2 if blocking else 1}, **scene.settings)


def faults(request: Any) -> Iterable[str]:
    """What a provider would refuse: calls without a result right behind them, and results without a call."""
    open_calls: list[str] = []
    for message in _messages(request):
        data = message["data"]
        if message["type"] == "tool":
            if data["tool_call_id"] not in open_calls:
                yield f"a result of {data['tool_call_id']} without its call"
            else:
                open_calls.remove(data["tool_call_id"])
            continue
        if open_calls:
            yield f"calls without a result: {', '.join(open_calls)}"
        open_calls = [call["id"] for call in data.get("tool_calls") or ()]
    if open_calls:
        yield f"calls without a result: {', '.join(open_calls)}"


def _messages(request: Any) -> Sequence[Any]:
    return request


GATING = Gating(
    agents={
        "asynchronous": lambda scene: _agent(scene, blocking=False),
        "blocking": lambda scene: _agent(scene, blocking=True),
    },
    request_faults=faults,
    deaths=False,
)
"""How the adapter lets people approve tools: by the review of LangChain.

It tells of whatever ends a task as of a failure of the tool; ``test_agent_restart.py`` kills processes.
"""
