"""What an input brings to its thread: checked before anything happens (spec §3, §3.1, §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from agjson._members import check_input
from agjson.agents.errors import (
    MessageConflictError,
    ThreadPausedError,
    UnknownAskError,
    UnknownThreadError,
    UnknownToolCallError,
)
from agjson.agents.thread import Pending, Thread
from agjson.errors import ValidationError
from agjson.types import (
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgMeta,
    AgPausedAsk,
    AgSurfaceInteraction,
    AgToolResult,
    McpMessage,
    OpenAiSendFollowUpMessage,
    ResumeInput,
    StartInput,
    TextBlock,
    ToolResultInput,
)
from agjson.wire import encode, from_dict, match_answer

__all__ = [
    "ASK_ID",
    "Intake",
    "OnPaused",
    "SurfaceWords",
    "named_asks",
    "read_input",
    "take_in",
    "words_of",
    "words_of_surfaces",
]

OnPaused: TypeAlias = Literal["refuse", "discard"]
"""What to do with a start that answers none of the asks that a thread waits for: refuse it, or give the asks up."""

ASK_ID = "agjson/askId"
"""The `AgInput.metadata` key by which a start names the ask, or the list of asks, that its text answers."""

# Agreement to these is more than words: a text that says "no" must not count as one.
_NOT_BY_TEXT = frozenset(("approval", "auth", "url"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What an input brings.

    Attributes:
        input: the input with the new messages alone, and with every answer of the batch on a resume.
        messages: messages that the thread does not have yet.
        results: results that came with this input.
        pending: what the thread waits for, with what came now; if nothing is missing, all of it goes to the framework.
        given_up: asks that a start leaves behind.
        goes_on: the framework is to be called.
        request_state: the continuation that the thread had: to be used, or to be forgotten.
        unsupported: members that have no effect, by their JSON paths.
    """

    input: AgInput
    messages: Sequence[AgMessage] = ()
    results: Sequence[AgToolResult] = ()
    pending: Pending = field(default_factory=Pending)
    given_up: Sequence[AgPausedAsk] = ()
    goes_on: bool = True
    request_state: str | None = None
    unsupported: Sequence[str] = ()


_HOW = "a new message goes in as StartInput(thread_id=..., turn_id=..., messages=[AgMessage(...)])"


def read_input(ag_input: AgInput | Mapping[str, Any]) -> AgInput:
    """Read an input and check that each member of it is of its type: Python constructs an object of anything.

    Args:
        ag_input: the input, also as plain data.

    Returns:
        The object that was given, or the one that the plain data stands for.

    Raises:
        ValidationError: it is no input, or a member is not of its type; ``path`` names it.
        EncodeError: a value has no JSON form.
    """
    if isinstance(ag_input, (StartInput, ResumeInput, ToolResultInput)):
        check_input(ag_input)
        return ag_input
    given = cast("object", ag_input)
    if not isinstance(given, Mapping):
        raise ValidationError(f"Expected an input, got `{given.__class__.__name__}`: {_HOW}")
    if "kind" not in given:
        raise ValidationError(f"Object missing required field `kind`: {_HOW}")
    return from_dict(ag_input, as_="input")


def take_in(ag_input: AgInput, thread: Thread | None, on_paused: OnPaused, surfaces: bool) -> Intake:
    """Check an input against its thread.

    Args:
        ag_input: the input.
        thread: its thread; None: there is none yet.
        on_paused: what a start may do to a paused thread.
        surfaces: the framework takes surface interactions of every kind.

    Raises:
        UnknownThreadError: the thread does not exist, and the input is no start.
        UnknownToolCallError: a result is for a call that waits for none.
        UnknownAskError: an answer is for an ask that waits for none, or cannot be given in this way.
        ValidationError: an answer does not fit its ask.
        ThreadPausedError: a start that answers nothing, on a thread that waits for answers.
        MessageConflictError: a message takes the id of another.
    """
    if isinstance(ag_input, StartInput):
        return _start(ag_input, thread or Thread(thread_id=ag_input.thread_id), on_paused)
    if thread is None:
        raise UnknownThreadError(f"there is no thread {ag_input.thread_id!r}", "$.threadId")
    if isinstance(ag_input, ToolResultInput):
        return _tool_result(ag_input, thread)
    return _resume(ag_input, thread, surfaces)


# Start


def _start(start: StartInput, thread: Thread, on_paused: OnPaused) -> Intake:
    messages = _new_messages(start.messages, thread)
    if len(messages) != len(start.messages):
        start = replace(start, messages=messages)
    pending = thread.pending
    open_asks = {ask.ask_id: ask for ask in pending.open_asks}
    named = named_asks(start)
    if not named:
        if not open_asks:
            # Every ask is decided, and nobody has gone on from it.
            return Intake(input=start, messages=messages, given_up=pending.asks, request_state=pending.request_state)
        if on_paused == "discard":
            return Intake(
                input=start,
                messages=messages,
                given_up=list(open_asks.values()),
                request_state=pending.request_state,
            )
        raise ThreadPausedError(
            f"the thread waits for answers to {', '.join(map(repr, open_asks))}", "$.kind", list(open_asks)
        )
    answers = [_by_text(start, ask_id, open_asks) for ask_id in named]
    pending = _with(pending, answers=answers)
    return Intake(
        input=start,
        messages=messages,
        pending=pending,
        goes_on=pending.is_complete,
        request_state=pending.request_state,
    )


def _new_messages(messages: Sequence[AgMessage], thread: Thread) -> list[AgMessage]:
    """The messages that the thread does not have; one that it has must be the same."""
    seen: dict[str, AgMessage] = {}
    if any(message.id in thread.ids for message in messages):
        seen.update((message.id, message) for message in thread.result.messages)
    new: list[AgMessage] = []
    for index, message in enumerate(messages):
        there = seen.get(message.id) if message.id else None
        if there is None:
            seen[message.id] = message
            new.append(message)
        elif not _same(message, there):
            raise MessageConflictError(
                f"message {message.id!r} is there already, with another role or content: a new message needs a new id",
                f"$.messages[{index}].id",
            )
    return new


def _same(a: AgMessage, b: AgMessage) -> bool:
    return a.role == b.role and (a.content == b.content or encode(list(a.content)) == encode(list(b.content)))


def named_asks(start: StartInput) -> list[str]:
    """The asks that a start names as answered by its text.

    Args:
        start: the start.

    Raises:
        UnknownAskError: they are no ids.
    """
    named = None if start.metadata is None else start.metadata.get(ASK_ID)
    if named is None:
        return []
    ids = named if isinstance(named, list) else [named]
    if not all(isinstance(id, str) for id in ids):
        raise UnknownAskError("expected the id of an ask, or a list of ids", f"$.metadata['{ASK_ID}']")
    return list(dict.fromkeys(cast("list[str]", ids)))


def _by_text(start: StartInput, ask_id: str, open_asks: dict[str, AgPausedAsk]) -> AgHitlAnswer:
    path = f"$.metadata['{ASK_ID}']"
    ask = open_asks.get(ask_id)
    if ask is None:
        raise UnknownAskError(f"the thread waits for no answer to ask {ask_id!r}", path)
    if ask.kind in _NOT_BY_TEXT or ask.token is not None or ask.grant_modes:
        raise UnknownAskError(f"ask {ask_id!r} of kind {ask.kind} takes no text: answer it with a resume", path)
    text = words_of(start)
    if not text:  # no new message of the user, or none with words: silence is no answer
        raise UnknownAskError(f"ask {ask_id!r} is answered in words, and the input brings no new ones", "$.messages")
    # The server's own continuation, which the client need not have kept.
    return AgHitlAnswer(ask_id=ask_id, status="resolved", reply=text, request_state=ask.request_state)


def words_of(start: StartInput) -> str:
    """The words of the user in a start.

    Args:
        start: the start.
    """
    return "\n".join(
        block.text
        for message in start.messages
        if message.role == "user"
        for block in message.content
        if isinstance(block, TextBlock)
    )


# Tool results and answers


def _tool_result(ag_input: ToolResultInput, thread: Thread) -> Intake:
    pending = thread.pending
    if not ag_input.results:
        raise UnknownToolCallError("the input brings no result", "$.results")
    open_calls = set(pending.open_calls)
    for index, result in enumerate(ag_input.results):
        call_id = result.tool_call_id
        if call_id not in open_calls:
            raise UnknownToolCallError(_why_no_result(call_id, pending), f"$.results[{index}].toolCallId")
        open_calls.discard(call_id)
    pending = _with(pending, results=ag_input.results)
    return Intake(
        input=ag_input,
        results=ag_input.results,
        pending=pending,
        goes_on=pending.is_complete,
        request_state=pending.request_state,
    )


def _why_no_result(call_id: str, pending: Pending) -> str:
    if call_id in pending.calls:
        return f"call {call_id!r} has its result already"
    if any(ask.tool_call_id == call_id for ask in pending.asks):
        return f"call {call_id!r} waits for an answer, not for a result"
    return f"no call {call_id!r} waits for a result"


def _resume(ag_input: ResumeInput, thread: Thread, surfaces: bool) -> Intake:
    pending = thread.pending
    answers = ag_input.answers or ()
    takes_up = bool(pending.answers) and pending.is_complete
    if not answers and not ag_input.ui_actions and not takes_up:
        raise UnknownAskError("the input answers nothing", "$.answers")
    open_asks = {ask.ask_id: ask for ask in pending.open_asks}
    for index, answer in enumerate(answers):
        path = f"$.answers[{index}]"
        ask = open_asks.pop(answer.ask_id, None)
        if ask is None:
            raise UnknownAskError(_why_no_answer(answer.ask_id, pending), f"{path}.askId")
        try:
            match_answer(answer, ask)
        except ValidationError as error:
            raise ValidationError(error.message, path + error.path[1:]) from None
    pending = _with(pending, answers=answers)
    said, others = words_of_surfaces(ag_input.ui_actions or ())
    messages = [_message_of(words) for words in said]
    acts = bool(messages or (surfaces and others))
    if acts and not pending.is_complete:
        # It would reach the framework before the answers that it waits for.
        raise ThreadPausedError("the thread waits for answers, so no surface can act", "$.uiActions", list(open_asks))
    goes_on = pending.is_complete and (bool(answers) or acts or takes_up)
    if goes_on and pending.answers:
        ag_input = replace(ag_input, answers=list(pending.answers))
    return Intake(
        input=ag_input,
        messages=messages,
        pending=pending,
        goes_on=goes_on,
        request_state=pending.request_state,
        unsupported=() if surfaces else others,
    )


class SurfaceWords(NamedTuple):
    """What a surface says in the user's name.

    Attributes:
        place: the position of the interaction in ``uiActions``, from 0.
        surface_id: the surface.
        text: the words.
    """

    place: int
    surface_id: str
    text: str


def words_of_surfaces(actions: Iterable[AgSurfaceInteraction]) -> tuple[list[SurfaceWords], list[str]]:
    """What surfaces say in the user's name (spec §6), and the JSON paths of the other interactions.

    Args:
        actions: the interactions of an input.
    """
    said: list[SurfaceWords] = []
    others: list[str] = []
    for place, action in enumerate(actions):
        if isinstance(action, McpMessage):
            said.append(SurfaceWords(place, action.surface_id, action.params.content.text))
        elif isinstance(action, OpenAiSendFollowUpMessage):
            said.append(SurfaceWords(place, action.surface_id, action.prompt))
        else:
            others.append(f"uiActions[{place}]")
    return said, others


def _message_of(words: SurfaceWords) -> AgMessage:
    metadata: AgMeta = {"agjson/surfaceId": words.surface_id}
    return AgMessage(id="", role="user", content=[TextBlock(text=words.text)], metadata=metadata)


def _why_no_answer(ask_id: str, pending: Pending) -> str:
    if any(answer.ask_id == ask_id for answer in pending.answers):
        return f"ask {ask_id!r} has its answer already"
    return f"the thread waits for no answer to ask {ask_id!r}"


def _with(pending: Pending, *, answers: Sequence[AgHitlAnswer] = (), results: Sequence[AgToolResult] = ()) -> Pending:
    return Pending(
        calls=pending.calls,
        results=(*pending.results, *results),
        asks=pending.asks,
        answers=(*pending.answers, *answers),
        request_state=pending.request_state,
    )
