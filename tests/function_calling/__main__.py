"""Writes ``docs/function-calling-matrix.md``: ``python -m tests.function_calling``.

With ``--check`` it only tells whether the page is stale.
"""

from __future__ import annotations

import sys

from tests.function_calling.code import digests
from tests.function_calling.page import PAGE, changed, current, problems


def main(arguments: list[str]) -> int:
    """Write or check the page; returns the exit status: 0 fine, 1 stale page or faulty table, 2 unusable call."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tests.function_calling [--check]", file=sys.stderr)
        return 2
    found = problems()
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        return 1
    written, text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else "", current()
    for module in changed(written, digests()) if written else ():
        print(f"{module} has changed since the page was made: look at the rows that it concerns", file=sys.stderr)
    if arguments:
        if written != text:
            print("docs/function-calling-matrix.md is stale: run python -m tests.function_calling", file=sys.stderr)
        return int(written != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


sys.exit(main(sys.argv[1:]))
