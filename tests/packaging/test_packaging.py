"""The distribution as users get it: what the built files hold, and that they work without any extra."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.corpus import ROOT
from tests.support.tree import packages_on_disk, project_files, pyproject

pytestmark = pytest.mark.packaging

CORE = {"agjson", "jsonpatch", "jsonpointer", "msgspec"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it, of the tracked files alone."""
    source = tmp_path_factory.mktemp("source")
    for path in project_files():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, source / path, follow_symlinks=False)
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source))
    return out


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter of a fresh venv that holds the wheel and its core dependencies."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel_of(built)))
    yield python
    shutil.rmtree(home)


def run(*command: str, cwd: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def wheel_of(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def wheel_names(built: Path) -> list[str]:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        return wheel.namelist()


def test_the_package_list_equals_the_folders_on_disk() -> None:
    assert pyproject()["tool"]["setuptools"]["packages"] == packages_on_disk()


def test_every_top_folder_is_marked_as_typed() -> None:
    for folder in ("agjson", "adapters", "middleware"):
        assert (ROOT / folder / "py.typed").is_file()


def test_the_wheel_has_nothing_beside_agjson_at_its_top(built: Path) -> None:
    version = pyproject()["project"]["version"]
    assert {name.split("/")[0] for name in wheel_names(built)} == {"agjson", f"agjson-{version}.dist-info"}


def test_the_wheel_holds_every_module_and_no_tests(built: Path) -> None:
    homes = {"agjson": "agjson", "adapters": "agjson/adapters", "middleware": "agjson/middleware"}
    expected = {
        "/".join([homes[path.parts[0]], *path.parts[1:]])
        for path in project_files()
        if path.suffix == ".py" and path.parts[0] in homes
    }
    assert {name for name in wheel_names(built) if name.endswith(".py")} == expected


@pytest.mark.parametrize(
    "name",
    [
        "agjson/py.typed",
        "agjson/adapters/py.typed",
        "agjson/middleware/py.typed",
        "agjson/adapters/anthropic/surface.json",
    ],
)
def test_the_wheel_holds_the_data_file(built: Path, name: str) -> None:
    assert name in wheel_names(built)


def test_the_wheel_holds_the_licence(built: Path) -> None:
    assert [name for name in wheel_names(built) if name.endswith("licenses/LICENSE")] != []


def test_neither_file_holds_links(built: Path) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        # The upper 16 bits are the Unix mode; 0o12 is the file type of a symbolic link.
        assert [info.filename for info in wheel.infolist() if info.external_attr >> 28 == 0o12] == []
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        assert [member.name for member in sdist.getmembers() if member.issym() or member.islnk()] == []


def test_the_sdist_holds_sources_but_no_tests(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"adapters/__init__.py", "middleware/__init__.py", "LICENSE", "README.md", "CHANGELOG.md"} <= names
    assert [name for name in names if name.startswith("tests")] == []


def test_it_installs_with_the_core_dependencies_alone(installed: Path) -> None:
    listed = run(str(installed), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check").stdout
    assert {line.split("==")[0] for line in listed.splitlines()} - {"pip", "setuptools"} == CORE


def test_the_installed_package_imports(installed: Path, tmp_path: Path) -> None:
    program = "import agjson.adapters, agjson.middleware, agjson.wire, agjson.fold, agjson.checker; print(agjson)"
    assert "site-packages" in run(str(installed), "-c", program, cwd=tmp_path).stdout


def test_the_command_without_its_extra_names_what_to_install(installed: Path, tmp_path: Path) -> None:
    done = run(str(installed.with_name("agjson")), "--help", cwd=tmp_path, status=2)
    assert "pip install 'agjson[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
