"""Whether a node, and the whole cluster, is idle: decided by what was read, by nothing else. Pure.

Every signal has to say idle. One that cannot be read counts as a sign of life, and so does a node that answers but does
not report.
"""

from typing import Any, List, Mapping, NamedTuple, Optional, Tuple

GPU_PERCENT = 5
"""From this use on, a GPU counts as working; one that only answers nvidia-smi shows a percent or two now and then."""
CORES = 0.2
"""A program that computes keeps one core busy; what an image runs besides stays below."""
BYTES_PER_S = 1e6
"""Logs and heartbeats stay below, a checkpoint or a copy does not."""


class Reading(NamedTuple):
    """What a node's signals said at one moment; None where the node has no such thing."""

    at_s: float
    """By the node's monotonic clock."""
    phase: str
    changed: str
    """A text that changes with each push to the node."""
    gpu_percents: Optional[Tuple[int, ...]]
    gpu_processes: Optional[int]
    ssh_sessions: int
    jobs: Tuple[str, ...]
    cpu_s: float
    """Processor time of all processes since boot."""
    disk_bytes: Optional[int]
    """Written since boot."""
    network_bytes: int
    """Received and sent since boot."""
    unreadable: Tuple[str, ...] = ()
    """Signals that could not be read, each with why."""


def signs_of_life(before: Optional[Reading], now: Reading) -> List[str]:
    """The signs that this node is not idle, in words for people; empty when all signals say that it is."""
    signs = list(now.unreadable)
    if now.phase not in ("ready", "failed"):
        signs.append("still boots (%s)" % now.phase)
    busiest = max(now.gpu_percents or (0,))
    if busiest >= GPU_PERCENT:
        signs.append("a GPU at %d %%" % busiest)
    for number, what in ((now.gpu_processes, "GPU process"), (now.ssh_sessions, "SSH session")):
        if number:
            signs.append("%d %s%s" % (number, what, "" if number == 1 else "es" if what[-1] == "s" else "s"))
    signs += ["job %s" % job for job in now.jobs]
    if before is None or before.changed != now.changed:
        return [*signs, "seen for the first time" if before is None else "its membership came"]
    return signs + _rates(before, now)


def _rates(before: Reading, now: Reading) -> List[str]:
    """Signs in what was done since the reading before."""
    seconds = now.at_s - before.at_s
    cores = (now.cpu_s - before.cpu_s) / seconds
    # The sum falls if a process ended that nobody waited for: what it had used counts as use, too.
    signs = ["%.1f processor cores in use" % abs(cores)] if abs(cores) >= CORES else []
    counted = [("writes", before.disk_bytes, now.disk_bytes), ("network:", before.network_bytes, now.network_bytes)]
    for what, earlier, later in counted:
        if earlier is not None and later is not None:
            rate = (later - earlier) / seconds
            if rate >= BYTES_PER_S:
                signs.append("%s %.1f MB/s" % (what, rate / 1e6))
    return signs


class Verdict(NamedTuple):
    """The verdict for the whole cluster."""

    idle_s: float
    """For how long no node has shown a sign of life; 0 while something keeps the cluster."""
    keeps: Tuple[str, ...]
    """Why it is not idle: `train-2: 8 GPU processes`."""
    is_over: bool


class LastReport(NamedTuple):
    """What slot 0 knows of one node."""

    report: Optional[Mapping[str, Any]]
    """Its newest one: `generation`, `quiet_s` and `signs`; None when it is too old to count."""
    silent_s: float
    """For how long it has neither reported nor answered as an SSH server."""


def verdict(nodes: List[LastReport], cluster: str, generation: int, limit_s: float) -> Verdict:
    """The judgement over all nodes, by slot.

    A node that has been silent to everything for the whole time is taken for lost and does not count, as long as more
    than half of all report: its machine has nobody who could use it.
    """
    keeps = []
    quiet_s = []
    for slot, node in enumerate(nodes):
        report = node.report
        if report is not None and report["generation"] == generation:
            keeps += ["%s-%d: %s" % (cluster, slot, sign) for sign in report["signs"]]
            quiet_s.append(float(report["quiet_s"]))
        elif report is not None:
            keeps.append("%s-%d: has another membership (%s)" % (cluster, slot, report["generation"]))
        elif node.silent_s < limit_s:
            keeps.append("%s-%d: does not report" % (cluster, slot))
    if not keeps and len(quiet_s) * 2 <= len(nodes):
        keeps.append("only %d of %d nodes report" % (len(quiet_s), len(nodes)))
    idle_s = 0.0 if keeps else min(quiet_s)
    return Verdict(idle_s, tuple(keeps), idle_s >= limit_s)
