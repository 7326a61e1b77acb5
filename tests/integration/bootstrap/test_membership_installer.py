"""What puts the agent's modules in place on a node: the program itself, run on a folder of this computer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from clusterctl.lifecycle.membership import INSTALLER, later_modules
from clusterctl_bootstrap.agent_source import later_sources
from clusterctl_bootstrap.cloud_config import AGENT_FOLDER

MODULES = later_modules()
READ_THE_REST = (sys.executable, "-c", "import sys; print(sys.stdin.read())")


def installer(folder: Path, *then: str) -> subprocess.Popen[bytes]:
    program = INSTALLER.replace(AGENT_FOLDER, str(folder))
    argv = [sys.executable, "-ISc", program, str(len(MODULES)), *then]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def in_place(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_all_modules_come_and_the_program_behind_them_reads_the_rest(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("of an older clusterctl")
    stdout, stderr = installer(tmp_path, *READ_THE_REST).communicate(MODULES + b"the membership", timeout=30)
    assert (stdout, stderr) == (b"the membership\n", b"")
    assert in_place(tmp_path) == later_sources()


def test_only_what_has_changed_is_written_again(tmp_path: Path) -> None:
    installer(tmp_path).communicate(MODULES, timeout=30)
    (tmp_path / "watch.py").write_text("lost on its way to the disk")
    files = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    assert installer(tmp_path).communicate(MODULES, timeout=30) == (b"", b"")
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_ino != files[path.name]} == {"watch.py"}
    assert in_place(tmp_path) == later_sources()


def test_a_cut_delivery_changes_nothing_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("of an older clusterctl")
    child = installer(tmp_path, *READ_THE_REST)
    assert child.communicate(MODULES[:-1], timeout=30) == (b"", b"the modules of the agent did not come\n")
    assert child.returncode == 1
    assert in_place(tmp_path) == {"later.py": "of an older clusterctl"}


def test_many_at_once_leave_each_module_whole(tmp_path: Path) -> None:
    children = [installer(tmp_path) for _ in range(6)]
    for child in children:  # each has all but the last byte, and so they go on together
        assert child.stdin is not None
        child.stdin.write(MODULES[:-1])
        child.stdin.flush()
    assert [child.communicate(MODULES[-1:], timeout=30) for child in children] == [(b"", b"")] * 6
    assert in_place(tmp_path) == later_sources()


def test_it_travels_in_less_than_half_of_its_size() -> None:
    assert len(MODULES) < sum(map(len, later_sources().values())) / 2
