"""docs/approvals.md lists what there is; refusals can be told apart by programs, also in other processes."""

from __future__ import annotations

import pickle
import re

import pytest

import agjson.approvals as approvals
from agjson.agents import InputError
from agjson.approvals import AnswerError
from tests.support.corpus import ROOT

PAGE = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")
FIELDS = {"askId", "token", "requestState", "grantModeId", "reply", "ordinal"}


def refusals() -> list[type[AnswerError]]:
    found = [getattr(approvals, name) for name in approvals.__all__ if name.endswith("Error")]
    return [kind for kind in found if issubclass(kind, AnswerError) and kind is not AnswerError]


def test_the_page_lists_every_refusal() -> None:
    listed = re.findall(r"^\| `(\w+Error)` \|", PAGE, flags=re.MULTILINE)
    assert sorted(listed) == sorted(kind.__name__ for kind in refusals())


def test_every_refusal_has_a_code_of_its_own_and_names_a_field_of_an_answer() -> None:
    codes = [kind.code for kind in refusals()]
    assert len(codes) == len(set(codes)) == 18
    assert {kind.field for kind in refusals()} == FIELDS


@pytest.mark.parametrize("kind", refusals())
def test_a_refusal_crosses_processes_whole(kind: type[AnswerError]) -> None:
    error = kind("words", "ask-1", "$.answers[2]")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert isinstance(again, InputError)
    assert (again.ask_id, again.message, again.path, again.code) == (
        "ask-1",
        "words",
        f"$.answers[2].{kind.field}",
        kind.code,
    )
    assert str(again) == f"words - at `$.answers[2].{kind.field}`"
