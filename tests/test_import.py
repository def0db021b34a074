"""``import agjson`` stays light: it loads the format and nothing that only some users need."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.corpus import ROOT

PROGRAM = """
import sys
before = set(sys.modules)
import agjson
import json
print(json.dumps(sorted(set(sys.modules) - before)))
"""

FRAMEWORKS = {
    "a2a",
    "agent_framework",
    "agents",
    "anthropic",
    "claude_agent_sdk",
    "google",
    "langchain",
    "langchain_core",
    "langgraph",
    "openai",
    "pydantic_ai",
}
HEAVY = {
    "asyncio",
    "fastapi",
    "httpx",
    "httpx2",
    "hypothesis",
    "jsonpatch",
    "jsonpointer",
    "pydantic",
    "pytest",
    "rich",
    "sqlite3",
    "starlette",
    "typer",
    "vcr",
    "yaml",
}


def loaded_by_import() -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    )
    return set(json.loads(done.stdout))


def test_import_loads_no_framework_and_nothing_heavy() -> None:
    loaded = loaded_by_import()
    assert "agjson" in loaded
    assert {name.split(".")[0] for name in loaded} & (FRAMEWORKS | HEAVY) == set()


def test_import_loads_no_adapter_middleware_command_line_or_testing() -> None:
    parts = {name.split(".")[1] for name in loaded_by_import() if name.startswith("agjson.")}
    assert parts & {"adapters", "cli", "middleware", "testing"} == set()
