"""The command line as a whole: help, version, completion, what happens without the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import agjson as library
from agjson.types import SPEC_VERSION
from tests.support.cli import ENVIRONMENT, agjson, process
from tests.support.corpus import ROOT

COMMANDS = ["show", "fold", "check", "validate", "normalize", "to-native", "schema"]


def test_help_lists_every_command_in_plain_lines() -> None:
    out = process("--help").out
    listed = [line.split()[0] for line in out.partition("Commands:\n")[2].splitlines()]
    assert listed == COMMANDS
    assert out.isascii()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = agjson(name, "--help")
    assert done.status == 0
    assert f"Example: agjson {name} " in done.out


def test_version_names_the_library_and_the_format() -> None:
    done = agjson("--version")
    assert (done.status, done.out) == (0, f"agjson {library.__version__} (AgJSON {SPEC_VERSION})\n")


@pytest.mark.parametrize("args", [(), ("nope",), ("fold", "--nope"), ("fold", "a", "b"), ("normalize",)])
def test_an_unusable_call_has_status_2_and_prints_nothing_on_stdout(args: tuple[str, ...]) -> None:
    done = process(*args)
    assert done.status == 2
    assert "Usage: agjson" in done.err
    assert (done.out == "") or args == ()


def test_shells_can_complete_commands_and_arguments() -> None:
    complete = {"_AGJSON_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    assert process(COMP_WORDS="agjson no", **complete).out.split() == ["normalize"]
    complete["COMP_CWORD"] = "2"
    names = process(COMP_WORDS="agjson schema AgMess", **complete).out.split()
    assert names == ["AgMessage"]
    assert "anthropic" in process(COMP_WORDS="agjson normalize ant", **complete).out.split()


def test_completion_can_be_shown_for_a_shell() -> None:
    done = process("--show-completion", SHELL="/bin/bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.status in (0, 2)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_it_names_what_to_install(package: str, tmp_path: Path) -> None:
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})\n")
    program = "import sys; from agjson.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "fold"],
        cwd=ROOT,
        env=ENVIRONMENT | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"agjson: {package} is not installed: pip install 'agjson[cli]'\n"


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("agjson")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"agjson {library.__version__} (AgJSON {SPEC_VERSION})\n")


def test_a_fault_of_an_adapter_is_no_finding(tmp_path: Path) -> None:
    broken = (
        "import sys, types\n"
        "from agjson.adapter import Adapter\n"
        "from agjson.cli import main\n"
        "module = types.ModuleType('agjson.adapters.broken')\n"
        "module.ADAPTER = Adapter(name='broken', normalizer=lambda **_: 1 / 0, recorded=lambda _: None)\n"
        "sys.modules['agjson.adapters.broken'] = module\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken, "normalize", "broken", "-"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (70, "")
    assert "ZeroDivisionError" in done.stderr
