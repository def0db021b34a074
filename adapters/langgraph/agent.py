"""An agent on a compiled graph, of LangGraph or of LangChain's ``create_agent`` (spec §3, §3.1, §8.0)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from agjson.adapters.langgraph._graph import Durability, Graph, run_async, run_blocking
from agjson.adapters.langgraph._resume import check_answers, denied_calls, resumption_of
from agjson.adapters.langgraph._steps import steps
from agjson.adapters.langgraph.inbound import GraphWays, PreparedRun, prepare_run
from agjson.adapters.langgraph.normalizer import LangGraphNormalizer
from agjson.agents import (
    Agent,
    Continuations,
    Invocation,
    NormalizerSettings,
    OnPaused,
    ThreadStore,
    UnknownContinuationError,
)
from agjson.types import UNSET, AgCapabilities, AgMessage, StartInput, ToolResultBlock, UnsetType

if TYPE_CHECKING:
    from agjson.approvals import Ledger

__all__ = ["MODES", "LangGraphAgent"]

MODES = ("messages", "updates", "values", "tasks", "custom", "checkpoints", "tools")
"""The stream modes that tell everything; ``debug`` would say two of them again."""

_OfRun: TypeAlias = Mapping[str, Any] | Callable[[Invocation], Any] | None


class LangGraphAgent(Agent):
    """Runs a compiled graph (spec §3, §3.1, §8.0).

    A graph with a checkpointer gets the messages that it does not have yet, and goes on from its pauses: always by a
    map from interrupt ids to answers, and only where its latest checkpoint still waits for just these. What the graph's
    state says against it ends the turn by `turn.error` before the graph runs:

    * ``unknown_thread``, ``no_pending_ask``, ``stale_checkpoint``: the graph does not wait for this answer (any more);
    * ``answer_already_taken``, ``ask_changed``: somebody else has answered, and the graph cannot be asked again;
    * ``thread_moved``: the graph waits for answers that somebody else has to give, which a start would discard.

    A start on a thread whose last step was cut off, or whose pause is given up (``on_paused="discard"``), gives the
    calls that are left without a result one that says so. A graph without a checkpointer gets the whole conversation
    each time, and its asks say that they cannot be answered.

    Args:
        graph: the compiled graph.
        input_key: the state key that holds the messages.
        context: the context of every run, or a function that makes it for an `Invocation`. Settings of an input go into
            fields of the same name (``model``, ``max_tokens``, ``frontend_tools``) where the graph's context schema has
            them.
        config: the ``RunnableConfig`` of every run, or a function that makes it. The thread of the checkpointer is its
            ``configurable.thread_id``, and else the AgJSON thread.
        configurable: names of settings that the graph reads from ``config["configurable"]``, as
            ``init_chat_model(configurable_fields=...)`` does. A setting with no place is named in an `error` event.
        modes: the stream modes to ask for; with fewer, less is told, but a pause always is.
        client_tools: the tools that the client runs, by name, or what tells them. The graph ends after a call of one,
            and is entered again with its result.
        normalizer: further settings of `LangGraphNormalizer`, such as ``tell``.
        blocking: run the graph by ``stream`` in place of ``astream``; None: where its checkpointer is for blocking use
            alone, as ``SqliteSaver``.
        durability: when the graph writes its checkpoints, as ``stream`` takes it; None: as LangGraph does by default.
            Whatever it is, an answer is used once: a pause is spent in the thread before the graph runs.
        store: as for `Agent`, like the five that follow.
        continuations: this adapter needs none: the handles of a pause are in its asks, and its state in the
            checkpointer.
        approvals: the ledger. Without one asks have no tokens, and arguments may be edited wherever the graph lets a
            person do so.
        on_paused: what a start may do to a paused thread.
        capabilities: what the agent says of itself.
        close_timeout: how many seconds the close of a stream may take.

    Attributes:
        graph: the graph.

    Raises:
        TypeError: no compiled graph.
    """

    def __init__(
        self,
        graph: Any,
        *,
        input_key: str = "messages",
        context: Any = None,
        config: _OfRun = None,
        configurable: Collection[str] = (),
        modes: Sequence[str] = MODES,
        client_tools: Collection[str] | Callable[[str], bool] = (),
        normalizer: Mapping[str, Any] | None = None,
        blocking: bool | None = None,
        durability: Durability | None = None,
        store: ThreadStore | None = None,
        continuations: Continuations | None = None,
        approvals: Ledger | None = None,
        on_paused: OnPaused = "refuse",
        capabilities: AgCapabilities | UnsetType | None = UNSET,
        close_timeout: float = 5.0,
    ) -> None:
        super().__init__(
            store=store,
            continuations=continuations,
            approvals=approvals,
            on_paused=on_paused,
            capabilities=capabilities,
            close_timeout=close_timeout,
        )
        self.graph = graph
        self._graph = Graph(graph, modes, blocking=blocking, durability=durability)
        self._input_key = input_key
        self._context = context
        self._config = config
        self._configurable = frozenset(configurable)
        self._client_tools = client_tools if callable(client_tools) else frozenset(client_tools).__contains__
        self._settings: dict[str, Any] = dict(normalizer or {})
        self._input_keys = self._graph.input_keys()
        self._context_fields = self._graph.context_fields()

    def _normalizer(self, invocation: Invocation, settings: NormalizerSettings) -> LangGraphNormalizer:
        given: dict[str, Any] = {
            "messages_key": self._input_key,
            "denied": denied_calls(invocation.asks, invocation.answers),
            "resumable": self._graph.has_memory,
            **self._settings,
        }
        return LangGraphNormalizer(**settings, **given)

    def _is_client_tool(self, name: str) -> bool:
        return self._client_tools(name)

    def _check(self, invocation: Invocation) -> None:
        check_answers(invocation.asks, invocation.answers, after=len(invocation.thread.pending.answers))

    def _prepare(self, invocation: Invocation) -> PreparedRun:
        answers = invocation.answers
        if answers and not self._graph.has_memory:
            raise UnknownContinuationError(
                "the graph has no checkpointer, so that it cannot go on from its pause: compile it with one",
                "$.answers",
            )
        ways = GraphWays(
            input_key=self._input_key,
            input_keys=self._input_keys,
            config=_of_run(self._config, invocation),
            context=_of_run(self._context, invocation),
            context_fields=self._context_fields,
            configurable=self._configurable,
        )
        thread = invocation.thread
        return prepare_run(
            invocation.input,
            ways,
            history=invocation.history,
            said=_said(invocation),
            run=invocation.run,
            capabilities=invocation.capabilities,
            resumption=resumption_of(invocation.asks, answers) if answers else None,
            asks=invocation.asks,
            issued=thread.pending.asks,
            shared_state=thread.result.state,
            whole=not self._graph.has_memory,
            turn_id=invocation.turn_id,
        )

    def _invoke(self, invocation: Invocation) -> AsyncIterator[Any] | Iterator[Any]:
        plan = steps(self._graph, invocation, discards=invocation.on_paused == "discard")
        return run_blocking(self._graph, plan) if self._graph.is_blocking else run_async(self._graph, plan)


def _of_run(given: Any, invocation: Invocation) -> Any:
    return given(invocation) if callable(given) else given


def _said(invocation: Invocation) -> list[AgMessage]:
    """What the input adds for the graph: its messages; results of client tools, also those that came before.

    Words that answer an ask are the answer, and no message.
    """
    waited = {result.tool_call_id for result in invocation.results}
    messages = [] if invocation.answers and isinstance(invocation.input, StartInput) else list(invocation.messages)
    here = {message.id for message in messages}
    earlier = [
        message
        for message in invocation.history
        if message.id not in here
        and message.role == "tool"
        and any(isinstance(block, ToolResultBlock) and block.tool_call_id in waited for block in message.content)
    ]
    return [*earlier, *messages]
