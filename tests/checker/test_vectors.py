"""The fold's vectors, judged as what a producer wrote: what parks is found, what else is found is listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agjson.checker import check
from tests.support.corpus import vectors

# Vectors that fold well, and what they hold that a producer may not write.
NOT_A_PRODUCERS = {
    "live-only--unknown-dotted-and-bare": {"UNKNOWN-TYPE"},
    "live-only--unknown-fields-on-events": {"UNDECLARED-FIELD"},
    "message--candidates-interleaved": {"ASSEMBLED"},
    "message--restart-same-id-unsealed": {"INV-MSG"},
    "message--turnid-omitted-single-turn": {"ASSEMBLED"},
    "message--unopened-turn-tolerated": {"INV-TURN"},
    "reasoning--signature-unsealed-not-visible": {"OPAQUE"},
    "ruling--adopted-message-loses-candidate": {"ASSEMBLED"},
    "seq--backward-arbitrary": {"INV-SEQ"},
    "seq--backward-zero-restart": {"INV-MSG", "INV-TURN"},
    "seq--equal-seq-is-no-gap": {"INV-SEQ"},
    "seq--first-ordinal-above-zero": {"INV-SEQ"},
    "seq--gap-mid-text-no-double-apply": {"INV-SEQ"},
    "seq--gap-over-side-channels-full-snapshot": {"INV-SEQ"},
    "seq--gap-revealed-by-snapshot": {"INV-SEQ"},
    "seq--reduce-error-then-snapshot": {"INV-MSG"},
    "seq--unknown-type-occupies-slot": {"UNKNOWN-TYPE"},
    "tool-result--final-omits-optional-fields": {"PARTIAL-LEFTOVER"},
    "tool-result--orphan-in-open-message": {"ANNOUNCE"},
    "turn--done-paused-empty-asks": {"HITL"},
    "turn--done-paused-many-kinds-with-result": {"HITL"},
    "turn--done-twice": {"INV-TURN"},
}

# Patches that fail on the value that they meet, which a check does not keep.
ONLY_A_FOLD_SHOWS = {
    "memory--patch-failing-atomic",
    "ruling--patch-replace-inherited-name",
    "state--patch-fails-descend-into-scalar",
    "state--patch-fails-leading-zero-index",
    "state--patch-fails-remove-absent",
    "state--patch-fails-replace-absent",
    "state--patch-fails-test-bool-is-not-number",
    "state--patch-fails-test-mismatch",
}


def rules_broken(vector: dict[str, Any]) -> set[str]:
    """The rules that a vector breaks; vectors are fragments, so what they leave open does not count."""
    found = check(json.dumps(event) for event in vector["events"])
    return {v.rule for v in found if not v.message.endswith((" is never ended", " is never closed"))}


@pytest.mark.corpus
@pytest.mark.parametrize("vector", vectors("reduce"))
def test_a_vector_is_judged_as_its_fold_is(vector: dict[str, Any], request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    rules = rules_broken(vector)
    if name == "seq--backward-zero-restart":
        found = check(json.dumps(event) for event in vector["events"])
        assert {violation.rule for violation in found} == NOT_A_PRODUCERS[name]
    elif name in ONLY_A_FOLD_SHOWS:
        assert vector["expect"]["needsResync"]
        assert rules == set()
    elif vector["expect"]["needsResync"]:
        assert rules != set()
    else:
        assert rules == NOT_A_PRODUCERS.get(name, set())
