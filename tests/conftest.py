"""Tests marked ``corpus`` run where the corpus is; how many could not, and why, stands at the end of the run."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support.corpus import corpus_path, corpus_required, missing_reason

# A busy machine misses any deadline; and the same examples in every run, so that only a change can make a test fail.
settings.register_profile(
    "agjson",
    deadline=None,
    derandomize="AGJSON_HYPOTHESIS_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("agjson")


def pytest_configure(config: pytest.Config) -> None:
    if corpus_required() and corpus_path() is None:
        raise pytest.UsageError(f"AGJSON_REQUIRE_CORPUS is set: {missing_reason()}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if corpus_path() is None:
        skip = pytest.mark.skip(reason=missing_reason())
        for item in items:
            if item.get_closest_marker("corpus"):
                item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "corpus" in getattr(r, "keywords", {})]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} corpus tests skipped: {missing_reason()}", yellow=True)
