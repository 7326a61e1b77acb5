"""A machine's folder, what stays after its end, and the one setting of the host that machines change."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.folders import MachineFolder, console_text, remove_tree, tail, write_end
from clusterctl_rehearsal.machines.inotify import InotifyLimit, instances_needed


@pytest.fixture
def folder(tmp_path: Path) -> MachineFolder:
    folder = MachineFolder(root=tmp_path, cluster="train", node="train-0")
    folder.path.mkdir(parents=True)
    folder.console.write_bytes(b"\r\n".join(b"line %d" % number for number in range(500)))
    return folder


def test_the_console_outlives_the_machine(folder: MachineFolder) -> None:
    running = console_text(folder, 3)
    write_end(folder, "powered off")
    remove_tree(folder.path)
    assert running == console_text(folder, 3) == "line 497\nline 498\nline 499"
    assert '"how": "powered off"' in folder.ended.read_text()


def test_a_machine_that_never_was_has_no_console(tmp_path: Path) -> None:
    assert console_text(MachineFolder(root=tmp_path, cluster="train", node="train-9"), 5) == ""
    assert tail(tmp_path / "none", 5) == ""


def test_removing_what_is_gone_is_nothing(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")


def test_a_folder_nobody_may_look_into_is_removed_all_the_same(tmp_path: Path) -> None:
    closed = tmp_path / "work" / "work"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0)
    remove_tree(tmp_path / "work")
    assert not (tmp_path / "work").exists()


@pytest.fixture
def inotify(tmp_path: Path) -> InotifyLimit:
    limit = InotifyLimit(limit=tmp_path / "limit", before=tmp_path / "before")
    limit.limit.write_text("128\n")
    return limit


def test_few_machines_leave_the_host_alone(inotify: InotifyLimit) -> None:
    assert inotify.make_room(4) is None
    assert inotify.limit.read_text() == "128\n"


def test_many_machines_raise_the_limit_say_so_and_put_it_back(inotify: InotifyLimit) -> None:
    sentence = inotify.make_room(16)
    assert sentence is not None
    assert "raised from 128" in sentence
    assert int(inotify.limit.read_text()) >= instances_needed(64)
    assert inotify.make_room(17) is None
    inotify.put_back()
    assert inotify.limit.read_text() == "128\n"
    inotify.put_back()


def test_a_limit_that_somebody_else_set_since_is_not_put_back(inotify: InotifyLimit) -> None:
    inotify.make_room(16)
    inotify.limit.write_text("500000\n")
    inotify.put_back()
    assert inotify.limit.read_text() == "500000\n"
