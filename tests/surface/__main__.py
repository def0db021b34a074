"""Writes the tables into the adapters' pages: ``python -m tests.surface``; ``--check`` tells which are stale."""

from __future__ import annotations

import sys

from tests.support.corpus import ROOT
from tests.surface.page import PAGES, SurfaceError, current, surface_of


def main(arguments: list[str]) -> int:
    """Write or check the pages; returns the exit status: 0 fine, 1 stale or impossible, 2 unusable call."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tests.surface [--check]", file=sys.stderr)
        return 2
    status = 0
    for adapter, page in PAGES.items():
        before = page.read_text(encoding="utf-8")
        try:
            after = current(before, surface_of(adapter))
        except SurfaceError as error:
            print(f"{page.relative_to(ROOT)}: {error}", file=sys.stderr)
            status = 1
            continue
        if after != before and arguments:
            print(f"{page.relative_to(ROOT)} is stale: run python -m tests.surface", file=sys.stderr)
            status = 1
        elif after != before:
            page.write_text(after, encoding="utf-8")
    return status


sys.exit(main(sys.argv[1:]))
