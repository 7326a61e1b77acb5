"""The control group of a machine: it contains the machine's processes, ends them, and shows whether any still runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clusterctl_rehearsal.machines.driver import MachineError, MachineState
from clusterctl_rehearsal.machines.names import CGROUP_FOLDER, checked

END_TIMEOUT_S = 20.0
_POLL_S = 0.004
_ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True)
class CgroupTrees:
    """The mounted hierarchies: version 2, which kills and freezes, and those of version 1.

    On a host of pure version 2 `legacy` is empty. A machine gets the folder
    clusterctl/<cluster>/<node> in each, or its systemd would share the caller's.
    We make folders at the root of the tree on systemd hosts too, as container engines
    with the cgroupfs driver do; systemd leaves alone what it did not make.
    """

    unified: Path
    legacy: tuple[Path, ...]


def parse_trees(mounts: str) -> CgroupTrees | None:
    """The trees named in the text of /proc/self/mounts; None without version 2."""
    unified: Path | None = None
    legacy: list[Path] = []
    for line in mounts.splitlines():
        _, target, kind, *_ = line.split()
        if kind == "cgroup2" and unified is None:
            unified = Path(target)
        elif kind == "cgroup":
            legacy.append(Path(target))
    return None if unified is None else CgroupTrees(unified=unified, legacy=tuple(legacy))


def mounted_trees() -> CgroupTrees:
    """The trees of this computer; MachineError without version 2."""
    trees = parse_trees(Path("/proc/self/mounts").read_text())
    if trees is None:
        raise MachineError(
            "no cgroup version 2 tree is mounted here",
            "mount -t cgroup2 none /sys/fs/cgroup/unified",
        )
    return trees


def create(trees: CgroupTrees, cluster: str, node: str) -> None:
    """Make a machine's folder in every tree."""
    for tree in (trees.unified, *trees.legacy):
        folder = _folder(tree, cluster, node)
        _make_folders(folder)
        for level in (folder.parent.parent, folder.parent, folder):
            _inherit_cpuset(level)


def enter(trees: CgroupTrees, cluster: str, node: str) -> None:
    """Move the calling process into the machine's folder of every tree."""
    for tree in (*trees.legacy, trees.unified):
        (_folder(tree, cluster, node) / "cgroup.procs").write_text("0")


def state(trees: CgroupTrees, cluster: str, node: str) -> MachineState:
    """The machine's state, from the kernel; a folder without a process is a machine that is gone."""
    events = _events(_folder(trees.unified, cluster, node))
    if events.get("populated") != "1":
        return MachineState.GONE
    return MachineState.FROZEN if events.get("frozen") == "1" else MachineState.RUNNING


def freeze(trees: CgroupTrees, cluster: str, node: str, *, frozen: bool) -> None:
    """Stop or continue all processes of a machine, and wait until all have. Raises MachineError."""
    folder = _folder(trees.unified, cluster, node)
    wanted = "1" if frozen else "0"
    (folder / "cgroup.freeze").write_text(wanted)
    deadline = time.monotonic() + END_TIMEOUT_S
    while _events(folder).get("frozen") != wanted:
        if time.monotonic() > deadline:
            raise MachineError(f"{node} did not {'freeze' if frozen else 'thaw'} in time")
        time.sleep(_POLL_S)


def first_process(trees: CgroupTrees, cluster: str, node: str) -> int | None:
    """The process that is number 1 inside the machine; None while there is none."""
    for folder in _tree(_folder(trees.unified, cluster, node)):
        for number in _read(folder / "cgroup.procs").split():
            if is_first_process(_status(number)):
                return int(number)
    return None


def is_first_process(status: str) -> bool:
    """Whether the text of /proc/<pid>/status is that of a process namespace's number 1."""
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            numbers = line.split()[1:]
            return len(numbers) > 1 and numbers[-1] == "1"
    return False


def kill(trees: CgroupTrees, cluster: str, node: str) -> None:
    """Send SIGKILL to every process of a machine, frozen or not; they may take a moment."""
    try:
        (_folder(trees.unified, cluster, node) / "cgroup.kill").write_text("1")
    except FileNotFoundError:
        return


def remove(trees: CgroupTrees, cluster: str, node: str) -> None:
    """Wait until a killed machine has no process left, then remove its folders."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while state(trees, cluster, node) is not MachineState.GONE:
        if time.monotonic() > deadline:
            raise MachineError(f"processes of {cluster}/{node} do not end")
        time.sleep(_POLL_S)
    for tree in (trees.unified, *trees.legacy):
        _remove_folders(_folder(tree, cluster, node), deadline)


def remove_cluster(trees: CgroupTrees, cluster: str) -> None:
    """Remove the folder of a cluster that has no machines, and the top one after the last."""
    for tree in (trees.unified, *trees.legacy):
        top = tree / CGROUP_FOLDER
        for folder in (top / checked(cluster), top):
            try:
                folder.rmdir()
            except OSError:  # absent, or another machine's folder is in it
                break


def machines(trees: CgroupTrees) -> Iterator[tuple[str, str]]:
    """(cluster, node) of every machine folder, alive or not."""
    seen: set[tuple[str, str]] = set()
    for tree in (trees.unified, *trees.legacy):
        for cluster in _folders_in(tree / CGROUP_FOLDER):
            seen.update((cluster.name, node.name) for node in _folders_in(cluster))
    yield from sorted(seen)


def _folders_in(folder: Path) -> list[Path]:
    """The folders in a folder; none if that is absent, or removed meanwhile."""
    _, names, _ = next(os.walk(folder), ("", [], []))
    return [folder / name for name in names]


def _tree(folder: Path) -> list[Path]:
    """The folder and all folders below it, parents first, without those that are removed meanwhile."""
    return [Path(found) for found, _, _ in os.walk(folder)]


def _read(file: Path) -> str:
    """What the file says; empty where it is absent, or removed between open and read (ENODEV, ESRCH)."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _folder(tree: Path, cluster: str, node: str) -> Path:
    return tree / CGROUP_FOLDER / checked(cluster) / checked(node)


def _make_folders(folder: Path) -> None:
    """Make a folder and its parents; try again if another cluster that ends removes the top one meanwhile."""
    for _ in range(_ATTEMPTS):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return
        except FileNotFoundError:
            continue
    raise MachineError(f"the cgroup {folder} cannot be made")


def _events(folder: Path) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in _read(folder / "cgroup.events").splitlines())


def _status(process_id: str) -> str:
    return _read(Path(f"/proc/{process_id}/status"))


def _inherit_cpuset(folder: Path) -> None:
    """Fill a version 1 cpuset from its parent: it starts empty, and takes no process until then."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = folder / name
        if (folder / "cgroup.clone_children").exists() and file.exists() and not file.read_text().strip():
            file.write_text((folder.parent / name).read_text())


def _remove_folders(folder: Path, deadline: float) -> None:
    """Remove bottom up; a version 1 folder may be busy for a moment after its last process."""
    while folder.exists():
        for child in reversed(_tree(folder)):
            try:
                child.rmdir()
            except OSError:
                continue
        if folder.exists():
            if time.monotonic() > deadline:
                raise MachineError(f"the cgroup {folder} stays busy")
            time.sleep(_POLL_S)
