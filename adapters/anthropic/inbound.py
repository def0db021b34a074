"""An input as the arguments of one request to the Messages API (spec §3, §3.1, §7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from agjson.adapters.anthropic._answers import PendingCalls, answered_asks, injected_messages
from agjson.adapters.anthropic._carry import CALLER, CONTAINER, CONTAINER_ID
from agjson.adapters.anthropic._repair import MissingResults, Repair, Repairs, ReplayOptions, UnsupportedBlocks
from agjson.adapters.anthropic._run_config import RunParams
from agjson.adapters.anthropic.messages import messages_to_native
from agjson.agents.intake import read_input
from agjson.errors import ReplayError
from agjson.types import (
    UNSET,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgRunConfig,
    AgToolResult,
    NamedToolChoice,
    ResumeInput,
    StartInput,
    ToolCallBlock,
)

__all__ = ["BETA_PARAMS", "AnthropicCall", "approved_calls", "going_on", "to_native", "with_context"]

BETA_PARAMS = frozenset(
    (
        "betas",
        "billing_policy",
        "compaction",
        "context_management",
        "fallback_credit_token",
        "fallbacks",
        "mcp_servers",
        "thread",
    )
)
"""Arguments that ``client.beta.messages.create`` alone takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicCall:
    """One request, not yet made: ``call.endpoint(client).create(**call.params)``, or ``.stream(...)``.

    Attributes:
        params: the keyword arguments.
        beta: the request needs ``client.beta.messages``.
        unsupported: members of the input that the API cannot honour, by their JSON names (``run.temperature``).
        repairs: what had to be mended in the history; paths count from the first message of `history`.
    """

    params: dict[str, Any]
    beta: bool = False
    unsupported: list[str] = field(default_factory=list[str])
    repairs: list[Repair] = field(default_factory=list[Repair])

    def endpoint(self, client: Any) -> Any:
        """The part of a client that takes the request: ``client.messages`` or ``client.beta.messages``.

        Args:
            client: an ``Anthropic`` or ``AsyncAnthropic`` client.
        """
        return client.beta.messages if self.beta else client.messages


def to_native(
    ag_input: AgInput | Mapping[str, Any],
    *,
    history: Sequence[AgMessage] = (),
    run: AgRunConfig | None = None,
    model: str | None = None,
    max_tokens: int = 4096,
    defaults: Mapping[str, Any] | None = None,
    asks: Sequence[AgPausedAsk] = (),
    results: Sequence[AgToolResult] = (),
    edits: Collection[str] = (),
    missing_results: MissingResults | None = None,
    unsupported: UnsupportedBlocks = "refuse",
    document_citations: bool = True,
) -> AnthropicCall:
    """The request that an input asks for. Nothing is run and nothing is sent.

    A ``start`` appends its messages to the history, or goes on where it ends if it brings none (a turn that the
    provider paused). A ``tool-result`` answers calls that wait in the history. A ``resume`` answers asks: a denial
    becomes the result of its call, a reply to a form, text or choice becomes the result, and a call that is allowed
    must have been run by the host, with its result in `results` (`approved_calls` lists them). Tokens and
    ``requestState`` go to no provider.

    Args:
        ag_input: the input, also as plain data.
        history: the messages of the thread so far, without those of nested turns.
        run: how to run, for inputs that do not say it: the settings of the start that a ``tool-result`` or ``resume``
            goes on from. A tool choice that forces a call is left out then, since the model could never answer; the
            context goes where that start had it, before the last words of the user.
        model: the model where the input names none; without either, the request lacks it.
        max_tokens: the limit of the answer in tokens where the input names none.
        defaults: further arguments of every request, as ``client.messages.create`` takes them: ``tools``, ``system``,
            ``betas``, ``metadata``, ``thinking``. What the input says wins; its tools are added.
        asks: the asks that the thread has open; an answer is checked against its ask. Without it an ask is known by the
            id of its call, which an ask id ends in.
        results: with a ``resume``, the results of calls that the host has run meanwhile.
        edits: names of the tools whose arguments an answer may change.
        missing_results: for calls that stay without a result, as for `messages_to_native`. The default for a ``start``
            is ``"add"``, for the user has gone on; otherwise it is ``"refuse_last"``.
        unsupported: for content that the API has no place for: ``"refuse"`` or ``"drop"`` it.
        document_citations: as for `messages_to_native`.

    Returns:
        The request.

    Raises:
        ReplayError: an id that no call or ask of the thread waits under, an allowed call that was not run, a value that
            the API refuses, or a history that cannot be sent. ``path`` is ``$[n]`` in the messages of history and input
            together, ``$.<member>`` in the input.
        ValidationError: it is no input, a member is not of its type, or an answer does not fit its ask.
    """
    ag_input = read_input(ag_input)
    if isinstance(ag_input, StartInput):
        run = ag_input.run or run
    elif run is not None:
        run = going_on(run)
    messages, members = _conversation(ag_input, history, run, asks, results, edits)
    given = dict(defaults or {})
    if missing_results is None:
        missing_results = "add" if isinstance(ag_input, StartInput) else "refuse_last"
    native = messages_to_native(
        messages,
        # What people have not answered yet no other request brings along.
        waiting=_asked_calls(asks) if isinstance(ag_input, StartInput) else (),
        betas=given.get("betas") or (),
        missing_results=missing_results,
        unsupported=unsupported,
        document_citations=document_citations,
    )
    if not native:
        raise ReplayError("there is nothing to send: the input and the history hold no message for a model")
    repairs = Repairs(ReplayOptions(unsupported=unsupported), native.repairs)
    named = {} if model is None else {"model": model}
    settings = RunParams({**named, "max_tokens": max_tokens, **given}, repairs, members)
    settings.apply(run, ag_input.capabilities)
    if ag_input.state is not UNSET:
        settings.unsupported.append("state")
    params = settings.params
    params["messages"] = list(native)
    _set_system(params, native.system)
    _set_container(params, ag_input, messages)
    beta = native.beta or any(params.get(name) for name in BETA_PARAMS)
    return AnthropicCall(params=params, beta=beta, unsupported=settings.unsupported, repairs=native.repairs)


def approved_calls(
    ag_input: ResumeInput,
    *,
    history: Sequence[AgMessage],
    asks: Sequence[AgPausedAsk] = (),
    edits: Collection[str] = (),
) -> list[ToolCallBlock]:
    """The calls that the answers of a ``resume`` allow, with the arguments that they may run with.

    Args:
        ag_input: the input.
        history: the messages of the thread so far.
        asks: as for `to_native`.
        edits: as for `to_native`.

    Returns:
        The calls, in the order of the answers. The host runs them, and hands their results to `to_native`.

    Raises:
        ReplayError: an answer to no ask that is open, or changed arguments where they may not be changed.
        ValidationError: an answer that does not fit its ask.
    """
    return answered_asks(ag_input, PendingCalls(history), asks, edits)


def _conversation(
    ag_input: AgInput,
    history: Sequence[AgMessage],
    run: AgRunConfig | None,
    asks: Sequence[AgPausedAsk],
    results: Sequence[AgToolResult],
    edits: Collection[str],
) -> tuple[list[AgMessage], list[str]]:
    """History and input as one list of messages, and the members that cannot be honoured."""
    if isinstance(ag_input, StartInput):
        return [*with_context(history, run, len(history)), *ag_input.messages], []
    history = with_context(history, run, _last_start(history))
    pending = PendingCalls(history)
    if not isinstance(ag_input, ResumeInput):
        unsupported = pending.land_all(ag_input.results, "$.results")
        return pending.settled(), unsupported
    allowed = answered_asks(ag_input, pending, asks, edits)
    pending.land_all(results, "$.results")
    spoken, unsupported = injected_messages(ag_input.ui_actions or ())
    return [*pending.settled(allowed), *spoken], unsupported


def with_context(history: Sequence[AgMessage], run: AgRunConfig | None, at: int) -> list[AgMessage]:
    """A history with the blocks that go beside a start.

    Args:
        history: the history.
        run: the settings of the start; None or without context: nothing is added.
        at: where the messages of the start begin.
    """
    context = None if run is None else run.context
    if not context:
        return list(history)
    return [*history[:at], AgMessage(id="context", role="user", content=context), *history[at:]]


def _asked_calls(asks: Sequence[AgPausedAsk]) -> list[str]:
    return [ask.tool_call_id for ask in asks if ask.tool_call_id is not None]


def _last_start(history: Sequence[AgMessage]) -> int:
    """Where the turn begins that the last words of the user have started; the end where there are none."""
    at = next((index for index in reversed(range(len(history))) if history[index].role == "user"), None)
    if at is None:
        return len(history)
    turn_id = history[at].turn_id
    while at > 0 and (history[at - 1].turn_id == turn_id if turn_id is not None else history[at - 1].role == "user"):
        at -= 1
    return at


def going_on(run: AgRunConfig) -> AgRunConfig:
    """The settings for a request that follows one which may have been forced to call a tool.

    Args:
        run: the settings of the first request.
    """
    forced = run.tool_choice == "required" or isinstance(run.tool_choice, NamedToolChoice)
    return replace(run, tool_choice=None) if forced else run


def _set_system(params: dict[str, Any], lifted: list[dict[str, Any]]) -> None:
    """Put the lifted system messages behind the system prompt; leave the argument out where nothing is said."""
    system = params.get("system")
    if lifted:
        said = [{"type": "text", "text": system}] if isinstance(system, str) and system.strip() else system or []
        params["system"] = [*said, *lifted]
    elif not system or (isinstance(system, str) and not system.strip()):
        params.pop("system", None)


def _set_container(params: dict[str, Any], ag_input: AgInput, messages: Sequence[AgMessage]) -> None:
    """Let code go on in the container that it began in."""
    named = (ag_input.metadata or {}).get(CONTAINER_ID)
    id = named if isinstance(named, str) and named else _waiting_container(messages)
    if id is None:
        return
    given = params.get("container")
    params["container"] = {**given, "id": id} if isinstance(given, Mapping) else id


def _waiting_container(messages: Sequence[AgMessage]) -> str | None:
    """The container of the last answer, if code in it waits for the results of calls that it made."""
    answer = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if answer is None or not any(
        isinstance(block, ToolCallBlock) and _is_made_by_code(block) for block in answer.content
    ):
        return None
    container = (answer.metadata or {}).get(CONTAINER)
    id = container.get("id") if isinstance(container, Mapping) else None
    return id if isinstance(id, str) else None


def _is_made_by_code(block: ToolCallBlock) -> bool:
    caller = block.provider_metadata.get(CALLER) if block.provider_metadata else None
    return isinstance(caller, Mapping) and isinstance(caller.get("tool_id"), str)
