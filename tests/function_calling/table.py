"""The table of the function-calling contract: what each row and rule asks for, and which tests show it.

``rows/`` has the rows of the scenario matrix and its coverage gaps, ``rules/`` those of the normative contract, one
file for each section, numbered as the contract has them. `faults` holds the table to the tests that exist.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tests.conformance.page import names_in
from tests.support.corpus import ROOT

__all__ = [
    "ADAPTERS",
    "DRIVER",
    "OTHER",
    "Entry",
    "Kind",
    "Part",
    "Section",
    "faults",
    "load_adapters",
    "load_sections",
    "node_ids",
]

FOLDER = Path(__file__).parent
ADAPTERS = FOLDER / "adapters.toml"
"""The adapters that exist, each with what brings the rows that list nothing for it."""

Kind: TypeAlias = Literal["row", "gap", "rule"]
Part: TypeAlias = Literal["T", "A", "L", "F"]

DRIVER = "driver"
"""In place of an adapter: what holds for every adapter, because it stands on `agjson.agents`."""

OTHER = "other"
"""In place of an adapter: one that does not exist."""

LAST: Mapping[Kind, int] = {"row": 84, "gap": 1, "rule": 27}

# Whose tests are named after rows and rules.
_NAMED = ("tests/transcript", "tests/approvals", "tests/adapters", "tests/agent")
_NUMBERED = re.compile(r"(?<![a-z])(row|gap|rule)_(\d+)")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the matrix, a gap in its coverage, or a rule.

    Attributes:
        number: its place in the contract, from 1. Row 53 is not in the matrix: the framework's own tests add it.
        name: the scenario, as the matrix names it; empty for a rule.
        opens: the first words of the rule in the contract; empty for others.
        what: what it asks for, in one sentence.
        parts: who has to keep it: T the neutral library, A each adapter, L a loop of our own, F an adapter of Agent
            Framework.
        tests: node ids of tests that show it, without parameters, by ``T``, ``L``, ``F``, the name of an adapter, or
            `DRIVER`.
        later: what brings it, or the rest of it, by the same names or `OTHER`.
        apart: why it does not bind an adapter, by its name.
    """

    number: int
    what: str
    parts: list[Part]
    name: str = ""
    opens: str = ""
    tests: dict[str, list[str]] = {}
    later: dict[str, str] = {}
    apart: dict[str, str] = {}


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the contract.

    Attributes:
        title: its heading.
        kind: what it holds.
        entries: its rows, gaps or rules.
    """

    title: str
    kind: Kind
    entries: list[Entry]


def load_sections(folder: Path = FOLDER) -> list[Section]:
    """The sections: rows, the gaps behind them, rules, each in the order of their numbers.

    Args:
        folder: where ``rows/`` and ``rules/`` are.

    Raises:
        msgspec.ValidationError: an entry has a wrong or unknown member.
    """
    found: list[Section] = []
    for path in [*folder.glob("rows/*.toml"), *folder.glob("rules/*.toml")]:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        title = table.pop("title")
        ((kind, entries),) = table.items()
        found.append(msgspec.convert({"title": title, "kind": kind, "entries": entries}, Section))
    return sorted(found, key=lambda section: (list(LAST).index(section.kind), section.entries[0].number))


def load_adapters(path: Path = ADAPTERS) -> dict[str, str]:
    """The adapters, each with what brings the rows that list nothing for it; empty where every row has to."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: members.get("later", "") for name, members in table.items()}


def faults(sections: Sequence[Section], adapters: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """What is wrong with the table: a number missing or twice, a part with nothing to it, a test that is not there.

    Args:
        sections: the table.
        adapters: what `load_adapters` gives.
        root: where the node ids start.
    """
    found: list[str] = []
    entries: list[tuple[Kind, Entry]] = [(each.kind, entry) for each in sections for entry in each.entries]
    for kind, last in LAST.items():
        numbers = [entry.number for each, entry in entries if each == kind]
        found += [f"{kind} {number}: missing" for number in range(1, last + 1) if number not in numbers]
        if numbers != sorted(set(numbers)) or any(not 1 <= number <= last for number in numbers):
            found.append(f"{kind}s: not in their order, twice, or unknown: {numbers}")
    listed: dict[str, set[str]] = {}
    for kind, entry in entries:
        label = f"{kind} {entry.number}"
        found += [f"{label}: {fault}" for fault in _faults_of(kind, entry, adapters, root)]
        listed[label] = set(node_ids(entry))
    for test in sorted(_named_tests(root)):
        name = test.partition("::")[2]
        for kind, number in _NUMBERED.findall(name):
            if test not in listed.get(f"{kind} {number}", ()):
                found.append(f"{kind} {number}: {test} is named after it and not listed")
    return found


def node_ids(entry: Entry) -> list[str]:
    """Every test that is listed for an entry."""
    return [test for tests in entry.tests.values() for test in tests]


def _faults_of(kind: Kind, entry: Entry, adapters: Mapping[str, str], root: Path) -> Iterator[str]:
    if bool(entry.name) == (kind == "rule") or bool(entry.opens) != (kind == "rule") or not entry.what:
        yield "lacks its words"
    if not entry.parts or [part for part in "TALF" if part in entry.parts] != entry.parts:
        yield f"parts {entry.parts} are not some of T, A, L, F in this order"
    known = {*(set(entry.parts) - {"A"}), *((*adapters, DRIVER, OTHER) if "A" in entry.parts else ())}
    for member in (entry.tests, entry.later, entry.apart):
        yield from (f"{name!r} has no part in it" for name in member if name not in known)
    if "T" in entry.parts and not entry.tests.get("T"):
        yield "no test of the library shows it"
    if "T" in entry.later:
        yield "the library brings it now, not later"
    if "A" in entry.parts:
        for name, default in adapters.items():
            said = name in entry.tests or name in entry.later
            if said and name in entry.apart:
                yield f"it does not bind {name}, and something is said of it"
            if not (said or name in entry.apart or default):
                yield f"nothing is said of {name}"
    yield from (f"{name} has no reason" for name, why in (*entry.later.items(), *entry.apart.items()) if not why)
    for name, tests in entry.tests.items():
        if not tests:
            yield f"{name} lists no test"
        yield from (f"{name}: {test} is listed twice" for test in sorted({t for t in tests if tests.count(t) > 1}))
        for test in tests:
            file, _, function = test.partition("::")
            names = names_in(root / file)
            if function not in names:
                yield f"{test} does not exist"
            elif not names[function] or not _runs(root / file, function):
                yield f"{test} is skipped or expected to fail"


@cache
def _skipping(path: Path) -> tuple[bool, frozenset[str]]:
    """Whether a file is skipped or expected to fail as a whole, and its functions that say so inside."""
    whole = False
    functions: set[str] = set()
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if _says_skip(node.body):
                functions.add(node.name)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and _says_skip(inner.body):
                    functions.add(f"{node.name}::{inner.name}")
        elif _says_skip([node]):
            whole = True
    return whole, frozenset(functions)


def _says_skip(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("skip", "xfail") and ast.unparse(part).startswith("pytest.")
        for node in body
        for part in ast.walk(node)
    )


def _runs(path: Path, function: str) -> bool:
    whole, functions = _skipping(path)
    return not whole and function not in functions


def _named_tests(root: Path) -> Iterator[str]:
    for folder in _NAMED:
        for path in sorted((root / folder).rglob("test_*.py")):
            for name in names_in(path):
                if _NUMBERED.search(name):
                    yield f"{path.relative_to(root).as_posix()}::{name}"
