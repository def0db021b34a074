"""What README.md and docs/ show is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpus import ROOT
from tests.support.examples import blocks, run_page
from tests.support.tree import project_files

RUN = {"python", "console"}


def pages() -> list[str]:
    """Every page with at least one block that runs."""
    markdown = [path for path in project_files() if path.suffix == ".md" and path.parts[0] in ("README.md", "docs")]
    return [
        str(path)
        for path in markdown
        if any(block.runs and block.language in RUN for block in blocks((ROOT / path).read_text(encoding="utf-8")))
    ]


@pytest.mark.docs
@pytest.mark.parametrize("page", pages())
def test_the_examples_of_the_page_do_what_it_says(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_page((ROOT / page).read_text(encoding="utf-8"), page)


def test_blocks_of_one_page_share_their_names() -> None:
    assert run_page("```python\nx = 1\n```\ntext\n```python\nassert x == 1\n```\n", "page") == 2


def test_a_block_may_await() -> None:
    page = "```python\nimport asyncio\nawait asyncio.sleep(0)\ny = 2\n```\n```python\nassert y == 2\n```\n"
    assert run_page(page, "page") == 2


def test_a_failing_block_is_reported_with_its_place() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run_page("one\n\n```python\n1 / 0\n```\n", "page.md")
    assert raised.traceback[-1].path in ("page.md:3", Path("page.md:3"))


def test_a_marked_block_does_not_run() -> None:
    page = "<!-- example: not run: it needs a key -->\n\n```python\n1 / 0\n```\n"
    assert run_page(page, "page") == 0


def test_the_mark_counts_for_one_block_only() -> None:
    page = "<!-- example: not run: it needs a key -->\n```python\n1 / 0\n```\n```python\nz = 3\n```\n"
    assert run_page(page, "page") == 1


def test_a_mark_without_a_reason_is_no_mark() -> None:
    with pytest.raises(ZeroDivisionError):
        run_page("<!-- example: not run: -->\n```python\n1 / 0\n```\n", "page")


def test_a_command_prints_what_is_shown() -> None:
    assert run_page("```console\n$ python -c 'print(1); print(2)'\n1\n2\n```\n", "page") == 1


def test_a_command_that_prints_something_else_is_reported() -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1: \$ python"):
        run_page("```console\n$ python -c 'print(1)'\n2\n```\n", "page.md")


def test_three_dots_stand_for_any_lines() -> None:
    assert run_page("```console\n$ python -c 'for i in range(9): print(i)'\n0\n...\n8\n```\n", "page") == 1
    with pytest.raises(AssertionError):
        run_page("```console\n$ python -c 'for i in range(9): print(i)'\n0\n...\n9\n```\n", "page")


def test_a_command_without_shown_output_must_succeed() -> None:
    with pytest.raises(AssertionError, match="exit 3"):
        run_page("```console\n$ python -c 'raise SystemExit(3)'\n```\n", "page")


def test_other_commands_do_not_run_and_pipes_into_ours_do() -> None:
    piped = "$ echo 5 | python -c 'print(int(input()) + 1)'\n6\n"
    continued = "$ python \\\n    -c 'print(7)'\n7\n"
    assert run_page(f"```console\n$ exit 1\n{piped}{continued}```\n", "page") == 2
