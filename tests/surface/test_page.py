"""The mapping tables of the adapters' pages are those of their surfaces, whole."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.support.corpus import ROOT
from tests.surface.page import BEGIN, END, PAGES, SurfaceError, current, render, surface_of

SURFACE: dict[str, Any] = {
    "sdk": {"sdk-a": "1.0"},
    "dispositions": {"to": "mapped"},
    "modes": {"values": "to state.* or __all__", "debug": "whole in ext.x.debug <id>"},
    "messages": {
        "A": {"id": "to message.start.id", "role": "dropped: a | b"},
        "B": {"id": "to message.start.id", "role": "to message.start.role"},
    },
}


@pytest.mark.parametrize("adapter", PAGES)
def test_the_committed_tables_are_what_the_surface_makes(adapter: str) -> None:
    text = PAGES[adapter].read_text(encoding="utf-8")
    assert text == current(text, surface_of(adapter)), "run python -m tests.surface"


@pytest.mark.parametrize("adapter", PAGES)
def test_every_entry_of_the_surface_is_in_the_tables(adapter: str) -> None:
    surface = surface_of(adapter)
    rows = render(surface).splitlines()
    for name in surface.keys() - {"sdk", "dispositions"}:
        for native, fate in surface[name].items():
            for member, inner in [(native, fate)] if isinstance(fate, str) else fate.items():
                names = {f"`{native}`"} if isinstance(fate, str) else {f"`{member}` of", f"`{native}`"}
                said = f"| {inner.removeprefix('to ')} |"
                assert any(row.replace("\\", "").endswith(said) and all(each in row for each in names) for row in rows)


def test_rows_say_what_becomes_of_each_and_join_what_classes_share() -> None:
    assert render(SURFACE).splitlines() == [
        "Verified with `sdk-a` 1.0.",
        "",
        "### Stream modes",
        "",
        "| mode | becomes |",
        "| --- | --- |",
        r"| `values` | state.\* or \_\_all\_\_ |",
        r"| `debug` | whole in ext.x.debug \<id> |",
        "",
        "### Messages",
        "",
        "| member | becomes |",
        "| --- | --- |",
        "| `id` of `A`, `B` | message.start.id |",
        "| `role` of `A` | dropped: a \\| b |",
        "| `role` of `B` | message.start.role |",
    ]


def test_the_text_around_the_tables_stays() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    made = current(page, SURFACE)
    assert made == f"before\n{BEGIN}\n\n{render(SURFACE)}\n{END}\nafter\n"
    assert current(made, SURFACE) == made


@pytest.mark.parametrize("page", ["", BEGIN, f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_needs_one_place_for_them(page: str) -> None:
    with pytest.raises(SurfaceError, match="once each"):
        current(page, SURFACE)


def test_a_part_that_has_no_heading_is_not_left_out_silently() -> None:
    with pytest.raises(SurfaceError, match="no heading for novelties"):
        render({**SURFACE, "novelties": {"a": "to b"}})


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.surface", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_tells_that_the_pages_are_up_to_date() -> None:
    done = run("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_refuses_other_arguments() -> None:
    done = run("--verify")
    assert (done.returncode, done.stderr) == (2, "usage: python -m tests.surface [--check]\n")
