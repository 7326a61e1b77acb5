"""Which processes are a job's: what a supervisor kills at its end, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.on_node.job.processes import of_job

SUPERVISOR, RANK, WORKER, DAEMON, OTHER, DEAD = 500, 501, 502, 503, 504, 505


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with a rank and its worker under a supervisor, a daemon that left it, and somebody else's process."""
    add(tmp_path, 1, parent=0)
    add(tmp_path, SUPERVISOR, parent=1)
    add(tmp_path, RANK, parent=SUPERVISOR)
    add(tmp_path, WORKER, parent=RANK)
    add(tmp_path, DAEMON, parent=1, job="train")
    add(tmp_path, OTHER, parent=1, job="train-2")
    add(tmp_path, DEAD, parent=RANK, state="Z")
    (tmp_path / "self").mkdir()
    return tmp_path


def add(proc: Path, pid: int, *, parent: int, job: str = "", state: str = "S") -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} (a) b) {state} {parent} {'0 ' * 17}70 0 0\n")
    (folder / "environ").write_bytes(b"PATH=/bin\0" + (f"CLUSTERCTL_JOB={job}\0".encode() if job else b""))


def test_descendants_and_whoever_has_the_jobs_name_are_the_jobs(proc: Path) -> None:
    assert of_job("train", SUPERVISOR, proc) == [RANK, WORKER, DAEMON]


def test_without_an_ancestor_only_the_name_counts(proc: Path) -> None:
    assert of_job("train", None, proc) == [DAEMON]
    assert of_job("nobodys", None, proc) == []


def test_a_process_that_ends_while_it_is_looked_at_is_not_counted(proc: Path) -> None:
    (proc / str(WORKER) / "stat").unlink()
    (proc / str(DAEMON) / "environ").unlink()
    assert of_job("train", SUPERVISOR, proc) == [RANK]
