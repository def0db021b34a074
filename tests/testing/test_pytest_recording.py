"""Recordings in a user's own tests: pytest-recording with the fixtures of `agjson.testing.cassettes`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CONFTEST = """
import pytest

from agjson.testing import cassettes


@pytest.fixture(scope="module")
def vcr_config():
    return cassettes.vcr_config()


@pytest.fixture(scope="module")
def vcr_cassette_dir():
    return {folder!r}


def pytest_recording_configure(config, vcr):
    cassettes.register(vcr)
"""

FILE = """
import anthropic
import pytest

from agjson import check, reduce
from agjson.middleware.anthropic import wrap


@pytest.mark.vcr
@pytest.mark.default_cassette("authored--interleaved.yaml")
@pytest.mark.block_network
def test_my_agent_thinks_before_it_calls():
    client = anthropic.Anthropic(api_key="none", base_url="https://api.anthropic.com", max_retries=0)
    stream = client.messages.create(
        model="claude-sonnet-5-5", max_tokens=64, stream=True, messages=[{"role": "user", "content": "Hello"}]
    )
    events = list(wrap(stream))
    assert not list(check(events))
    kinds = [block.type for message in reduce(events).result.messages for block in message.content]
    print("KINDS", kinds)
    with pytest.raises(anthropic.APIConnectionError):
        for _ in range(9):
            client.messages.count_tokens(model="claude-sonnet-5-5", messages=[{"role": "user", "content": "x"}])
"""


def test_a_recording_plays_through_the_real_client_without_a_network(tmp_path: Path) -> None:
    pytest.importorskip("pytest_recording")
    folder = str(ROOT / "cassettes" / "anthropic")
    (tmp_path / "conftest.py").write_text(CONFTEST.replace("{folder!r}", repr(folder)), encoding="utf-8")
    (tmp_path / "test_mine.py").write_text(FILE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "test_mine.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"^KINDS (.*)$", done.stdout, re.MULTILINE)
    assert said is not None, done.stdout
    assert said[1] == "['reasoning', 'tool-call']"
