"""The rules on approvals, with the review middleware of LangChain in place of a gate of the agent's own (§7, §13.1)."""

from __future__ import annotations

import pytest

from agjson.adapters.langgraph import ADAPTER
from agjson.testing.contract import RULES, Rule, Sample, Subject
from tests.support.langgraph_gated import GATING

SUBJECT = Subject(
    adapter=ADAPTER,
    samples=[Sample(name="any", natives=[{"type": "values", "ns": [], "data": {"topic": "a"}, "interrupts": []}])],
    has_ended=lambda natives: False,
    gating=GATING,
)


# LangGraph tells of an exception that ends a process as of a failure of the tool, so that no tool can stand for the
# death of a process: test_agent_restart.py kills one. And it runs the calls of an answer at once, in no order: that the
# safe ones wait for the others, and run once, is in test_agent.py.
OTHERWISE = frozenset(("approval-crash", "approval-siblings"))

APPROVALS = [rule for rule in RULES if rule.name.startswith("approval-") and rule.name not in OTHERWISE]


@pytest.mark.parametrize("rule", APPROVALS, ids=str)
def test_approvals(rule: Rule) -> None:
    rule(SUBJECT)
