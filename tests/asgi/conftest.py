from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agjson.agents import ThreadStore
from tests.support.served import STORES, Gates, opened


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ThreadStore]:
    """A store of each kind."""
    async with opened(request.param, tmp_path) as opened_store:
        yield opened_store


@pytest.fixture
def gates() -> Gates:
    """Places where a script waits."""
    return Gates()
