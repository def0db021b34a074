"""An agent of LangChain whose dangerous tool needs a person, for the rules on approvals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, messages_to_dict
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

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


def _agent(scene: GatedScene, *, blocking: bool) -> LangGraphAgent:
    """An agent that reviews calls in batches: with a review for each call the safe ones beside them do not wait."""

    def tool(name: str) -> StructuredTool:
        def run(to: str) -> str:
            return scene.run_tool(name, {"to": to})

        return StructuredTool.from_function(run, name=name, description="A tool of the contract.")

    model = SceneModel()
    model.scene = scene
    saver = scene.kept.setdefault("checkpointer", InMemorySaver())
    reviews = HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(scene.gated, True))
    graph = create_agent(model, [tool(name) for name in scene.tools], middleware=[reviews], checkpointer=saver)
    return LangGraphAgent(graph, blocking=blocking, **scene.settings)


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
)
