"""shellcheck finds nothing in the project's shell scripts, nor in a boothook with a node's values in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from clusterctl_bootstrap.node import hooks, later, mounts, nvme

ROOT = Path(__file__).parents[3]
FOLDERS = (
    "scripts",
    "examples",
    ".ci",
    "bench",
    "infra/plugin",
    "rehearsal/plugin",
    "bootstrap/clusterctl_bootstrap/shell",
    "tests/golden/user-data",
)
INTERPRETERS = ("sh", "bash")


def interpreter(path: Path) -> str | None:
    """The shell that a file is for, by its first line or its name."""
    first = path.read_bytes().split(b"\n", 1)[0].decode(errors="replace")
    named = first.rpartition("/")[2].rpartition(" ")[2] if first.startswith("#!") else ""
    return "sh" if path.suffix == ".sh" and not named else named if named in INTERPRETERS else None


SCRIPTS = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and interpreter(path) is not None
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    # SC1091: files that are sourced exist on a node, or after scripts/setup.
    argv = ["shellcheck", f"--shell={interpreter(script)}", "--format=gcc", "--exclude=SC1091", script.name]
    done = subprocess.run(argv, cwd=script.parent, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_boothook_and_the_scripts_are_among_them() -> None:
    names = {path.name for path in SCRIPTS}
    assert names >= {"boothook.sh", "guard.sh", "last_stage.sh", "setup", "check", "pulumi-resource-aws"}


TEXTS = {
    "packages": hooks.INSTALL,
    "a script": hooks.RUN,
    "disks": nvme.FORMAT,
    "the shared note": mounts.WRITE,
    "a watch without systemd": later.DETACHED,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_shellcheck_has_nothing_to_say_of_what_the_agent_hands_to_a_shell(text: str) -> None:
    argv = ["shellcheck", "--shell=sh", "--format=gcc", "--exclude=SC1091", "-"]
    done = subprocess.run(argv, input=f"{text}\n", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
