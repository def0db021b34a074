"""Where the corpus is looked for, and what a run without it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.corpus import ROOT, cassette_index, cassettes, corpus_path, require_corpus, vectors

SAMPLE = """
import pytest

from tests.support.corpus import vectors


@pytest.mark.parametrize("vector", vectors("reduce"))
def test_vector(vector):
    assert vector["name"]
"""


def make_corpus(folder: Path) -> Path:
    (folder / "vectors" / "reduce").mkdir(parents=True)
    (folder / "vectors" / "reduce" / "area--one.json").write_text('{"name": "area/one"}')
    (folder / "vectors" / "reduce" / "other--two.json").write_text('{"name": "other/two"}')
    return folder


def run_sample(folder: Path, corpus: str, required: str) -> subprocess.CompletedProcess[str]:
    sample = folder / "test_sample.py"
    sample.write_text(SAMPLE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--confcutdir={ROOT}"]
    command += ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", "-p", "tests.conftest", str(sample)]
    env = os.environ | {"AGJSON_CORPUS": corpus, "AGJSON_REQUIRE_CORPUS": required}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


def test_a_relative_path_is_taken_from_the_repository_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus")
    monkeypatch.setenv("AGJSON_CORPUS", os.path.relpath(corpus, ROOT))
    monkeypatch.chdir(tmp_path)
    assert corpus_path() == corpus


def test_vectors_are_parsed_and_named_by_their_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGJSON_CORPUS", str(make_corpus(tmp_path)))
    assert [(param.id, param.values[0]) for param in vectors("reduce")] == [
        ("area--one", {"name": "area/one"}),
        ("other--two", {"name": "other/two"}),
    ]
    assert [param.id for param in vectors("reduce", "area--")] == ["area--one"]


def test_a_misspelt_folder_is_an_error_where_the_corpus_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGJSON_CORPUS", str(make_corpus(tmp_path)))
    with pytest.raises(AssertionError, match="vectors/redcue"):
        vectors("redcue")


def test_without_a_corpus_a_test_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGJSON_CORPUS", str(tmp_path / "none"))
    monkeypatch.delenv("AGJSON_REQUIRE_CORPUS", raising=False)
    assert corpus_path() is None
    with pytest.raises(pytest.skip.Exception, match="set AGJSON_CORPUS"):
        require_corpus()


def test_a_required_corpus_that_is_missing_fails_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGJSON_CORPUS", str(tmp_path / "none"))
    monkeypatch.setenv("AGJSON_REQUIRE_CORPUS", "1")
    with pytest.raises(pytest.fail.Exception, match="set AGJSON_CORPUS"):
        require_corpus()


def test_a_run_without_corpus_counts_what_it_skipped(tmp_path: Path) -> None:
    done = run_sample(tmp_path, corpus=str(tmp_path / "none"), required="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 corpus tests skipped: no corpus at" in done.stdout
    assert "1 skipped" in done.stdout.splitlines()[-1]


def test_a_run_with_corpus_runs_every_vector(tmp_path: Path) -> None:
    done = run_sample(tmp_path, corpus=str(make_corpus(tmp_path / "corpus")), required="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout.splitlines()[-1]


def test_a_run_that_requires_a_missing_corpus_stops_at_once(tmp_path: Path) -> None:
    done = run_sample(tmp_path, corpus=str(tmp_path / "none"), required="1")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "AGJSON_REQUIRE_CORPUS is set: no corpus at" in done.stderr


@pytest.mark.corpus
def test_the_index_describes_every_recording_of_a_provider() -> None:
    require_corpus()
    index = cassette_index()
    assert {param.values[0].name for param in cassettes("anthropic")} == {
        name.removeprefix("anthropic/") for name in index if name.startswith("anthropic/")
    }
