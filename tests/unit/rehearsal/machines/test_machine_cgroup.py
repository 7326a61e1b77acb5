"""Reading cgroups: a folder that stands in for the kernel's tree."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import cgroup
from clusterctl_rehearsal.machines.driver import MachineError, MachineState
from clusterctl_rehearsal.machines.machine_processes import is_stopped

HYBRID = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""
UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
LEGACY = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"


@pytest.fixture
def trees(tmp_path: Path) -> cgroup.CgroupTrees:
    return cgroup.CgroupTrees(unified=tmp_path / "unified", legacy=(tmp_path / "memory",))


def test_a_hybrid_host_has_both_kinds_of_tree() -> None:
    trees = cgroup.parse_trees(HYBRID)
    assert trees is not None
    assert trees.unified == Path("/sys/fs/cgroup/unified")
    assert trees.legacy == (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/systemd"))


def test_a_pure_version_2_host_has_one_tree() -> None:
    assert cgroup.parse_trees(UNIFIED) == cgroup.CgroupTrees(unified=Path("/sys/fs/cgroup"), legacy=())


def test_a_host_without_version_2_has_none() -> None:
    assert cgroup.parse_trees(LEGACY) is None


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ("populated 1\nfrozen 0\n", MachineState.RUNNING),
        ("populated 1\nfrozen 1\n", MachineState.FROZEN),
        ("populated 0\nfrozen 0\n", MachineState.GONE),
        (None, MachineState.GONE),
    ],
)
def test_the_state_is_what_the_kernel_says(trees: cgroup.CgroupTrees, events: str | None, state: MachineState) -> None:
    cgroup.create(trees, "train", "train-0")
    if events is not None:
        (trees.unified / "clusterctl/train/train-0/cgroup.events").write_text(events)
    assert cgroup.state(trees, "train", "train-0") is state


def test_a_machine_has_a_folder_in_every_tree(trees: cgroup.CgroupTrees) -> None:
    cgroup.create(trees, "train", "train-0")
    folders = [tree / "clusterctl/train/train-0" for tree in (trees.unified, *trees.legacy)]
    assert [folder.is_dir() for folder in folders] == [True, True]
    assert list(cgroup.machines(trees)) == [("train", "train-0")]
    cgroup.remove(trees, "train", "train-0")
    assert [folder.exists() for folder in folders] == [False, False]
    assert list(cgroup.machines(trees)) == []
    cgroup.remove_cluster(trees, "train")
    assert not (trees.unified / "clusterctl").exists()


def test_another_cluster_keeps_the_top_folder(trees: cgroup.CgroupTrees) -> None:
    cgroup.create(trees, "other", "other-0")
    cgroup.remove_cluster(trees, "train")
    assert list(cgroup.machines(trees)) == [("other", "other-0")]


def test_killing_a_machine_that_is_gone_is_nothing(trees: cgroup.CgroupTrees) -> None:
    cgroup.kill(trees, "train", "train-0")


def test_a_name_cannot_leave_the_tree(trees: cgroup.CgroupTrees) -> None:
    with pytest.raises(MachineError):
        cgroup.state(trees, "..", "x")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("Name:\tsystemd\nNSpid:\t4711\t1\n", True),
        ("Name:\tsshd\nNSpid:\t4720\t17\n", False),
        ("Name:\tinit\nNSpid:\t1\n", False),
        ("", False),
    ],
)
def test_the_first_process_is_number_one_of_a_namespace(status: str, expected: bool) -> None:
    assert cgroup.is_first_process(status) is expected


@pytest.mark.parametrize(("stat", "expected"), [("7 (a) b) T 1", True), ("7 (T) S 1", False), ("", False)])
def test_a_stopped_process_is_recognised_whatever_its_name(stat: str, expected: bool) -> None:
    assert is_stopped(stat) is expected


def test_machines_that_end_while_others_are_listed_are_passed_over(trees: cgroup.CgroupTrees) -> None:
    """Each look comes upon folders that another thread makes and removes."""
    cgroup.create(trees, "train", "train-0")
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            cgroup.create(trees, "eval", "eval-0")
            cgroup.remove(trees, "eval", "eval-0")
            cgroup.remove_cluster(trees, "eval")

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(come_and_go)
        try:
            for _ in range(3000):
                assert ("train", "train-0") in set(cgroup.machines(trees))
                assert cgroup.first_process(trees, "eval", "eval-0") is None
        finally:
            is_over.set()
        coming.result(timeout=10)
