"""Transcripts: tool calls by occurrence, what waits, what a model may read, and shorter histories (loop contract).

`prepare` makes a history into the next request, `settle` brings results and answers to their calls, `compact` shortens,
`validate` says what is wrong. Nothing here runs anything, and no history is ever changed.
"""

from agjson.transcript.arrangement import Origin
from agjson.transcript.asks import Controls, Spent, controls
from agjson.transcript.compaction import (
    Composed,
    DropToolCalls,
    DropToolResults,
    SlidingWindow,
    Strategy,
    TokenBudget,
    compact,
)
from agjson.transcript.grouping import Group, groups
from agjson.transcript.occurrence import Occurrence, Place, occurrences
from agjson.transcript.preparing import Change, ChangeCode, Prepared, StrayPolicy, UnansweredPolicy, prepare
from agjson.transcript.problems import Problem, TranscriptError
from agjson.transcript.settling import DENIED, DISMISSED, Allowed, Settled, Unmatched, UnmatchedCode, refusal, settle
from agjson.transcript.transcript import Transcript, validate

__all__ = [
    "DENIED",
    "DISMISSED",
    "Allowed",
    "Change",
    "ChangeCode",
    "Composed",
    "Controls",
    "DropToolCalls",
    "DropToolResults",
    "Group",
    "Occurrence",
    "Origin",
    "Place",
    "Prepared",
    "Problem",
    "Settled",
    "SlidingWindow",
    "Spent",
    "Strategy",
    "StrayPolicy",
    "TokenBudget",
    "Transcript",
    "TranscriptError",
    "UnansweredPolicy",
    "Unmatched",
    "UnmatchedCode",
    "compact",
    "controls",
    "groups",
    "occurrences",
    "prepare",
    "refusal",
    "settle",
    "validate",
]
