"""How the processes of a job on all its nodes hear that one of the nodes will end, as that node's watch warns.

The watch (clusterctl-node watch) tells processes of its own node. A job is as long-lived as the first of its nodes to
end, so its supervisors pass a warning on: to a file on each node, and by signal to the job's processes that asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Collection, Iterable, Mapping

from clusterctl.on_node.job.layout import Layout, write_json
from clusterctl.on_node.job.processes import of_job, send

WARNED = "run/clusterctl/warned"
"""What the watch last warned of, as JSON: `at`, `by`, `stage`, `signalled`."""
ASKING = "run/clusterctl/warn"
"""A folder of files, each named by the id of a process that wants SIGUSR1."""
UPTIMES_END_AT = 1e9
"""The watch gives an end by the uptime or as Unix time. Below this it is an uptime: no machine runs for 31 years."""
SAME_END_S = 30.0
LOOK_S = 0.5
OWN_WATCH_S = 3.0
"""Within this time each node's own watch, which looks once a second, has told its processes of the common deadline."""
AWS = "AWS"
WHY = {"guard": "the cluster's deadline", AWS: "AWS takes this spot machine back", "watch": "a rule of the cluster"}


class Warnings:
    """Tells the job's processes here of a node's end; looks twice a second, since processes may ask later."""

    def __init__(self, layout: Layout, job: str, say: Callable[[str], None]) -> None:
        self._layout, self._job, self._say = layout, job, say
        self._looked_s = -LOOK_S
        self._own: dict[str, Any] | None = None
        self._heard: dict[str, Any] | None = None
        self._heard_s = 0.0
        self._signalled: set[int] = set()

    def look(self, heard: dict[str, Any] | None) -> dict[str, Any] | None:
        """Passes on the coordinator's warning, if any; gives this node's own."""
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            found = present_warning(self._layout.root, time.time())
            self._own = self._own if is_same(found, self._own) else found
            self._pass_on(heard)
        return self._own

    def _pass_on(self, heard: dict[str, Any] | None) -> None:
        if heard != self._heard:
            self._heard, self._heard_s, self._signalled = heard, self._looked_s, set()
            if heard is None:
                with contextlib.suppress(OSError):
                    self._layout.warning(self._job).unlink(missing_ok=True)
                self._say("clusterctl: no node of the job is about to end any more")
            else:
                with contextlib.suppress(OSError):  # a full disk takes no file; the job is told all the same
                    write_json(self._layout.warning(self._job), heard)
                left = in_words(float(heard["ends_s"]) - time.time())
                who = "Node %s (%s)" % (heard["slot"], heard["name"])
                self._say("clusterctl: %s ends in %s: %s; save what is to be kept" % (who, left, heard["why"]))
        if is_passed_on(heard, self._own, heard_for_s=self._looked_s - self._heard_s):
            here = of_job(self._job, os.getpid())
            self._signalled = signal_asking(self._layout.root, here, signalled=self._signalled, send=send)


def is_passed_on(heard: Mapping[str, Any] | None, own: Mapping[str, Any] | None, *, heard_for_s: float) -> bool:
    """Whether this supervisor signals the job's processes here; for this node's own end, its watch does."""
    if heard is None or (heard["why"] == WHY["guard"] and heard_for_s < OWN_WATCH_S):
        return False
    return own is None or not is_same_end(heard, own)


def in_words(left_s: float) -> str:
    """`15 minutes`, `90 seconds`."""
    return "%d minutes" % round(left_s / 60) if left_s > 119 else "%d seconds" % max(0, left_s)


def present_warning(root: Path, wall_s: float) -> dict[str, Any] | None:
    """`ends_s` (Unix time), `stage` and `why` of the end that this node warns of; None while it warns of none."""
    try:
        words = json.loads((root / WARNED).read_bytes())
        stage, by, at = int(words["stage"]), str(words["by"]), float(words["at"])
        is_uptime = at < UPTIMES_END_AT
        now_s = float((root / "proc/uptime").read_text().split()[0]) if is_uptime else wall_s
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if stage < 1:
        return None
    return {"ends_s": round(wall_s + at - now_s), "stage": stage, "why": WHY.get(by, WHY["watch"])}


def is_reclaimed(root: Path, wall_s: float) -> bool:
    """Whether AWS is about to take this machine back: nothing that begins here now ends in time."""
    found = present_warning(root, wall_s)
    return found is not None and found["why"] == WHY[AWS]


def is_same(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> bool:
    """Whether both warnings mean the same end; its instant differs a little each time."""
    if first is None or second is None:
        return first is second
    return is_same_end(first, second) and first["stage"] == second["stage"]


def is_same_end(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether both warn of the same end, such as the deadline, which all nodes have."""
    return abs(float(first["ends_s"]) - float(second["ends_s"])) <= SAME_END_S and first["why"] == second["why"]


def signal_asking(
    root: Path, processes: Iterable[int], *, signalled: Collection[int], send: Callable[[int, int], object]
) -> set[int]:
    """Sends SIGUSR1 to those of the processes that asked for it and did not get it yet; gives all that asked."""
    asking = _asking(root).intersection(processes)
    for pid in sorted(asking.difference(signalled, _signalled_by_watch(root))):
        send(pid, signal.SIGUSR1)
    return asking


def _asking(root: Path) -> set[int]:
    """The processes that want SIGUSR1, each asked for by its owner or root: without a handler the signal ends it."""
    found: set[int] = set()
    try:
        entries = list(os.scandir(root / ASKING))
    except OSError:
        return found
    for entry in entries:
        try:
            if entry.name.isdigit() and entry.stat(follow_symlinks=False).st_uid in (0, _owner(root, entry.name)):
                found.add(int(entry.name))
        except OSError:
            continue  # the entry or the process has gone
    return found


def _owner(root: Path, pid: str) -> int:
    return (root / "proc" / pid).stat().st_uid


def _signalled_by_watch(root: Path) -> set[int]:
    try:
        return {int(pid) for pid in json.loads((root / WARNED).read_bytes())["signalled"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()
