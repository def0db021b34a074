"""The shared corpus: test vectors of the format and recordings of real providers.

It lies outside the repository. ``AGJSON_CORPUS`` names it (a relative path is taken from the repository root), by
default ``../shared``. Without it the tests that need it are skipped and counted; with ``AGJSON_REQUIRE_CORPUS`` set
they fail.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
"""The root of the repository."""

_DEFAULT = "../shared"


def _named() -> str:
    return os.environ.get("AGJSON_CORPUS") or _DEFAULT


def corpus_path() -> Path | None:
    """The corpus folder, or None where there is none."""
    path = ROOT / _named()
    return path.resolve() if (path / "vectors").is_dir() else None


def corpus_required() -> bool:
    """Whether ``AGJSON_REQUIRE_CORPUS`` says that a missing corpus is a failure."""
    return os.environ.get("AGJSON_REQUIRE_CORPUS", "") not in ("", "0")


def missing_reason() -> str:
    """Why corpus tests cannot run, and what to do about it."""
    return f"no corpus at {_named()}: set AGJSON_CORPUS to its folder"


def require_corpus() -> Path:
    """The corpus folder; without it the running test is skipped, or fails where the corpus is required."""
    path = corpus_path()
    if path is None:
        if corpus_required():
            pytest.fail(missing_reason(), pytrace=False)
        pytest.skip(missing_reason())
    return path


def vectors(area: str, prefix: str = "") -> list[Any]:
    """The vectors of one area as parameters of a test, each a parsed JSON object with its file name as id.

    Args:
        area: a folder of ``vectors/``: ``"reduce"`` or ``"validate"``.
        prefix: only the files whose name starts so, for example ``"tool-call--"``.

    Returns:
        Parameters marked ``corpus``; one skipped parameter where there is no corpus.
    """
    return _params("vectors", area, prefix, "*.json", lambda path: json.loads(path.read_bytes()))


def cassettes(provider: str, prefix: str = "") -> list[Any]:
    """The recordings of one provider as parameters of a test, each the path of a file with its name as id.

    Args:
        provider: a folder of ``cassettes/``, for example ``"anthropic"`` or ``"response-chunks/anthropic"``.
        prefix: only the files whose name starts so, for example ``"pydantic-ai--"``.

    Returns:
        Parameters marked ``corpus``; one skipped parameter where there is no corpus.
    """
    return _params("cassettes", provider, prefix, "*.*", lambda path: path)


@cache
def cassette_index() -> dict[str, dict[str, Any]]:
    """What the corpus says of each recording, by its path below ``cassettes/``; empty without a corpus."""
    corpus = corpus_path()
    if corpus is None:
        return {}
    entries = json.loads((corpus / "cassettes" / "INDEX.json").read_bytes())["cassettes"]
    return {entry["file"]: entry for entry in entries}


def _params(kind: str, folder: str, prefix: str, pattern: str, load: Any) -> list[Any]:
    corpus = corpus_path()
    if corpus is None:
        return [pytest.param(None, id="no-corpus", marks=pytest.mark.corpus)]
    paths = sorted(path for path in (corpus / kind / folder).glob(prefix + pattern) if path.is_file())
    # An empty list would make pytest skip the test: a misspelt folder must not pass for an absent corpus.
    assert paths, f"the corpus holds no {kind}/{folder}/{prefix}{pattern}"
    return [pytest.param(load(path), id=path.stem, marks=pytest.mark.corpus) for path in paths]
