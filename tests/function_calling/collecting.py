"""A plugin for pytest: writes down which tests were collected, and whether each of them will run.

``AGJSON_COLLECTED`` names the file: a JSON object of node ids, without parameters, to true where every case runs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.corpus import missing_reason


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the file."""
    found: dict[str, bool] = {}
    for item in session.items:
        id = item.nodeid.partition("[")[0]
        found[id] = found.get(id, True) and _runs(item)
    Path(os.environ["AGJSON_COLLECTED"]).write_text(json.dumps(found), encoding="utf-8")


def _runs(item: pytest.Item) -> bool:
    for mark in item.iter_markers():
        if mark.name == "xfail" or (mark.name == "skipif" and mark.args and mark.args[0]):
            return False
        # Where there is no corpus its tests are skipped, and counted; CI requires it.
        if mark.name == "skip" and mark.kwargs.get("reason") != missing_reason():
            return False
    return True
