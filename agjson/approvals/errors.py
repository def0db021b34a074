"""Why an ask is not issued, an answer not taken, a batch not claimed (spec §7, §13.1); nothing is changed then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agjson.agents.errors import InputError, UnknownAskError, UnknownContinuationError
from agjson.errors import AgJSONError

__all__ = [
    "AlreadyClaimedError",
    "AnswerError",
    "AnsweredAskError",
    "AskConflictError",
    "AskRefusedError",
    "BatchOpenError",
    "BrokenSealError",
    "ClaimLostError",
    "EditRefusedError",
    "ExpiredAskError",
    "GivenUpAskError",
    "GrantModeError",
    "KeyRetiredError",
    "LedgerError",
    "OrdinalError",
    "OtherOwnerError",
    "OtherThreadError",
    "OtherTurnError",
    "QueuedAskError",
    "RequestStateError",
    "SealedTooLargeError",
    "SpentAskError",
    "SpentContinuationError",
    "TamperedAskError",
    "TokenError",
    "TransitionError",
    "UnissuedAskError",
    "UnknownBatchError",
    "UnsealableError",
    "WordsRefusedError",
    "WrongReplyError",
]


class AnswerError(InputError):
    """An answer is not taken. No answer of its input was stored, and nothing will run because of it.

    Class attributes:
        code: the kind of refusal, for programs.
        field: the wire name of the answer's field that is at fault.

    Attributes:
        ask_id: the ask that the answer names.
        message: what is wrong, without the place.
        path: the JSON path inside the input.
    """

    code: ClassVar[str] = "answer_refused"
    field: ClassVar[str] = "askId"

    def __init__(self, message: str, ask_id: str, path: str = "$") -> None:
        super().__init__(message, f"{path}.{self.field}")
        self.ask_id = ask_id


class UnissuedAskError(AnswerError, UnknownAskError):
    """The thread never had such an ask: it is forged, or of another thread."""

    code = "unknown_ask"


class OtherThreadError(AnswerError, UnknownAskError):
    """The token is that of an ask of another thread of the same owner."""

    code = "other_thread"
    field = "token"


class OtherTurnError(AnswerError):
    """The token is that of an ask of another turn of the thread."""

    code = "other_turn"
    field = "token"


class OtherOwnerError(AnswerError, UnknownAskError):
    """The ask was put to another principal. Tell a client no more than that there is no such ask."""

    code = "other_owner"


class AnsweredAskError(AnswerError, UnknownAskError):
    """The ask has its answer already, in an earlier input or earlier in this one; the first one stands."""

    code = "answered_ask"


class SpentAskError(AnswerError, UnknownAskError):
    """The answer of the ask has been acted on: what comes now is a replay."""

    code = "spent_ask"


class GivenUpAskError(AnswerError, UnknownAskError):
    """The conversation went on without an answer, and the ask was left behind."""

    code = "given_up_ask"


class ExpiredAskError(AnswerError, UnknownAskError):
    """The moment until which an answer counts is over."""

    code = "expired_ask"


class QueuedAskError(AnswerError, UnknownAskError):
    """The ask waits behind another one of its batch, and has not been shown yet."""

    code = "queued_ask"


class TokenError(AnswerError):
    """The token is missing, made up, or that of another ask of the same turn."""

    code = "wrong_token"
    field = "token"


class KeyRetiredError(AnswerError):
    """The key of the ask's token is in use no more, so no answer to it can be proven."""

    code = "retired_key"
    field = "token"


class TamperedAskError(AnswerError):
    """What is stored is not what was asked: the store was changed by somebody else."""

    code = "tampered_ask"


class RequestStateError(AnswerError):
    """The ask's `requestState` is not echoed as it was."""

    code = "wrong_request_state"
    field = "requestState"


class OrdinalError(AnswerError):
    """The position among the asks of a node is not that of the ask."""

    code = "wrong_ordinal"
    field = "ordinal"


class GrantModeError(AnswerError):
    """The grant mode is missing, is none of the ask's, or goes with an answer that grants nothing (draft.2)."""

    code = "wrong_grant_mode"
    field = "grantModeId"


class WrongReplyError(AnswerError):
    """The reply has not the form that the kind of the ask wants."""

    code = "wrong_reply"
    field = "reply"


class EditRefusedError(WrongReplyError):
    """Edited arguments: the tool allows none, or not these."""

    code = "edit_refused"


class WordsRefusedError(AnswerError, UnknownAskError):
    """The text of a message answers no ask of this kind: a yes must not be read out of words."""

    code = "words_refused"


# About the ledger rather than an answer


class LedgerError(AgJSONError):
    """The ledger does not do what it is asked. Nothing was changed."""


class AskConflictError(LedgerError):
    """The thread has had an ask of this id, or the turn's asks are claimed already: no ask is opened anew."""


class AskRefusedError(LedgerError, ValueError):
    """An ask that could never be answered or checked: a broken schema, an unreadable moment, a call without its ask."""


class UnknownBatchError(LedgerError):
    """The turn has asked nothing."""


class BatchOpenError(LedgerError):
    """Asks of the batch wait for an answer, so nothing of it may run.

    Attributes:
        ask_ids: these asks.
    """

    def __init__(self, message: str, ask_ids: Sequence[str]) -> None:
        super().__init__(message)
        self.ask_ids = tuple(ask_ids)


class AlreadyClaimedError(LedgerError):
    """Somebody has claimed the batch, or it was given up: whoever asks now must run nothing."""


class ClaimLostError(LedgerError):
    """The claim is held no more: its process counted as lost, and what came of its calls is unknown."""


class TransitionError(LedgerError):
    """An ask cannot go from the state that it has to the one that is wanted."""


class UnsealableError(LedgerError, ValueError):
    """A value has no JSON form, so it can be neither stored nor sealed."""


class SealedTooLargeError(UnsealableError):
    """A sealed value would be longer than allowed.

    Attributes:
        size: how long it would be, in characters.
        limit: how long it may be.
    """

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the sealed value would have {size} characters, over the limit of {limit}")
        self.size = size
        self.limit = limit


class BrokenSealError(UnknownContinuationError):
    """A sealed value was changed, is for another thread or ask, has expired, or its key is in use no more."""


class SpentContinuationError(UnknownContinuationError):
    """A sealed continuation was used before."""
