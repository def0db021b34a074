"""An input as one run of a graph (spec §3, §3.1, §7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agjson.adapters.langgraph._config import config_for, place_settings, state_update, with_values
from agjson.adapters.langgraph._handles import (
    CHECKPOINT_ID,
    CHECKPOINT_NS,
    STATIC,
    THREAD_ID,
    actions_of,
    interrupt_of,
    is_static,
)
from agjson.adapters.langgraph._resume import Resumption, build_resume, resumption_of
from agjson.adapters.langgraph._stored_state import member
from agjson.agents.intake import read_input, words_of_surfaces
from agjson.errors import MissingExtraError, ReplayError
from agjson.transcript.settling import result_block
from agjson.types import (
    UNSET,
    AgBlock,
    AgClientCapabilities,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgRunConfig,
    AgToolResult,
    JsonValue,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnsetType,
)
from agjson.wire import to_dict

__all__ = [
    "GraphWays",
    "LangGraphCall",
    "PreparedRun",
    "build_resume",
    "command_of",
    "native_history",
    "prepare_run",
    "result_message",
    "to_native",
]

# The call and the message that stand in for those which the history at hand lacks.
_UNNAMED = "agjson/elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class LangGraphCall:
    """One run of a graph, not yet made (spec §3.1).

    It is made by ``graph.stream(call.graph_input(), call.config, context=call.context)``.

    Attributes:
        input: the input of the graph: messages of LangChain, and what else of the state the caller sets. None: the
            graph goes on from a pause.
        command: the arguments of the ``Command`` with which it goes on: ``resume``, a map from interrupt ids to
            answers, and ``update``. None: there is none; without an input too, a static breakpoint is passed.
        later: answers to questions that a task asks only after another, in order, by the interrupt that comes first:
            each goes into a map of its own, under the id of the interrupt that then waits.
        config: the ``RunnableConfig``.
        context: the context of the run; None: none.
        unsupported: members of the input that the graph has no place for, by their JSON paths (``run.temperature``).
        repairs: what had to be mended in the history.
    """

    input: dict[str, Any] | None = None
    command: dict[str, Any] | None = None
    later: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    context: Any = None
    unsupported: list[str] = field(default_factory=list[str])
    repairs: list[Any] = field(default_factory=list[Any])

    def graph_input(self) -> Any:
        """What the graph is run with: its input, or the ``Command``; never both.

        Raises:
            MissingExtraError: LangGraph is not installed.
        """
        return self.input if self.command is None else command_of(self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run whose messages depend on what the graph has: a `LangGraphCall` and what it is made of.

    Attributes:
        messages: messages for the graph, as LangChain has them: the input's own, for a graph without a checkpointer
            after those of the history.
        said: the input's own messages.
        history: the messages of the thread so far.
        input_key: the state key that holds the messages.
        state: what else of the state the input changes.
        resumption: the answers; None: the input answers nothing, and the messages are the input of the graph.
        asks: the asks that the answers are for.
        config: as for `LangGraphCall`, like the three that follow.
        context: the context.
        unsupported: what has no place.
        repairs: what was mended.
    """

    messages: list[Any]
    said: tuple[AgMessage, ...]
    history: tuple[AgMessage, ...]
    input_key: str
    state: dict[str, Any]
    resumption: Resumption | None
    asks: tuple[AgPausedAsk, ...]
    config: dict[str, Any]
    context: Any
    unsupported: list[str]
    repairs: list[Any]

    def graph_input(self, messages: Sequence[Any] | None = None, values: Mapping[str, Any] | None = None) -> Any:
        """What the graph is run with.

        Args:
            messages: the messages to send; None: all of `messages`.
            values: the answers by interrupt id; None: those of `resumption`.

        Raises:
            MissingExtraError: LangGraph is not installed.
        """
        if self.resumption is None:
            return self._input(self.messages if messages is None else messages)
        command = self._command(self.resumption, messages, values)
        return None if command is None else command_of(command)

    def call(self) -> LangGraphCall:
        """The run as it is where the graph has none of the messages.

        Raises:
            ReplayError: a static breakpoint is not to be passed: there is nothing to run.
        """
        resumption = self.resumption
        if resumption is not None and resumption.goes_past is False:
            raise ReplayError("the breakpoint is not to be passed: there is nothing to run", "$.answers")
        return LangGraphCall(
            input=self._input(self.messages) if resumption is None else None,
            command=None if resumption is None else self._command(resumption, None, None),
            later={} if resumption is None else resumption.later,
            config=self.config,
            context=self.context,
            unsupported=self.unsupported,
            repairs=self.repairs,
        )

    def _input(self, messages: Sequence[Any]) -> dict[str, Any]:
        return {self.input_key: list(messages), **self.state}

    def _command(
        self, resumption: Resumption, messages: Sequence[Any] | None, values: Mapping[str, Any] | None
    ) -> dict[str, Any] | None:
        sent = list(self.messages if messages is None else messages)
        update = {**({self.input_key: sent} if sent else {}), **self.state}
        values = resumption.values if values is None else values
        return {**({"resume": dict(values)} if values else {}), **({"update": update} if update else {})} or None


def to_native(
    ag_input: AgInput | Mapping[str, Any],
    *,
    history: Sequence[AgMessage] = (),
    run: AgRunConfig | None = None,
    asks: Sequence[AgPausedAsk] = (),
    input_key: str = "messages",
    input_keys: Collection[str] | None = None,
    shared_state: JsonValue | UnsetType = UNSET,
    config: Mapping[str, Any] | None = None,
    context: Any = None,
    context_fields: Collection[str] = (),
    configurable: Collection[str] = (),
) -> LangGraphCall:
    """The run of a graph that an input asks for (spec §3, §3.1, §7). Nothing is run, and the graph is not needed.

    A ``start`` is a plain input. A ``resume`` becomes one ``Command`` with a map from interrupt ids to answers, also
    for one answer; the decisions about a batch of actions are grouped, in order, and counted. A ``tool-result`` answers
    the interrupt of its call where there is one, and else is a ``ToolMessage`` with which the graph is entered again.

    Args:
        ag_input: the input, also as plain data.
        history: the messages of the thread so far, without those of nested turns; for a graph without a checkpointer.
            One that has them already merges them by their ids.
        run: how to run, for inputs that do not say it.
        asks: the asks that the thread has open; each must be answered by a ``resume``.
        input_key: the state key that holds the messages.
        input_keys: the state keys that the graph takes as input; others in ``state`` are named as unsupported. None:
            all.
        shared_state: the shared state of the thread as it was streamed; what ``state`` repeats of it is no change.
        config: the host's ``RunnableConfig``. Its ``configurable.thread_id`` wins; else it is the input's thread.
        context: the host's context.
        context_fields: the fields of the graph's context that take settings of the run, by the settings' Python names,
            ``frontend_tools`` among them.
        configurable: names of settings that go to ``config["configurable"]``.

    Returns:
        The run.

    Raises:
        ReplayError: an answer to no open ask, an ask without one, a wrong number of decisions, a decision that is not
            allowed, or a native handle that was not issued with the asks (`langgraph/checkpointId` and the like).
        ValidationError: it is no input, a member is not of its type, or an answer does not fit its ask.
        MissingExtraError: LangChain is not installed, and there are messages.
    """
    ag_input = read_input(ag_input)
    ways = GraphWays(
        input_key=input_key,
        input_keys=input_keys,
        config=config,
        context=context,
        context_fields=context_fields,
        configurable=configurable,
    )
    said: list[AgMessage] = []
    others: list[str] = []
    resumption: Resumption | None = None
    answered: Sequence[AgPausedAsk] = ()
    if isinstance(ag_input, StartInput):
        run = ag_input.run or run
        said = list(ag_input.messages)
    elif isinstance(ag_input, ResumeInput):
        said, others = _spoken(ag_input)
        if ag_input.answers or not said:
            resumption, answered = resumption_of(asks, ag_input.answers or ()), asks
    else:
        values, said = _landed(ag_input.results, asks)
        if values:
            resumption = Resumption(values=values)
            answered = [ask for ask in asks if interrupt_of(ask) in values]
    call = prepare_run(
        ag_input,
        ways,
        history=history,
        said=said,
        run=run,
        capabilities=ag_input.capabilities,
        resumption=resumption,
        asks=answered,
        issued=asks,
        shared_state=shared_state,
    )
    call.unsupported.extend(others)
    return call.call()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWays:
    """How a graph takes its input; `to_native` explains each.

    Attributes:
        input_key: the state key that holds the messages.
        input_keys: the state keys that the graph takes as input; None: any.
        config: the host's config.
        context: the host's context.
        context_fields: the fields of the graph's context.
        configurable: names of settings that go to the config.
    """

    input_key: str = "messages"
    input_keys: Collection[str] | None = None
    config: Mapping[str, Any] | None = None
    context: Any = None
    context_fields: Collection[str] = ()
    configurable: Collection[str] = ()


def _unheard(ways: GraphWays, said: Sequence[AgMessage]) -> list[str]:
    """Where messages go that the graph has no key for: nowhere."""
    takes = ways.input_keys is None or ways.input_key in ways.input_keys
    return [] if takes or not said else ["messages"]


def prepare_run(
    ag_input: AgInput,
    ways: GraphWays,
    *,
    history: Sequence[AgMessage],
    said: Sequence[AgMessage],
    run: AgRunConfig | None,
    capabilities: AgClientCapabilities | None,
    resumption: Resumption | None,
    asks: Sequence[AgPausedAsk],
    issued: Sequence[AgPausedAsk],
    shared_state: JsonValue | UnsetType,
    whole: bool = True,
    turn_id: str | None = None,
) -> PreparedRun:
    """As `to_native`, with the parts of the input apart.

    Args:
        ag_input: the input.
        ways: how the graph takes it.
        history: the messages of the thread.
        said: what the input adds to them.
        run: how to run.
        capabilities: what the client can do.
        resumption: the answers; None: none are given.
        asks: the asks that they answer.
        issued: the asks whose native handles count.
        shared_state: the shared state of the thread.
        whole: the graph gets the history too, having none of its own.
        turn_id: the turn of the run; None: that of the input.

    Raises:
        ReplayError: as `to_native`; also a message of the user where the graph goes on in the middle of a step.
        MissingExtraError: as `to_native`.
    """
    if resumption is not None and any(message.role != "tool" for message in said):
        raise ReplayError("the graph goes on inside a step, where no message of the user has a place: say it later")
    fields, configured, unsupported = place_settings(
        run, capabilities, context_fields=ways.context_fields, configurable=ways.configurable
    )
    state, untaken = state_update(ag_input.state, shared=shared_state, keys=ways.input_keys, reserved=(ways.input_key,))
    turn_id = turn_id or ag_input.turn_id
    config = config_for(ways.config, thread_id=ag_input.thread_id, turn_id=turn_id, configurable=configured)
    checkpoint = _checkpoint(ag_input, issued, config["configurable"]["thread_id"])
    if resumption is None and checkpoint is not None:
        config["configurable"] |= {"checkpoint_ns": "", "checkpoint_id": checkpoint}
    messages, repairs = _native_messages(history, said, whole=whole and resumption is None)
    return PreparedRun(
        messages=messages,
        said=tuple(said),
        history=tuple(history),
        input_key=ways.input_key,
        state=state,
        resumption=resumption,
        asks=tuple(asks),
        config=config,
        context=with_values(ways.context, fields),
        unsupported=[*unsupported, *untaken, *_unheard(ways, said)],
        repairs=repairs,
    )


def result_message(result: AgToolResult) -> AgMessage:
    """The message that the result of a client's tool is, as a thread keeps it.

    Args:
        result: the result.
    """
    return AgMessage(id=f"{result.tool_call_id}:result", role="tool", content=[result_block(result)])


# Parts


def _checkpoint(ag_input: AgInput, issued: Sequence[AgPausedAsk], thread_id: str) -> str | None:
    """The checkpoint that the input names, if it was issued.

    Raises:
        ReplayError: a native handle that was not issued: it would let a client into any thread of the checkpointer.
    """
    metadata = ag_input.metadata or {}
    known: dict[str, list[Any]] = {THREAD_ID: [thread_id], CHECKPOINT_ID: [], CHECKPOINT_NS: [""]}
    for ask in issued:
        for key, values in known.items():
            value = (ask.metadata or {}).get(key)
            if isinstance(value, str):
                values.append(value)
        if is_static(ask):
            known[CHECKPOINT_ID].append(ask.ask_id.removeprefix(STATIC))
    for key, values in known.items():
        named = metadata.get(key)
        if named is not None and named not in values:
            raise ReplayError(f"{key} names nothing that was issued to this thread", f"$.metadata['{key}']")
    named = metadata.get(CHECKPOINT_ID)
    return named if isinstance(named, str) and not metadata.get(CHECKPOINT_NS) else None


def _native_messages(
    history: Sequence[AgMessage], said: Sequence[AgMessage], *, whole: bool
) -> tuple[list[Any], list[Any]]:
    """The messages for the graph, with the history or without it, and what was mended in them."""
    if not said and not (whole and history):
        return [], []
    from agjson.adapters.langgraph.messages import messages_to_native

    results = {block.tool_call_id for block in _blocks(said) if isinstance(block, ToolResultBlock)}
    before = [message for message in history if whole or _calls_in(message) & results]
    unknown = results - {id for message in (*before, *said) for id in _calls_in(message)}
    # A result goes to a graph that has its call, also where the history at hand does not have it.
    calls = [ToolCallBlock(tool_call_id=id, name=_UNNAMED, input={}) for id in sorted(unknown)]
    stand_ins = [AgMessage(id=_UNNAMED, role="assistant", content=calls)] if calls else []
    native = messages_to_native([*before, *stand_ins, *said])
    left_out = {_UNNAMED} if whole else {_UNNAMED, *(message.id for message in before)}
    own = {message.id for message in said} | {f"{id}:result" for message in said for id in _calls_in(message) | results}
    kept: list[Any] = []
    for message in native:
        id = member(message, "id")
        if id in left_out or (not whole and member(message, "type") == "tool" and id not in own):
            continue
        if member(message, "name") == _UNNAMED:
            message.name = None
        kept.append(message)
    return kept, list(native.repairs)


def native_history(history: Sequence[AgMessage], said: Sequence[AgMessage] = ()) -> list[Any]:
    """Messages of a thread as LangChain has them, whole.

    Args:
        history: the messages so far.
        said: those that follow.

    Raises:
        ReplayError: they cannot be sent.
        MissingExtraError: LangChain is not installed.
    """
    return _native_messages(history, said, whole=True)[0]


def _blocks(messages: Sequence[AgMessage]) -> list[AgBlock]:
    return [block for message in messages for block in message.content]


def _calls_in(message: AgMessage) -> set[str]:
    return {block.tool_call_id for block in message.content if isinstance(block, ToolCallBlock)}


def _spoken(ag_input: ResumeInput) -> tuple[list[AgMessage], list[str]]:
    """What surfaces say in the user's name, as messages, and the paths of what else they do."""
    said, others = words_of_surfaces(ag_input.ui_actions or ())
    messages = [
        AgMessage(id=f"{ag_input.turn_id}:ui-{words.place}", role="user", content=[TextBlock(text=words.text)])
        for words in said
    ]
    return messages, others


def _landed(results: Sequence[AgToolResult], asks: Sequence[AgPausedAsk]) -> tuple[dict[str, Any], list[AgMessage]]:
    """Results as answers to the interrupts of their calls, and the others as messages."""
    values: dict[str, Any] = {}
    landed: list[AgMessage] = []
    gates = {ask.tool_call_id: ask for ask in asks if ask.tool_call_id}
    for index, result in enumerate(results):
        ask = gates.get(result.tool_call_id)
        if ask is None:
            landed.append(result_message(result))
        elif actions_of(ask) is not None:
            raise ReplayError(
                f"call {result.tool_call_id!r} waits for an answer, not for a result", f"$.results[{index}].toolCallId"
            )
        else:
            values[interrupt_of(ask)] = _returned(result)
    return values, landed


def _returned(result: AgToolResult) -> Any:
    """What ``interrupt`` returns for a result: its structured form, its text, or its blocks in their wire form."""
    if result.outcome in ("error", "denied") or result.is_error:
        return {"status": result.outcome or "error", "reason": result.error_text or _text(result)}
    if result.structured_content is not UNSET:
        return result.structured_content
    text = _text(result)
    return [to_dict(block) for block in result.content] if text is None else text


def _text(result: AgToolResult) -> str | None:
    if all(isinstance(block, TextBlock) for block in result.content):
        return "".join(block.text for block in result.content if isinstance(block, TextBlock))
    return None


def command_of(arguments: Mapping[str, Any]) -> Any:
    """LangGraph's ``Command``.

    Args:
        arguments: its arguments.

    Raises:
        MissingExtraError: LangGraph is not installed.
    """
    try:
        from langgraph.types import Command
    except ImportError as error:
        raise MissingExtraError("langgraph", "langgraph") from error
    return Command(**arguments)
