from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.http_server import Server


@pytest.fixture(params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server on a store of each kind."""
    path = None if request.param == "memory" else str(tmp_path / "threads.sqlite")
    with Server("tests.support.served_apps:plain", path=path, poll=0.02) as started:
        yield started
