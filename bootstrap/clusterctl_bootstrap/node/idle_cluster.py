"""Slot 0's part of the idle rule: hears every node, judges, warns, and ends the cluster when all agree.

It asks over the SSH that the nodes of a cluster have among each other. Should slot 0 be gone, nobody judges, and the
deadline holds.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.ending import idle_limit_s
from clusterctl_bootstrap.node.environment import address
from clusterctl_bootstrap.node.files import log, write_atomically
from clusterctl_bootstrap.node.idle_judge import LastReport, Verdict, verdict
from clusterctl_bootstrap.node.idle_peer import Peer, Reporter, argv
from clusterctl_bootstrap.node.outside import Outside
from clusterctl_bootstrap.node.release import start_ending
from clusterctl_bootstrap.node.warning import in_words
from clusterctl_bootstrap.node.watch import DRAIN_S

WHY = "idle"
"""The first word in the name of the execution that ends the rest."""
LONGEST_INTERVAL_S = 30.0
LOOKS = 20
"""The least number of measurements within the idle time."""
STALE = 3
"""A report that is older than this many intervals and the slack does not count."""
SLACK_S = 45.0
"""How long two calls of nvidia-smi may take; never more than the rule's own time."""
WARN_S = 300.0
DOWN_S = 20
"""How long machines that have nothing to save usually take until they are off."""
PARALLEL = 16
KEPT_SIGNS = 5
"""How many signs of use are shown."""


def keep_watch(root: Path, outside: Outside) -> int:
    """Judges all nodes as long as the membership has an idle rule; never returns."""
    write_atomically(root / "run/clusterctl/idle.pid", "%d\n" % os.getpid())
    while True:
        pushed, limit = facts_file.pushed(root), idle_limit_s(root)
        if not limit:
            status.note(root, idle=None)
            outside.sleep(LONGEST_INTERVAL_S)
            continue
        watch = IdleWatch(root, facts_file.present(root), limit, outside)
        try:
            while facts_file.pushed(root) == pushed:
                watch.look()
                outside.sleep(watch.interval_s)
        finally:
            watch.stop()


class IdleWatch:
    """The idle rule for all nodes of one membership."""

    def __init__(self, root: Path, known: Dict[str, Any], limit_s: float, outside: Outside) -> None:
        self.root = root
        self.known = known
        self.limit_s = limit_s
        self.outside = outside
        self.interval_s = interval_s(limit_s)
        self.slack_s = min(SLACK_S, limit_s)
        self.is_warned = False
        self.is_ending = False
        self.asked = 0
        self.peers: List[Reporter] = [Peer(argv(known, slot, self.interval_s)) for slot in range(known["nodes"])]

    def stop(self) -> None:
        for peer in self.peers:
            peer.stop()

    def look(self) -> None:
        """Judges once, and does what follows from it."""
        self._ask_silent()
        found = self._judge(self._fresh)
        self._note(found)
        left_s = self.limit_s - found.idle_s
        if found.keeps or left_s > warn_s(self.limit_s):
            self.is_warned = False
        elif not found.is_over and not self.is_warned:
            self.is_warned = True
            self._say("warn " + warning(self.known["cluster"], found.idle_s, left_s))
        if found.is_over and not self.is_ending:
            self._end_if_all_agree()

    def _end_if_all_agree(self) -> None:
        """Asks each node once more, and ends the cluster if these answers agree that it is idle."""
        self.asked += 1
        self._say("look %d" % self.asked)
        until = time.monotonic() + self.slack_s
        while time.monotonic() < until and not all(map(self._answered, filter(self._fresh, self.peers))):
            self.outside.sleep(0.2)
        found = self._judge(self._answered)
        self.is_ending = found.is_over
        self._note(found)
        if not self.is_ending:
            return
        since = datetime.now(timezone.utc) - timedelta(seconds=found.idle_s)
        reason = "idle since %s" % since.strftime("%Y-%m-%dT%H:%M:%SZ")
        log(self.root, "the cluster ends: %s, longer than %d s" % (reason, self.limit_s))
        # AWS comes first, to end the rest should this node be gone in the next moment; it waits for the hooks.
        saves = any(peer.report.get("saves") for peer in self.peers)
        wait_s = DOWN_S + (DRAIN_S if saves else 0)
        log(self.root, start_ending(self.root, self.known, WHY, since, wait_s, self.outside.sleep))
        self._say("end " + reason)

    def _judge(self, counts: Callable[[Reporter], bool]) -> Verdict:
        now = time.monotonic()
        nodes = [LastReport(peer.report if counts(peer) else None, now - peer.seen_s) for peer in self.peers]
        return verdict(nodes, self.known["cluster"], self.known["generation"], self.limit_s)

    def _fresh(self, peer: Reporter) -> bool:
        return time.monotonic() - peer.reported_s < STALE * self.interval_s + self.slack_s

    def _answered(self, peer: Reporter) -> bool:
        return self._fresh(peer) and peer.report["asked"] == self.asked

    def _ask_silent(self) -> None:
        """Asks the SSH servers of nodes that do not report: a node whose server answers is there."""
        silent = [slot for slot, peer in enumerate(self.peers) if not self._fresh(peer)]

        def ask(slot: int) -> None:
            if self.outside.ssh_banner(address(self.known["slot_cidr"], slot)).startswith("SSH-"):
                self.peers[slot].seen_s = time.monotonic()

        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(ask, silent))

    def _say(self, line: str) -> None:
        for peer in self.peers:
            peer.say(line)

    def _note(self, found: Verdict) -> None:
        """Writes the file that `clusterctl status` reads."""
        now = datetime.now(timezone.utc).replace(microsecond=0)
        since = None if found.keeps else (now - timedelta(seconds=found.idle_s)).isoformat()
        keeps = found.keeps[:KEPT_SIGNS]
        idle = {"at": now.isoformat(), "limit_s": self.limit_s, "since": since, "keeps": keeps, "ends": self.is_ending}
        status.note(self.root, idle=idle)


def interval_s(limit_s: float) -> float:
    """Seconds between two measurements."""
    return max(1.0, min(LONGEST_INTERVAL_S, limit_s / LOOKS))


def warn_s(limit_s: float) -> float:
    """How long before the end people are warned."""
    return min(WARN_S, limit_s / 3)


def warning(cluster: str, idle_s: float, left_s: float) -> str:
    """What people read on their terminals; whoever reads it is logged in, and that alone keeps the cluster."""
    text = "%s has been idle for %s and ends in %s: a login, a job or work on any node keeps it"
    return text % (cluster, in_words(idle_s), in_words(left_s))
