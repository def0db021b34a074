"""Asks that are answered once, by the one who was asked, and run at most once (spec §7, §11.4, §13.1; loop contract).

`Ledger` keeps every ask from its emission to what came of it, above every framework. Nothing here runs anything.
"""

from agjson.approvals.answering import Progress
from agjson.approvals.book import Book, LedgerStore, MemoryLedgerStore
from agjson.approvals.budget import CallBudget
from agjson.approvals.canonical import canonical
from agjson.approvals.carrying import tokens_of, with_tokens, without_tokens
from agjson.approvals.claiming import OUTCOME_UNKNOWN, Claim, Decision, Lost, Recovered, unknown_result
from agjson.approvals.errors import (
    AlreadyClaimedError,
    AnsweredAskError,
    AnswerError,
    AskConflictError,
    AskRefusedError,
    BatchOpenError,
    BrokenSealError,
    ClaimLostError,
    EditRefusedError,
    ExpiredAskError,
    GivenUpAskError,
    GrantModeError,
    KeyRetiredError,
    LedgerError,
    OrdinalError,
    OtherOwnerError,
    OtherThreadError,
    OtherTurnError,
    QueuedAskError,
    RequestStateError,
    SealedTooLargeError,
    SpentAskError,
    SpentContinuationError,
    TamperedAskError,
    TokenError,
    TransitionError,
    UnissuedAskError,
    UnknownBatchError,
    UnsealableError,
    WordsRefusedError,
    WrongReplyError,
)
from agjson.approvals.keys import Keys
from agjson.approvals.ledger import Ledger
from agjson.approvals.planning import Plan, plan
from agjson.approvals.policy import Grant, Policy, needs_token
from agjson.approvals.records import Ask, AskRecord, BatchRecord, BatchState, CallRequest, StandingRule
from agjson.approvals.sealing import SealedContinuations, Sealer
from agjson.approvals.states import ANSWERED, FINAL, TRANSITIONS, AskState

__all__ = [
    "ANSWERED",
    "FINAL",
    "OUTCOME_UNKNOWN",
    "TRANSITIONS",
    "AlreadyClaimedError",
    "AnswerError",
    "AnsweredAskError",
    "Ask",
    "AskConflictError",
    "AskRecord",
    "AskRefusedError",
    "AskState",
    "BatchOpenError",
    "BatchRecord",
    "BatchState",
    "Book",
    "BrokenSealError",
    "CallBudget",
    "CallRequest",
    "Claim",
    "ClaimLostError",
    "Decision",
    "EditRefusedError",
    "ExpiredAskError",
    "GivenUpAskError",
    "Grant",
    "GrantModeError",
    "KeyRetiredError",
    "Keys",
    "Ledger",
    "LedgerError",
    "LedgerStore",
    "Lost",
    "MemoryLedgerStore",
    "OrdinalError",
    "OtherOwnerError",
    "OtherThreadError",
    "OtherTurnError",
    "Plan",
    "Policy",
    "Progress",
    "QueuedAskError",
    "Recovered",
    "RequestStateError",
    "SealedContinuations",
    "SealedTooLargeError",
    "Sealer",
    "SpentAskError",
    "SpentContinuationError",
    "StandingRule",
    "TamperedAskError",
    "TokenError",
    "TransitionError",
    "UnissuedAskError",
    "UnknownBatchError",
    "UnsealableError",
    "WordsRefusedError",
    "WrongReplyError",
    "canonical",
    "needs_token",
    "plan",
    "tokens_of",
    "unknown_result",
    "with_tokens",
    "without_tokens",
]
