"""Real graphs for tests of the LangGraph agent: a model that follows a script, and tools that note each run."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import Field
from typing_extensions import TypedDict

from agjson.types import AgHitlAnswer, AgPausedAsk, AgStreamEvent, PausedOutcome, ResumeInput, TurnDone
from agjson.wire import answer_to
from tests.support.scripted import Session

DECISIONS = ("approve", "edit", "reject", "respond")

Answer = AIMessage | BaseException
Way = Callable[[Session, Any], list[AgStreamEvent]]


class ScriptedModel(BaseChatModel):
    """Answers from a list, one after another, in chunks of a word; notes what it was asked."""

    answers: list[Any] = Field(default_factory=list[Any])
    asked: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.asked.append(list(messages))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._next(messages)
        words = str(answer.content).split(" ")
        for index, word in enumerate(words):
            text = word if index == len(words) - 1 else f"{word} "
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, id=answer.id))
        fragments: list[Any] = [
            {"name": call["name"], "args": _json(call["args"]), "id": call["id"], "index": index}
            for index, call in enumerate(answer.tool_calls)
        ]
        if fragments:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", id=answer.id, tool_call_chunks=fragments))


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


def calling(*calls: tuple[str, str, dict[str, Any]], id: str = "ai-1", text: str = "One moment") -> AIMessage:
    """An answer that calls tools: of each the id, the name and the arguments."""
    tool_calls: list[Any] = [{"id": call, "name": name, "args": args} for call, name, args in calls]
    return AIMessage(content=text, id=id, tool_calls=tool_calls)


def saying(text: str, id: str = "ai-2") -> AIMessage:
    """An answer in words."""
    return AIMessage(content=text, id=id)


class Desk:
    """Tools that note each run, so that a test can say that none ran twice."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.looked: list[str] = []

    def tools(self) -> list[BaseTool]:
        """``send``, which is dangerous, and ``look``, which is not."""

        @tool
        def send(to: str) -> str:
            """Send a letter."""
            self.sent.append(to)
            if to == "nowhere":
                time.sleep(0.2)  # the others of the step are through by then
                raise ValueError("no such address")
            return f"sent to {to}"

        @tool
        def look(at: str) -> str:
            """Look something up."""
            self.looked.append(at)
            return f"found {at}"

        return [send, look]


def approving(saver: Any, desk: Desk, *answers: Answer, allowed: Sequence[str] = DECISIONS, **more: Any) -> Any:
    """An agent of LangChain whose ``send`` needs an approval."""
    gate: Any = {"send": {"allowed_decisions": list(allowed)}}
    reviews = HumanInTheLoopMiddleware(interrupt_on=gate, **more)
    return create_agent(ScriptedModel(*answers), desk.tools(), middleware=[reviews], checkpointer=saver)


class Settings(TypedDict, total=False):
    """The context of a graph that takes one."""

    user: str
    model: str


class Notes(TypedDict, total=False):
    """The state of the graphs without a model."""

    messages: Annotated[list[Any], add_messages]
    said: Annotated[list[Any], operator.add]
    topic: str


def echoing(saver: Any, *answers: Answer, context: bool = False) -> tuple[Any, ScriptedModel]:
    """A graph of one node that asks a model, and the model; with a context, ``graph.contexts`` notes what it was."""
    model = ScriptedModel(*answers)
    contexts: list[Any] = []

    def ask(state: Notes, runtime: Runtime[Any]) -> Any:
        contexts.append(runtime.context)
        return {"messages": [model.invoke(state.get("messages", []))]}

    builder = StateGraph(Notes, context_schema=Settings) if context else StateGraph(Notes)
    builder.add_node("model", ask)
    builder.add_edge(START, "model")
    graph: Any = builder.compile(checkpointer=saver)
    graph.contexts = contexts
    return graph, model


def asking(
    saver: Any, *questions: Any, parallel: bool = False, ran: list[Any] | None = None, stops: bool = False
) -> Any:
    """A graph that asks: one node for all questions, or a node for each of them at once.

    ``ran`` notes each answer when a node has ended. With ``stops`` it asks nothing, but stops before its only node.
    """
    ran = [] if ran is None else ran
    builder = StateGraph(Notes)
    if stops:
        builder.add_node("passing", lambda state: ran.append("passed"))
        builder.add_edge(START, "passing")
        return builder.compile(checkpointer=saver, interrupt_before=["passing"])

    def node(mine: Sequence[Any]) -> Any:
        def ask(state: Notes) -> Any:
            answers = [interrupt(question) for question in mine]
            ran.extend(answers)
            return {} if parallel else {"said": answers}

        return ask

    groups = [[question] for question in questions] if parallel else [list(questions)]
    for index, group in enumerate(groups):
        builder.add_node(f"ask-{index}", node(group))
        builder.add_edge(START, f"ask-{index}")
        builder.add_edge(f"ask-{index}", END)
    return builder.compile(checkpointer=saver)


# What a client does


def asks_of(events: Sequence[AgStreamEvent]) -> list[AgPausedAsk]:
    """The asks that a turn has paused on."""
    last = events[-1]
    assert isinstance(last, TurnDone), last
    assert isinstance(last.outcome, PausedOutcome), last
    return list(last.outcome.asks)


def resume(*answers: AgHitlAnswer, turn: str = "r", thread: str = "th", **fields: Any) -> ResumeInput:
    """A resume."""
    return ResumeInput(thread_id=thread, turn_id=turn, answers=list(answers), **fields)


def approve(ask: AgPausedAsk, **fields: Any) -> AgHitlAnswer:
    """Agreement, perhaps with a reply."""
    return answer_to(ask, **fields)


def reject(ask: AgPausedAsk, reason: str | None = None) -> AgHitlAnswer:
    """Refusal."""
    return answer_to(ask, "declined", reason=reason)


def _in_a_loop(session: Session, ag_input: Any) -> list[AgStreamEvent]:
    return asyncio.run(session.run(ag_input))


def _without_a_loop(session: Session, ag_input: Any) -> list[AgStreamEvent]:
    return session.run_sync(ag_input)


both_ways = pytest.mark.parametrize("way", [_in_a_loop, _without_a_loop], ids=["in a loop", "without a loop"])
