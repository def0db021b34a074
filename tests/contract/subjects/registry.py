"""The adapters that the contract suite is run on: a row for each set of native streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from agjson.testing.contract import RULES, Subject
from tests.contract.subjects import anthropic, langgraph, murmur

__all__ = ["ROWS", "Row"]


AGENT_RULES = tuple(rule.name for rule in RULES if rule.name.startswith("agent-"))
APPROVAL_RULES = tuple(rule.name for rule in RULES if rule.name.startswith("approval-"))


@dataclass(frozen=True)
class Row:
    """One adapter on one set of streams.

    Attributes:
        name: what the tests are called.
        subject: makes the subject.
        corpus: it needs the shared corpus.
        lacks: the rules that do not apply, each with the reason.
    """

    name: str
    subject: Callable[[], Subject]
    corpus: bool = False
    lacks: Mapping[str, str] = field(default_factory=dict[str, str])


ROWS = (
    Row("anthropic", anthropic.subject),
    Row(
        "anthropic-recorded",
        partial(anthropic.subject, corpus=True),
        corpus=True,
        lacks={
            "native-error": "no recording ends in an error",
            **{each: "as in the row above: they need no recording" for each in APPROVAL_RULES},
        },
    ),
    Row(
        "anthropic-single",
        anthropic.single,
        lacks={each: "as in the first row: one request is no agent" for each in (*AGENT_RULES, *APPROVAL_RULES)},
    ),
    Row("langgraph", langgraph.subject),
    Row(
        "langgraph-modes",
        langgraph.modes,
        lacks={
            "native-error": "as in the row above",
            "stream-equals-whole": "as in the row above: the same runs",
            **{each: "as in the row above: an agent asks for all modes" for each in (*AGENT_RULES, *APPROVAL_RULES)},
        },
    ),
    Row(
        "langgraph-recorded",
        langgraph.of_recordings,
        corpus=True,
        lacks={
            "native-error": "as in the first row: no recording ends in an error",
            "stream-equals-whole": "a stream names the model before the answer has, so that messages bear another name",
            "interleaving": "as in the first row: one model speaks at a time",
            **{each: "as in the first row: they need no recording" for each in (*AGENT_RULES, *APPROVAL_RULES)},
        },
    ),
    Row("murmur", murmur.subject, lacks={"interleaving": "its natives come one after the other"}),
)
"""The rows; ``tests/adapters/<name>/`` shows what each adapter makes of its natives."""
