"""The table: on a terminal, and in docs/performance.md between two marks."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.measure import Row

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- table: written by make bench -->", "<!-- end of table -->"


def line(row: Row) -> str:
    """A row for a terminal."""
    aim = f"<= {row.aim:g}" if row.aim is not None else ""
    return f"{row.group:9} {row.name:58} {ratio(row):>7}x {aim:7} {row.verdict:5} {row.cost:>10}   {row.floor}"


def ratio(row: Row) -> str:
    """The ratio, with one more digit where two would not tell it from its aim."""
    return f"{row.ratio:.3f}" if row.ratio < 0.2 else f"{row.ratio:.2f}"


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown, and what they were measured on."""
    text = [
        f"Measured on {datetime.datetime.now(datetime.UTC).date()}, {machine()}.",
        "",
        "| what | ratio | aim | | cost | floor |",
        "| --- | ---: | ---: | --- | ---: | --- |",
    ]
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            text.append(f"| **{group}** | | | | | |")
        aim = f"{row.aim:g}" if row.aim is not None else ""
        text.append(f"| {row.name} | {ratio(row)} | {aim} | {row.verdict} | {row.cost} | {row.floor} |")
    return "\n".join(text)


def machine() -> str:
    """What kind of machine this is, in words that name no particular one."""
    cores = os.cpu_count()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{platform.system()} on {platform.machine()} with {cores} cores, {python}, msgspec {msgspec.__version__}"


def write(rows: Iterable[Row], page: Path = PAGE) -> None:
    """Put a new table into the page; the text around it stays."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page.name} has no place for the table: {BEGIN} ... {END}")
    page.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}", encoding="utf-8")
