"""`scripts/setup` where something is missing: it ends with a sentence, and the next run begins where that one ended."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.rehearsed import ROOT

# Makes as much of an environment as setup uses; its pip notes that it ran, and fails while `no-index` is there.
PYTHON = """#!/bin/sh
case $* in
--version) echo "Python $VERSION" ;;
-c*)
    case $VERSION in 3.1[1-9]*) ;; *) exit 1 ;; esac
    case "$*, ${0##*/}" in *ensurepip*python3.11) exit 1 ;; esac ;;
"-m venv .venv")
    [ ! -e no-venv ] || exit 1
    mkdir -p .venv/bin
    printf '#!/bin/sh\\necho pip >>ran\\n[ ! -e no-index ] || { echo "no index" >&2; exit 1; }\\n' >.venv/bin/pip
    chmod +x .venv/bin/pip ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the script and stand-ins for Python and the engine's script."""
    scripts, programs = tmp_path / "scripts", tmp_path / "bin"
    scripts.mkdir()
    programs.mkdir()
    for name in ("setup", "with-time"):
        shutil.copy(ROOT / "scripts" / name, scripts / name)
    (scripts / "engine").write_text("#!/bin/sh\necho engine >>ran\n")
    (scripts / "engine").chmod(0o755)
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (programs / name).write_text(PYTHON)
        (programs / name).chmod(0o755)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


def setup(checkout: Path, *, version: str = "3.11.2", python: str = "python3") -> tuple[int, str]:
    """The exit code and stderr."""
    environ = {
        "PATH": f"{checkout / 'bin'}:/usr/bin:/bin",
        "VERSION": version,
        "HOME": str(checkout),
        "CLUSTERCTL_PYTHON": python,
    }
    argv = [str(checkout / "scripts" / "setup")]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr


def ran(checkout: Path) -> list[str]:
    file = checkout / "ran"
    return file.read_text().split() if file.exists() else []


def test_an_old_python_is_named_with_what_to_install(checkout: Path) -> None:
    code, stderr = setup(checkout, version="3.9.2")
    assert code == 1
    assert "Python 3.11 or newer is needed, and python3 is Python 3.9.2; next: apt-get install" in stderr
    assert not (checkout / ".venv").exists()


def test_a_python_that_can_make_environments_goes_before_one_that_cannot(checkout: Path) -> None:
    for python in ("python3.11 python3.12", "python3.12 python3.11"):
        code, stderr = setup(checkout, python=python)
        assert code == 0
        assert "python3.12 -m venv" in stderr
        shutil.rmtree(checkout / ".venv")


def test_without_the_module_for_environments_its_package_is_named(checkout: Path) -> None:
    (checkout / "no-venv").touch()
    code, stderr = setup(checkout)
    assert code == 1
    assert "no virtual environment could be made; next: apt-get install python3-venv" in stderr


def test_packages_that_did_not_come_are_fetched_by_the_next_run_and_not_again_after_it(checkout: Path) -> None:
    (checkout / "no-index").touch()
    code, stderr = setup(checkout)
    assert code == 1
    assert "no index" in stderr
    assert (
        "could not be installed (pip's output is above); next, with the package index in reach: scripts/setup" in stderr
    )
    assert ran(checkout) == ["pip"], "the engine is not built for an environment that is not there"

    (checkout / "no-index").unlink()
    assert setup(checkout)[0] == 0
    assert setup(checkout) == (0, "")
    assert ran(checkout) == ["pip", "pip", "engine", "engine"]
