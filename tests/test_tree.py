"""Rules that hold for every file of the tree."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from tests.support.corpus import ROOT
from tests.support.tree import packages_on_disk, project_files, pyproject, python_files

MAX_LINES = 600
TOP_LEVEL_ONLY_AS_AGJSON = {"adapters", "middleware"}
# A folder of some machine, not a part of a URL or of a relative path.
ABSOLUTE_PATH = re.compile(rb"(?<![\w.~*:/-])/(?:work|tmp|root|home|Users)/\w")
# The target of a Markdown link, without its anchor; a target with a scheme is left out.
RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
# Recordings are kept as they came.
RECORDED = {"cassettes"}


def test_no_python_file_is_over_600_lines() -> None:
    lengths = {str(path): len((ROOT / path).read_bytes().splitlines()) for path in python_files()}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_text_file_names_a_folder_of_one_machine() -> None:
    found: list[str] = []
    for path in project_files():
        if path.parts[0] in RECORDED or (ROOT / path).is_symlink():
            continue
        for number, line in enumerate((ROOT / path).read_bytes().splitlines(), start=1):
            if ABSOLUTE_PATH.search(line):
                found.append(f"{path}:{number}")
    assert found == []


@pytest.mark.parametrize("text", [b'open("/tmp' + b'/x")', b"see /work" + b"/main", b"cd /home" + b"/me"])
def test_the_search_for_such_folders_finds_them(text: bytes) -> None:
    assert ABSOLUTE_PATH.search(text)


def test_adapters_and_middleware_are_imported_under_agjson() -> None:
    found: list[str] = []
    for path in python_files():
        for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            found += [f"{path}:{node.lineno}" for name in names if name.split(".")[0] in TOP_LEVEL_ONLY_AS_AGJSON]
    assert found == []


def test_the_two_links_are_relative() -> None:
    links = {str(path): str((ROOT / path).readlink()) for path in project_files() if (ROOT / path).is_symlink()}
    assert links == {"agjson/adapters": "../adapters", "agjson/middleware": "../middleware"}


def test_every_relative_link_of_a_markdown_page_leads_to_a_file() -> None:
    broken: list[str] = []
    for path in project_files():
        if path.suffix == ".md" and path.parts[0] not in RECORDED:
            for target in RELATIVE_LINK.findall((ROOT / path).read_text(encoding="utf-8")):
                if not (ROOT / path.parent / target).exists():
                    broken.append(f"{path}: {target}")
    assert broken == []


@pytest.mark.parametrize("name", packages_on_disk())
def test_every_name_in_all_resolves(name: str) -> None:
    module = importlib.import_module(name)
    exported: list[str] = list(getattr(module, "__all__", []))
    assert [each for each in exported if not hasattr(module, each)] == []
    assert len(exported) == len(set(exported))


def test_pyright_is_strict_on_every_package_of_agjson() -> None:
    inner = {name.split(".")[1] for name in packages_on_disk() if "." in name} - TOP_LEVEL_ONLY_AS_AGJSON
    assert sorted(pyproject()["tool"]["pyright"]["strict"]) == sorted(["agjson/*.py", *(f"agjson/{i}" for i in inner)])
