"""The contract of an adapter, as rules that any adapter can be held to (spec §5.0, §8.0, §10).

For authors of adapters, inside this project and outside. A `Subject` tells the suite of an adapter: its record, sample
native streams, what has to survive. Each rule of `RULES` is a function of it::

    from agjson.testing.contract import RULES, Sample, Subject

    SUBJECT = Subject(adapter=ADAPTER, samples=[Sample(name="hello", natives=[...])], has_ended=...)

    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_contract(rule):
        rule(SUBJECT)

A rule that finds a fault raises AssertionError; one that lacks what it needs raises `NotApplicable`, which pytest and
unittest report as skipped. The suite needs neither of them. Rules run event loops of their own, so they are called
where none runs. Each run is the same: nothing is drawn at random without a fixed seed.
"""

from agjson.testing.contract.rule import Rule
from agjson.testing.contract.rules import RULES, rule_named
from agjson.testing.contract.scene import (
    GATED_TOOL,
    SAFE_TOOL,
    GatedCall,
    GatedReply,
    GatedScene,
    Gating,
    MakeGatedAgent,
)
from agjson.testing.contract.subject import MakeAgent, NotApplicable, Path, Respond, Sample, Subject, Terminal

__all__ = [
    "GATED_TOOL",
    "RULES",
    "SAFE_TOOL",
    "GatedCall",
    "GatedReply",
    "GatedScene",
    "Gating",
    "MakeAgent",
    "MakeGatedAgent",
    "NotApplicable",
    "Path",
    "Respond",
    "Rule",
    "Sample",
    "Subject",
    "Terminal",
    "rule_named",
]
