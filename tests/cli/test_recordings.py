"""Real recordings through the command: normalized, checked, folded and shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import agjson
from tests.support.corpus import cassettes, require_corpus

SHOWN_IN_FIRST_SLICE = {
    "mirascope--call-with-thinking-anthropic-beta-async-stream": "The primes were 79, 179, and 379.",
    "pydantic-ai--thinking-part-stream": "Avoid crossing between parked cars",
    "langchain--agent-loop-streaming": '→ get_weather {"location":"San Francisco, CA"}',
    "llm--tools": "Here are two great names for your pet pelican:",
    "pydantic-ai--anthropic-tool-with-thinking": "Mexico City",
}
OPAQUE = {"signature", "encrypted_content", "encryptedIndex", "encrypted_index", "encrypted_stdout"}


def opaque_values(value: Any) -> Iterator[str]:
    """Every opaque string in a stream of events, however deep."""
    if isinstance(value, dict):
        if value.get("type") == "reasoning.opaque":
            yield value["value"]
        for key, item in value.items():
            if key in OPAQUE and isinstance(item, str):
                yield item
            elif key == "opaque":
                yield item["value"]
            yield from opaque_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from opaque_values(item)


@pytest.mark.corpus
@pytest.mark.parametrize("name", SHOWN_IN_FIRST_SLICE)
def test_a_recording_becomes_a_conformant_stream(name: str) -> None:
    path = require_corpus() / "cassettes" / "anthropic" / f"{name}.yaml"
    normalized = agjson("normalize", "anthropic", path)
    assert (normalized.status, normalized.err) == (0, "")
    checked = agjson("check", stdin=normalized.out)
    assert (checked.status, checked.out) == (0, "")
    assert agjson("fold", stdin=normalized.out).values[0]["needsResync"] is False
    assert SHOWN_IN_FIRST_SLICE[name] in agjson("show", stdin=normalized.out).out


@pytest.mark.parametrize("path", cassettes("anthropic"))
def test_no_opaque_value_of_a_recording_is_shown(path: Path) -> None:
    normalized = agjson("normalize", "anthropic", path)
    shown = agjson("show", "--full", stdin=normalized.out)
    assert shown.status == 0
    assert [value for value in opaque_values(normalized.values) if len(value) > 20 and value in shown.out] == []
