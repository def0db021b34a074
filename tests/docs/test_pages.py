"""What README.md and docs/ say of the tree and of the distribution is so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.corpus import ROOT
from tests.support.tree import project_files, pyproject

CODE = re.compile(r"`([^`]+)`")
MODEL = re.compile(r"\bclaude-[a-z]+-\d[\w.-]*")
# Not parts that a reader looks for.
UNNAMED = {"__init__.py", "__main__.py", "py.typed"}


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head; each is what stands in code in its first cell."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"## {heading}\n")[2], flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert lines, f"{page} has no table below {heading}"
    return [CODE.findall(line.split("|")[1]) for line in lines[2:]]


def parts(folder: str) -> set[str]:
    """The files and folders right inside a folder: ``agjson/errors.py``, ``agjson/types/``."""
    found: set[str] = set()
    for path in project_files():
        if path.parts[0] == folder and path.parts[1] not in UNNAMED and not (ROOT / path).is_symlink():
            found.add(f"{folder}/{path.parts[1]}" + ("/" if len(path.parts) > 2 else ""))
    return found


def test_the_table_of_folders_is_the_tree() -> None:
    named = [name for row in table("docs/architecture.md", "Folders") for name in row]
    assert len(named) == len(set(named))
    whole = {path.parts[0] for path in project_files() if len(path.parts) > 1 and not path.parts[0].startswith(".")}
    assert {name for name in named if name.count("/") == 1 and name.endswith("/")} == {
        f"{folder}/" for folder in whole - {"adapters"}
    }
    for folder in ("agjson", "middleware"):
        assert {name for name in named if name.startswith(f"{folder}/") and name != f"{folder}/"} == parts(folder)
    assert "adapters/<name>/" in named


def test_the_table_of_extras_is_what_can_be_installed() -> None:
    named = [name for row in table("README.md", "Install") for name in row]
    extras = set(pyproject()["project"]["optional-dependencies"]) - {"dev"}
    assert sorted(named) == sorted(extras)


def test_every_extra_that_a_page_installs_exists_and_comes_from_the_checkout() -> None:
    extras = set(pyproject()["project"]["optional-dependencies"])
    found: list[tuple[str, str]] = []
    for page in markdown():
        for names in re.findall(r"(?:agjson|'\.)\[([\w,-]+)\]", (ROOT / page).read_text(encoding="utf-8")):
            found += [(str(page), name) for name in names.split(",")]
        assert re.findall(r"pip install '?agjson", (ROOT / page).read_text(encoding="utf-8")) == [], page
    assert len(found) > 3
    assert [(page, name) for page, name in found if name not in extras] == []


def test_every_example_asks_the_same_model() -> None:
    found = {model: str(page) for page in markdown() for model in MODEL.findall((ROOT / page).read_text("utf-8"))}
    assert list(found) == ["claude-sonnet-5-5"], found


def anchors(page: Path) -> set[str]:
    """The fragments that name the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[tuple[Path, str]]:
    """The links of a page to files of the repository, each with its fragment."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = [target.partition("#") for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    return [
        ((ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page, fragment)
        for path, _, fragment in found
    ]


def test_every_link_leads_somewhere() -> None:
    pages = [path for path in project_files() if path.suffix == ".md"]
    found = [(page, *link) for page in pages for link in links(page)]
    assert len(found) > 50
    lost = [
        f"{page}: {target.relative_to(ROOT)}#{fragment}"
        for page, target, fragment in found
        if not target.exists() or (fragment and fragment not in anchors(target))
    ]
    assert lost == []


def test_every_page_is_reached_from_the_first() -> None:
    reached = {ROOT / "README.md"}
    unread = list(reached)
    while unread:
        page = unread.pop()
        fresh = {target for target, _ in links(page.relative_to(ROOT)) if target.suffix == ".md"} - reached
        reached |= fresh
        unread += fresh
    assert [page for page in project_files() if page.suffix == ".md" and ROOT / page not in reached] == []


def markdown() -> list[Path]:
    """README.md, the pages, and those of the adapters."""
    return [
        path for path in project_files() if path.suffix == ".md" and path.parts[0] in ("README.md", "docs", "adapters")
    ]
