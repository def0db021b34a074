"""Writes ``docs/conformance.md``: ``python -m tests.conformance``; ``--check`` only tells whether it is stale."""

from __future__ import annotations

import sys

from tests.conformance.page import PAGE, current, faults, load_rows


def main(arguments: list[str]) -> int:
    """Write or check the page; returns the exit status: 0 fine, 1 stale or faulty rows, 2 unusable call."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tests.conformance [--check]", file=sys.stderr)
        return 2
    found = faults(load_rows())
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        return 1
    text = current()
    if arguments:
        stale = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text
        if stale:
            print("docs/conformance.md is stale: run make conformance", file=sys.stderr)
        return int(stale)
    PAGE.write_text(text, encoding="utf-8")
    return 0


sys.exit(main(sys.argv[1:]))
