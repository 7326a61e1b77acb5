"""Finds the home that machines and networks belong to: several homes on one computer may use the same cluster name.

It reads the command lines of living processes: a record on disk may be of machines that are long dead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.machines.processes import (
    PROCESS_SUPERVISOR_MODULE,
    SUPERVISOR_MODULE,
    parse_holder,
    parse_supervisor,
    running,
)

REGION_MODULE = "clusterctl_rehearsal.server.process"
_DISK = re.compile(r"(?:--directory=)?(/.+)/([^/]+)/[^/]+/(?:disk|upper/[^/]+)")


def root_elsewhere(root: Path, cluster: str) -> Path | None:
    """The folder of another rehearsal that has living machines of this cluster's name; None if there is none.

    Machines whose folder was removed belong to no home: any home's `clean` ends them.
    """
    found = (owner for _, argv in running() if (owner := parse_owner(argv)) is not None)
    return first_other_root(root, cluster, found)


def parse_owner(argv: Sequence[str]) -> tuple[str, str] | None:
    """(root, cluster) of the machine that a command line belongs to: a supervisor's, or its machine's own.

    A machine outlives a supervisor that was killed. The commands of nspawn and bwrap, which end with the machine, name
    its disk.
    """
    for module in (SUPERVISOR_MODULE, PROCESS_SUPERVISOR_MODULE):
        supervisor = parse_supervisor(0, argv, module)
        if supervisor is not None:
            return supervisor.root, supervisor.cluster
    if not argv or Path(argv[0]).name not in ("systemd-nspawn", "bwrap"):
        return None
    disk = next((match for word in argv if (match := _DISK.fullmatch(word)) is not None), None)
    return None if disk is None else (disk[1], disk[2])


def processes_of(root: Path) -> list[tuple[int, str]]:
    """(process id, cluster) of all machines, supervisors and holders of networks that run for this rehearsal."""
    found = [(process_id, owner) for process_id, argv in running() if (owner := _owner(argv)) is not None]
    return [(process_id, cluster) for process_id, (other, cluster) in found if Path(other).resolve() == root.resolve()]


def regions_of(root: Path) -> list[int]:
    """The process ids of this rehearsal's region servers, whatever its files say."""
    servers = (process_id for process_id, argv in running() if argv[-2:] == ["-m", REGION_MODULE])
    return [server for server in servers if (folder := _root_of_region(server)) and folder.resolve() == root.resolve()]


def _owner(argv: Sequence[str]) -> tuple[str, str] | None:
    network = parse_holder(0, argv)
    return parse_owner(argv) if network is None else (network.root, network.cluster)


def first_other_root(root: Path, cluster: str, found: Iterable[tuple[str, str]]) -> Path | None:
    """The first existing root of the cluster other than `root` in `found`, pairs of (root, cluster); None if none."""
    roots = sorted({Path(other) for other, name in found if name == cluster})
    return next((folder for folder in roots if _is_there(folder) and folder.resolve() != root.resolve()), None)


def network_elsewhere(root: Path, cluster: str) -> Path | None:
    """The folder of another rehearsal whose running region has a network of this name, with or without machines."""
    roots = (_root_of_region(process_id) for process_id, argv in running() if argv[-2:] == ["-m", REGION_MODULE])
    return first_other_root(
        root, cluster, [(str(folder), cluster) for folder in roots if folder and (folder / cluster).is_dir()]
    )


def _root_of_region(process_id: int) -> Path | None:
    """Where a region keeps its machines; None for another user's region, whose environment cannot be read."""
    try:
        environment = Path(f"/proc/{process_id}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    values = dict(line.partition("=")[::2] for line in environment)
    return rehearsal_home(values).machines


def _is_there(folder: Path) -> bool:
    """Whether the folder exists; one that this user may not see counts as existing."""
    try:
        return folder.is_dir()
    except PermissionError:
        return True
