"""The conformance page: which tests show which duty of the specification.

``rows.toml`` lists every duty with its tests; `faults` holds the rows to the specification and to the tests that exist,
`render` makes the page of them.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tests.support.corpus import ROOT

__all__ = ["DUTIES", "PAGE", "ROWS", "Row", "current", "faults", "load_rows", "names_in", "render"]

PAGE = ROOT / "docs" / "conformance.md"
"""The page, which is committed."""

ROWS = Path(__file__).with_name("rows.toml")
"""The table behind it."""

_INVARIANTS = ("FOLD", "TURN", "MSG", "BLOCK", "DELTA", "SEQ", "OWNER", "FLUSH")

DUTIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Invariants (§5.0)", tuple(f"INV-{name}" for name in _INVARIANTS)),
    (
        "Asks and answers (§7)",
        tuple(
            f"7 {name}"
            for name in (
                "ask",
                "answer",
                "pause",
                "reason",
                "url",
                "requestState",
                "inputKey",
                "ordinal",
                "taskState",
                "continuation",
            )
        ),
    ),
    ("Normalization points (§8)", tuple(f"8.{number}" for number in range(1, 24))),
    ("Conformance fixtures (§10)", tuple(f"10.{number}" for number in range(1, 21))),
    ("Decisions about calls and asks (§11)", ("11.3", "11.4")),
    ("LangGraph (§3.1, §12)", ("3.1 LangGraph", "12 stream modes")),
    ("Security duties (§13)", tuple(f"13.{number}" for number in range(1, 7))),
)
"""The sections of the page, and the name of each duty in them."""

Status: TypeAlias = Literal["pass", "not yet", "not applicable"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One duty.

    Attributes:
        id: its name in `DUTIES`.
        what: the duty in one sentence.
        status: ``pass``: the tests show the whole of it; ``not yet``: something is missing; ``not applicable``: it does
            not bind this library.
        tests: node ids of tests that show it or a part of it, without parameters.
        reason: what is missing, or why it does not apply; for ``pass`` a remark, if any.
    """

    id: str
    what: str
    status: Status
    tests: list[str] = []
    reason: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    row: list[Row]


def load_rows(path: Path = ROWS) -> list[Row]:
    """The rows of the table, in its order.

    Raises:
        msgspec.ValidationError: a row has a wrong or unknown member.
    """
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _Table).row


def faults(rows: Sequence[Row], root: Path = ROOT) -> list[str]:
    """What is wrong with the rows: a duty missing, repeated or unknown, a test that does not exist, no word of why."""
    named = Counter(row.id for row in rows)
    duties = [duty for _, section in DUTIES for duty in section]
    found = [f"{duty}: no row" for duty in duties if duty not in named]
    found += [f"{name}: {count} rows" for name, count in named.items() if count > 1]
    found += [f"{name}: no such duty" for name in named if name not in duties]
    for row in rows:
        found += [f"{row.id}: {fault}" for fault in _faults_of(row, root)]
    return found


def _faults_of(row: Row, root: Path) -> Iterator[str]:
    if row.status == "pass" and not row.tests:
        yield "passes without a test"
    if row.status != "pass" and not row.reason:
        yield f"{row.status} without a reason"
    if row.status == "not applicable" and row.tests:
        yield "does not apply, yet has tests"
    for test in row.tests:
        file, _, name = test.partition("::")
        known = names_in(root / file)
        if name not in known:
            yield f"{test} does not exist"
        elif not known[name]:
            yield f"{test} is skipped or expected to fail"


@cache
def names_in(path: Path) -> dict[str, bool]:
    """The tests of a file, ``test_x`` or ``TestY::test_x``, and whether each runs: it is not marked skip or xfail."""
    if not path.is_file():
        return {}
    return dict(_tests_in(ast.parse(path.read_bytes()).body, "", runs=True))


def _tests_in(body: Sequence[ast.stmt], prefix: str, *, runs: bool) -> Iterator[tuple[str, bool]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield prefix + node.name, runs and not _is_skipped(node)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests_in(node.body, f"{prefix}{node.name}::", runs=runs and not _is_skipped(node))
        elif isinstance(node, ast.Assign) and not prefix:
            # A state machine of Hypothesis becomes a test case by assignment.
            yield from ((t.id, runs) for t in node.targets if isinstance(t, ast.Name) and t.id.startswith("Test"))


def _is_skipped(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    names = {
        part.attr
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
        if isinstance(part, ast.Attribute)
    }
    return not names.isdisjoint({"skip", "xfail"})


def render(rows: Sequence[Row]) -> str:
    """The page in Markdown."""
    by_id = {row.id: row for row in rows}
    counts = Counter(row.status for row in rows)
    lines = [
        "# Conformance",
        "",
        "Which tests show which duty of the AgJSON specification, `1.0.0-draft.1`. This page is written by",
        "`make conformance` from `tests/conformance/rows.toml`; a test fails when it is out of date or names a test",
        "that does not exist. A row passes when its tests do, and they are part of `make test`.",
        "",
        f"**{counts['pass']}** pass, **{counts['not yet']}** not yet, **{counts['not applicable']}** not applicable.",
        "",
        "- *pass*: the tests show the whole duty.",
        "- *not yet*: the row says what is missing; tests that are listed show a part.",
        "- *not applicable*: the duty does not bind this library, for the reason given.",
    ]
    for title, duties in DUTIES:
        lines += ["", f"## {title}", "", "| | duty | status | shown by |", "| --- | --- | --- | --- |"]
        lines += [_line(by_id[duty]) for duty in duties if duty in by_id]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    tests = "<br>".join(_link(test) for test in row.tests)
    shown = "<br>".join(part for part in (_cell(row.reason), tests) if part)
    return f"| {row.id} | {_cell(row.what)} | {row.status} | {shown} |"


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[`{name}`](../{file})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def current() -> str:
    """The page as the rows make it now."""
    return render(load_rows())
