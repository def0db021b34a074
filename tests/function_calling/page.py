"""The page of the function-calling contract: which tests show which row and rule, and what is still to come."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from tests.conformance.page import load_rows
from tests.function_calling.code import digests, unused
from tests.function_calling.table import (
    DRIVER,
    OTHER,
    Entry,
    Section,
    faults,
    load_adapters,
    load_sections,
    node_ids,
)
from tests.support.corpus import ROOT

__all__ = ["PAGE", "changed", "current", "problems", "render"]

PAGE = ROOT / "docs" / "function-calling-matrix.md"
"""The page, which is committed."""

Status: TypeAlias = Literal["pass", "in part", "not yet", "not bound"]
Line: TypeAlias = tuple[str, Status, str]

_STATUSES: tuple[Status, ...] = ("pass", "in part", "not yet", "not bound")
_LATER: Mapping[str, str] = {"L": "the loop", "F": "an adapter of Agent Framework"}
_DIGEST = re.compile(r"^\| `([\w/]+\.py)` \| `([0-9a-f]{12})` \|$", re.MULTILINE)
_HEAD = """\
# The function-calling contract

A loop of calls, approvals and results is safe only if every part of it keeps the same contract. This page says, for
each row of the contract's scenario matrix and each of its rules, who has to keep it and which tests show that it is
kept.
`python -m tests.function_calling` writes it from the tables in `tests/function_calling/`;
[contributing](../CONTRIBUTING.md#calls-and-approvals) says when a change has to touch it.

- **T**, the neutral library: [transcripts](transcript.md) and [approvals](approvals.md). It keeps its part whatever the
  framework does.
- **A**, each adapter, with what [the driver](agent.md) does for all of them.
- **L**, a loop of our own, on top of the library.
- **F**, an adapter of Agent Framework.

*pass*: the tests exist, are collected and run. *in part*: the tests that are listed show a part, and the line says what
brings the rest. *not yet*: the line says what brings it. *not bound*: it does not concern this adapter, for the reason
given.
"""

_CODE = """\
## The code that this was made of

The page is stale as soon as this code changes, comments apart: whoever changes it looks at the rows that it concerns,
and writes the page again.
"""

_TITLES = {"row": "", "gap": "", "rule": "Contract: "}


def current() -> str:
    """The page as table and code make it now."""
    return render(load_sections(), load_adapters(), digests())


def problems() -> list[str]:
    """What is wrong with the table, whatever the page says."""
    sections = load_sections()
    tests = {test.partition("::")[0] for section in sections for entry in section.entries for test in node_ids(entry)}
    tests |= {test.partition("::")[0] for row in load_rows() for test in row.tests}
    found = faults(sections, load_adapters())
    for package, names in unused(sorted(tests)).items():
        found += [f"{package}: no test that is listed here or for conformance uses {name}" for name in names]
    return found


def changed(text: str, now: Mapping[str, str]) -> list[str]:
    """The modules whose code is not that of which a page was made, new and removed ones included.

    Args:
        text: the page.
        now: the digests of the code, as `digests` gives them.
    """
    before = dict(_DIGEST.findall(text))
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def render(sections: Sequence[Section], adapters: Mapping[str, str], code: Mapping[str, str]) -> str:
    """The page in Markdown.

    Args:
        sections: the table.
        adapters: the adapters, each with what brings the rows that list nothing for it.
        code: the digest of each module.
    """
    lines = [_HEAD]
    lines += _summary(sections, adapters)
    for section in sections:
        lines += ["", f"## {_TITLES[section.kind]}{section.title}", ""]
        lines += ["| | what | who | status | shown by |", "| --- | --- | --- | --- | --- |"]
        for entry in section.entries:
            lines += _rows(section, entry, adapters)
    lines += ["", _CODE]
    lines += ["| module | digest |", "| --- | --- |"]
    lines += [f"| `{name}` | `{value}` |" for name, value in code.items()]
    return "\n".join(lines) + "\n"


def _summary(sections: Sequence[Section], adapters: Mapping[str, str]) -> Iterator[str]:
    counts: dict[str, Counter[Status]] = {}
    for section in sections:
        for entry in section.entries:
            for who, status, _ in _lines(entry, adapters, every=True):
                counts.setdefault(who, Counter())[status] += 1
    yield "| who | " + " | ".join(_STATUSES) + " |"
    yield "| --- |" + " --- |" * len(_STATUSES)
    order = ["T", _who(DRIVER), *map(_who, adapters), _who(OTHER), "L", "F"]
    for who in order:
        if who in counts:
            yield f"| {who} | " + " | ".join(str(counts[who][status] or "") for status in _STATUSES) + " |"
    waiting = {name: why for name, why in adapters.items() if why}
    for name, why in waiting.items():
        yield ""
        yield f"Rows that say nothing of `{name}` wait for {why}."


def _rows(section: Section, entry: Entry, adapters: Mapping[str, str]) -> Iterator[str]:
    label = f"{section.kind} {entry.number}"
    what = f"**{entry.name}**<br>{entry.what}" if entry.name else entry.what
    for who, status, shown in _lines(entry, adapters):
        yield f"| {label} | {_cell(what)} | {who} | {status} | {shown} |"
        label = what = ""


def _lines(entry: Entry, adapters: Mapping[str, str], *, every: bool = False) -> Iterator[Line]:
    """Who keeps it, how far, and what shows it; adapters that the entry says nothing of only where ``every`` is set."""
    for part in entry.parts:
        if part != "A":
            yield _line(part, part, entry, _LATER.get(part, ""))
            continue
        for name in (DRIVER, *adapters, OTHER):
            said = name in entry.tests or name in entry.later or name in entry.apart
            if said or (every and name in adapters):
                yield _line(_who(name), name, entry, adapters.get(name, "") if not said else "")


def _who(name: str) -> str:
    return f"A, {({DRIVER: 'every adapter', OTHER: 'a later adapter'}).get(name, name)}"


def _line(who: str, name: str, entry: Entry, default: str) -> Line:
    tests, later = entry.tests.get(name, []), entry.later.get(name, default)
    if name in entry.apart:
        return (who, "not bound", _cell(entry.apart[name]))
    status: Status = ("in part" if later else "pass") if tests else "not yet"
    return (who, status, "<br>".join([*([_cell(f"To come: {later}.")] if later else []), *_links(tests)]))


def _links(tests: Sequence[str]) -> Iterator[str]:
    for file, group in groupby(tests, key=lambda test: test.partition("::")[0]):
        for test in group:
            yield f"[`{test.partition('::')[2]}`](../{file})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
