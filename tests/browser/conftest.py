"""Where there is no Chromium the tests are skipped, and counted; with AGJSON_REQUIRE_BROWSER=1 they fail."""

from __future__ import annotations

import os

import pytest

from tests.support.browser import find_chromium


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_chromium() is None and os.environ.get("AGJSON_REQUIRE_BROWSER") != "1":
        for item in items:
            if "chromium" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason="needs a browser: there is no chromium on the PATH"))


@pytest.fixture
def chromium() -> str:
    """The browser's program."""
    program = find_chromium()
    assert program is not None, "AGJSON_REQUIRE_BROWSER is set, and there is no chromium on the PATH"
    return program
