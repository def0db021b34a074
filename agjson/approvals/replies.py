"""What a reply says, by the kind of its ask (spec §3, §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from agjson.approvals.canonical import canonical
from agjson.approvals.errors import EditRefusedError, WrongReplyError
from agjson.approvals.schemas import fault
from agjson.types import UNSET, AgHitlAnswer, JsonValue, UnsetType

if TYPE_CHECKING:
    from agjson.approvals.records import AskRecord

__all__ = ["EDITS", "RESPOND", "RESPONSE", "Said", "edits_arguments", "read_reply"]

_Status: TypeAlias = Literal["resolved", "declined", "cancelled"]
EDITS = "arguments"
"""The member of the reply to an approval that is the arguments to run with."""

RESPONSE = "response"
"""The member of the reply to an approval that is the result, in the tool's place."""

RESPOND = "respond"
"""The id of the choice by which an approval offers that the person answers in the tool's place."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer comes to.

    Attributes:
        status: what the person decided.
        arguments: the edited arguments; unset: none were edited.
        response: what the person answers in the tool's place; None: nothing.
    """

    status: _Status
    arguments: JsonValue | UnsetType = UNSET
    response: str | None = None


def read_reply(record: AskRecord, answer: AgHitlAnswer, path: str) -> Said:
    """Check a reply against its ask.

    Args:
        record: the ask.
        answer: the answer.
        path: the JSON path of the answer in its input.

    Raises:
        WrongReplyError: it has not the form that the ask wants.
        EditRefusedError: it edits arguments, and may not, or not like this.
        MissingExtraError: a schema has to be checked, and `jsonschema` is not installed.
    """
    if answer.status != "resolved":
        return Said(answer.status)
    reply = answer.reply
    kind = record.ask.kind
    if kind == "approval":
        return _approval(record, reply, path)
    if kind == "text" and not isinstance(reply, str):
        raise WrongReplyError("the reply to a question of kind text is a string", record.ask_id, path)
    if kind == "choice":
        _choice(record, reply, path)
    if kind == "form":
        _form(record, reply, path)
    if kind == "url" and reply is not UNSET and reply is not None and reply is not True:
        raise WrongReplyError("consent to open a URL has no reply: data does not pass here", record.ask_id, path)
    return Said("resolved")


def edits_arguments(record: AskRecord, answer: AgHitlAnswer) -> bool:
    """Whether an answer says what arguments to run with, edited or not.

    Args:
        record: the ask.
        answer: an answer that `read_reply` has taken.
    """
    reply = answer.reply
    return (
        record.ask.kind == "approval"
        and answer.status == "resolved"
        and isinstance(reply, Mapping)
        and set(reply) == {EDITS}
    )


def _approval(record: AskRecord, reply: JsonValue | UnsetType, path: str) -> Said:
    if reply is UNSET or reply is None or reply is True:
        return Said("resolved")
    if reply is False:
        # The person did answer, and the answer is no.
        return Said("declined")
    if not isinstance(reply, Mapping):
        raise WrongReplyError("the reply to an approval is a boolean, or an object", record.ask_id, path)
    if set(reply) == {RESPONSE}:
        return Said("resolved", response=_response(record, reply[RESPONSE], path))
    if set(reply) != {EDITS}:
        raise WrongReplyError(
            f"an object that answers an approval has one member, {EDITS!r} or {RESPONSE!r}", record.ask_id, path
        )
    return Said("resolved", _edits(record, reply[EDITS], path))


def _response(record: AskRecord, response: JsonValue, path: str) -> str:
    if not any(choice.id == RESPOND for choice in record.ask.choices or ()):
        raise WrongReplyError("nobody may answer in the place of this tool", record.ask_id, path)
    if not isinstance(response, str):
        raise WrongReplyError("what is answered in the place of a tool is a string", record.ask_id, path)
    return response


def _edits(record: AskRecord, arguments: JsonValue, path: str) -> JsonValue | UnsetType:
    call = record.call
    if call is None:
        raise EditRefusedError("the ask is about no call, so there is nothing to edit", record.ask_id, path)
    if canonical(arguments) == canonical(call.arguments):
        return UNSET
    if call.hosted:
        raise EditRefusedError("the provider runs the call, and takes no edits", record.ask_id, path)
    if record.edit_schema is UNSET:
        message = f"the arguments of {call.name} may not be edited: no policy names it as editable"
        raise EditRefusedError(message, record.ask_id, path)
    wrong = fault(arguments, record.edit_schema)
    if wrong is not None:
        message, where = wrong
        raise EditRefusedError(f"edited arguments{where}: {message}", record.ask_id, path)
    return arguments


def _choice(record: AskRecord, reply: JsonValue | UnsetType, path: str) -> None:
    ids = [choice.id for choice in record.ask.choices or ()]
    if not isinstance(reply, str) or reply not in ids:
        raise WrongReplyError("the reply to a choice is the id of one of its options", record.ask_id, path)


def _form(record: AskRecord, reply: JsonValue | UnsetType, path: str) -> None:
    if reply is UNSET:
        raise WrongReplyError("the reply to a form is its data", record.ask_id, path)
    if record.ask.schema is UNSET:
        return
    wrong = fault(reply, record.ask.schema)
    if wrong is not None:
        message, where = wrong
        raise WrongReplyError(f"the form{where}: {message}", record.ask_id, path)
