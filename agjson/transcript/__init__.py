"""Transcripts: tool calls by occurrence, what waits, what a model may read, and shorter histories (loop contract).

`prepare` makes a history into the next request, `settle` brings results and answers to their calls, `compact` shortens,
`validate` says what is wrong. Nothing here runs anything, and no history is ever changed.
"""

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
from agjson.transcript.preparing import Change, Prepared, prepare
from agjson.transcript.problems import Problem, TranscriptError
from agjson.transcript.settling import Allowed, Settled, Unmatched, settle
from agjson.transcript.transcript import Transcript, validate

__all__ = [
    "Allowed",
    "Change",
    "Composed",
    "Controls",
    "DropToolCalls",
    "DropToolResults",
    "Group",
    "Occurrence",
    "Place",
    "Prepared",
    "Problem",
    "Settled",
    "SlidingWindow",
    "Spent",
    "Strategy",
    "TokenBudget",
    "Transcript",
    "TranscriptError",
    "Unmatched",
    "compact",
    "controls",
    "groups",
    "occurrences",
    "prepare",
    "settle",
    "validate",
]
