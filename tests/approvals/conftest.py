from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agjson.approvals import Keys, LedgerStore, MemoryLedgerStore, Sealer
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from tests.approvals.desk import OLD, Desk, run


@pytest.fixture(params=["memory", "sqlite", "sealed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerStore]:
    """Each kind of store."""
    if request.param == "memory":
        yield MemoryLedgerStore()
        return
    threads = SQLiteThreadStore(tmp_path / "threads.db")
    sealer = Sealer(Keys({"rest": OLD})) if request.param == "sealed" else None
    yield SQLiteLedgerStore(threads, sealer=sealer)
    run(threads.aclose())


@pytest.fixture
def desk(store: LedgerStore) -> Desk:
    """A host with a ledger in each kind of store."""
    return Desk(store)


@pytest.fixture
def make_desk(store: LedgerStore) -> Callable[..., Desk]:
    """Makes hosts with other policies, all on one store."""

    def make(**fields: Any) -> Desk:
        return Desk(store, **fields)

    return make
