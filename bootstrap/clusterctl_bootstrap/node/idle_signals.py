"""The signals by which a node is found idle, read from the machine. One that cannot be read is reported, not left out.

Run as root: on some machines a plain user does not see the processes of others.
"""

import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Callable, List, Optional, Tuple, TypeVar

from clusterctl_bootstrap.node import guard, status
from clusterctl_bootstrap.node.idle_judge import Reading
from clusterctl_bootstrap.node.outside import Outside

JOBS = "run/clusterctl/jobs"
"""A file here stands for a running job; the program that starts jobs makes and removes it. A reboot removes all.

With a process's id and start in it (field 22 of its `stat`), the file counts only while that process lives.
"""
NVIDIA_SMI_S = 20
SSH_PORT = 22
ESTABLISHED = "01"
SECTOR_BYTES = 512
"""The unit of /sys/block/*/stat, whatever the disk's own is (Linux, Documentation/block/stat.rst)."""
NOT_OUTSIDE = ("lo", "docker", "veth", "br-", "cni", "flannel")
T = TypeVar("T")


class Unreadable(Exception):
    """A signal that could not be read; the text says why."""


def read(root: Path, gpus: int, own: Tuple[str, int], outside: Outside) -> Reading:
    """All signals now. `own`: address and port from which slot 0 asks; that connection is nobody's session."""
    look = Look()
    return Reading(
        at_s=outside.monotonic(),
        phase=look.at("status.json", lambda: str(json.loads(status.line(root))["phase"]), ""),
        changed=look.at("membership", lambda: _changed(root), ""),
        gpu_percents=look.at("GPU use", lambda: _gpu_percents(gpus, outside), None) if gpus else None,
        gpu_processes=look.at("GPU processes", lambda: _gpu_processes(outside), None) if gpus else None,
        ssh_sessions=look.at("SSH sessions", lambda: _ssh_sessions(root, own), 0),
        jobs=look.at("jobs", lambda: _jobs(root), ()),
        cpu_s=look.at("processes", lambda: _cpu_s(root), 0.0),
        disk_bytes=look.at("disks", lambda: _disk_bytes(root), None),
        network_bytes=look.at("network", lambda: _network_bytes(root), 0),
        unreadable=tuple(look.unreadable),
    )


class Look:
    """Reads one signal after the other, and keeps what could not be read."""

    def __init__(self) -> None:
        self.unreadable: List[str] = []

    def at(self, what: str, reader: Callable[[], T], instead: T) -> T:
        """The value that `reader` returns; `instead`, if it cannot read the signal."""
        try:
            return reader()
        except (OSError, ValueError, LookupError, Unreadable) as e:
            self.unreadable.append("%s not readable (%s)" % (what, e))
            return instead


def _changed(root: Path) -> str:
    """A text that changes when a membership is pushed."""
    return str((root / "var/lib/clusterctl/cluster.json").stat().st_mtime_ns)


def _gpu_percents(gpus: int, outside: Outside) -> Tuple[int, ...]:
    """The use of each GPU. If GPUs are divided (MIG), the driver gives no number, so the signal is unreadable."""
    found = tuple(int(line) for line in _nvidia_smi("--query-gpu=utilization.gpu", outside))
    if len(found) != gpus:
        raise Unreadable("%d GPUs of %d" % (len(found), gpus))
    return found


def _gpu_processes(outside: Outside) -> int:
    return len(_nvidia_smi("--query-compute-apps=pid", outside))


def _nvidia_smi(query: str, outside: Outside) -> List[str]:
    code, output = outside.run(["nvidia-smi", query, "--format=csv,noheader,nounits"], NVIDIA_SMI_S)
    if code:
        raise Unreadable("nvidia-smi: exit %d: %s" % (code, output[-80:]))
    return [line.strip() for line in output.splitlines() if line.strip()]


def _ssh_sessions(root: Path, own: Tuple[str, int]) -> int:
    """The number of connections to this machine's SSH port, except our own."""
    address, port = own
    mine = "%08X" % int.from_bytes(socket.inet_aton(address), sys.byteorder), "%04X" % port
    count = 0
    tables = [root / "proc/net/tcp", *(root / "proc/net").glob("tcp6")]  # there is none without IPv6
    for table in tables:
        for line in table.read_text().splitlines()[1:]:
            here, there, state = line.split()[1:4]
            far_address, _, far_port = there.partition(":")
            is_ours = (far_address[-8:], far_port) == mine
            if state == ESTABLISHED and here.endswith(":%04X" % SSH_PORT) and not is_ours:
                count += 1
    return count


def _jobs(root: Path) -> Tuple[str, ...]:
    folder = root / JOBS
    return tuple(sorted(mark.name for mark in folder.iterdir() if _counts(root, mark))) if folder.exists() else ()


def _counts(root: Path, mark: Path) -> bool:
    """Whether a job's file counts: one may be left of a `clusterctl run` whose supervisor was killed."""
    words = mark.read_text(errors="replace").split() if mark.is_file() else []
    if len(words) != 2 or not words[0].isdigit():
        return mark.exists()
    try:
        fields = (root / "proc" / words[0] / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] != "Z" and fields[19] == words[1]


def _cpu_s(root: Path) -> float:
    """Processor time of all processes but this one, with that of ended children, which passes to a parent that waits.

    The load average and /proc/stat are not used: in a container both are those of the machine around it.
    """
    ticks = 0
    for entry in (root / "proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                user, system, waited_user, waited_system = map(int, fields[11:15])  # proc(5)
                ticks += user + system + waited_user + waited_system
    return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def _disk_bytes(root: Path) -> Optional[int]:
    """Bytes written to all disks of the machine; None in a container, which shares them with others."""
    if not guard.applies(root) or (root / "run/systemd/container").exists():
        return None
    disks = [disk for disk in (root / "sys/block").iterdir() if (disk / "device").exists()]
    return sum(int((disk / "stat").read_text().split()[6]) * SECTOR_BYTES for disk in disks)


def _network_bytes(root: Path) -> int:
    """Bytes received and sent by all that leads out of the machine, EFA too."""
    total = 0
    for line in (root / "proc/net/dev").read_text().splitlines()[2:]:
        name, _, counts = line.partition(":")
        if not name.strip().startswith(NOT_OUTSIDE):
            words = counts.split()
            total += int(words[0]) + int(words[8])
    for counter in (root / "sys/class/infiniband").glob("*/ports/1/hw_counters/[rt]x_bytes"):
        total += int(counter.read_text())
    return total
