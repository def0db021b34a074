"""The adapter that ``docs/adapters/writing-one.md`` writes: a second shape, whose stream has no end of its own."""

from __future__ import annotations

import ast
from functools import cache
from types import ModuleType
from typing import Any

from agjson.testing.contract import Subject
from tests.support.corpus import ROOT
from tests.support.examples import blocks

PAGE = ROOT / "docs" / "adapters" / "writing-one.md"
# The last block that the adapter is made of; those after it try it out.
LAST = "SUBJECT"


@cache
def page() -> Any:
    """What the page defines, up to its subject."""
    module = ModuleType("murmur")
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.language == "python" and block.runs:
            exec(compile(block.text, f"{PAGE.name}:{block.line}", "exec", dont_inherit=True), module.__dict__)
            if _defines(block.text, LAST):
                return module
    raise AssertionError(f"{PAGE.name} defines no {LAST}")


def subject() -> Subject:
    """The subject of the page."""
    found = page().SUBJECT
    assert isinstance(found, Subject)
    return found


def _defines(code: str, name: str) -> bool:
    return any(
        isinstance(node, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in node.targets)
        for node in ast.parse(code).body
    )
