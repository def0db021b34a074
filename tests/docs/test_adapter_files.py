"""An adapter whose README has a map of its files names each of them there, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.corpus import ROOT

_FILE = re.compile(r"`(\w+\.py)`")


def mapped() -> list[Path]:
    """The folders of the adapters that have such a map."""
    readmes = sorted((ROOT / "adapters").glob("*/README.md"))
    return [path.parent for path in readmes if "\n## Files\n" in path.read_text(encoding="utf-8")]


def test_the_large_adapter_has_a_map() -> None:
    assert "langgraph" in [folder.name for folder in mapped()]


@pytest.mark.parametrize("folder", mapped(), ids=lambda folder: folder.name)
def test_the_map_names_every_file_once(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8").partition("\n## Files\n")[2].partition("\n## ")[0]
    there = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    assert sorted(_FILE.findall(text)) == there
