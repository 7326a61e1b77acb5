"""The dead man's rule: a node that slot 0 does not answer any more ends, and so does slot 0 without a majority.

Every slot sends slot 0 a beat, one datagram, and slot 0 answers it. Both prove that they know the cluster's secret: the
answer repeats the beat's own random number, and a beat counts if it repeats the number of a recent answer, so that
nobody seems alive by messages that are played back.

A node without slot 0 asks the others, in the same way, whether they are without it, too. If half of all nodes are, the
cluster is over: slot 0 could not have a majority even if it lived. The lowest slot of them has AWS end what is left.
Fewer nodes cannot know that, but AWS can: the lowest of them has it end what is left if slot 0's machine is gone.
"""

import contextlib
import secrets
import socket
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node.beats import opened_door, received, sealed
from clusterctl_bootstrap.node.environment import address
from clusterctl_bootstrap.node.release import start_ending
from clusterctl_bootstrap.node.trust import BARRIER_SECRET
from clusterctl_bootstrap.node.warning import in_words, tell

PORT = 329
"""The port of each node for datagrams. It is below 1024, so that no user of slot 0 can take it first and have all
others end; below the ports from which Linux mounts NFS (665 and up); and of no service in IANA's list (as Debian 12 has
it; 2026-11-22)."""
WHY, WHY_LOST, WHY_UNSURE = "alone", "lost", "unsure"
"""The first word in the name of the execution that ends the rest, started by slot 0, by a half without it, by fewer."""
BEATS = 6
"""At least this many are sent in the time that is allowed."""
LONGEST_BEAT_S = 10.0
SEEN_BEATS = 3
"""A node that has missed this many beats counts as gone."""
AWAKE_S = 3.0
"""A pause between two looks counts for at most this: a node that was frozen has not looked for anybody."""
KEPT = 4
"""How many of its own random numbers a node remembers."""


class DeadMan:
    """One node's view of the others; `clock` gives seconds since any instant."""

    def __init__(self, root: Path, clock: Callable[[], float], start: Callable[..., str] = start_ending) -> None:
        self.root = root
        self.clock = clock
        self.start = start
        self.looked_s = clock()
        self.awake_s = 0.0
        self.seen_s = 0.0
        """When all was last well: slot 0 answered, or a majority was there. By `awake_s`, like the times below."""
        self.beat_s = -LONGEST_BEAT_S
        self.heard_s: Dict[int, float] = {}
        self.own: List[str] = []
        self.theirs = ""
        self.door: Optional[socket.socket] = None
        self.is_alone = False
        self.lost_s: Dict[int, float] = {}
        """Slot → when it last said that it is without slot 0, too."""
        self.ends_all = False
        self.is_lowest = False
        """Whether this node is the lowest of those without slot 0."""
        self.is_end_started = False

    def look(self) -> str:
        """Why this node has to end; empty while it does not have to. Raises FactsError and OSError."""
        now = self.clock()
        self.awake_s += min(now - self.looked_s, AWAKE_S)
        self.looked_s = now
        known = facts_file.present(self.root)
        longest_s = allowed_s(self.root)
        if not longest_s:
            self.seen_s, self.is_alone = self.awake_s, False
            return ""
        pause_s = min(LONGEST_BEAT_S, longest_s / BEATS)
        secret = (self.root / BARRIER_SECRET).read_bytes()
        with contextlib.suppress(OSError):  # no network: nobody is seen
            self._exchange(known, secret, pause_s)
        there = self._there(known["nodes"], SEEN_BEATS * pause_s)
        # Where somebody else has the port, nobody can be heard: that says nothing of the others.
        if known["slot"] == 0 and (self.door is None or 2 * there > known["nodes"]):
            self.seen_s = self.awake_s
        unseen_s = self.awake_s - self.seen_s
        self.is_alone = unseen_s > longest_s
        if not self.is_alone:
            self.ends_all = False
            return ""
        lost = self._lost(known["nodes"], SEEN_BEATS * pause_s)
        self.is_lowest = known["slot"] < min(lost, default=known["nodes"])
        # Slot 0 hears none of those that are without it: if they are half of all, it has no more than the other half.
        is_over = known["slot"] == 0 or 2 * (1 + len(lost)) >= known["nodes"]
        self.ends_all = self.ends_all or (self.is_lowest and is_over)  # it stays so when the others are gone
        what = "%d of %d nodes" % (there, known["nodes"]) if known["slot"] == 0 else "no slot 0"
        return "dead man: %s seen for %s" % (what, in_words(unseen_s))

    def last_words(self, wait_s: int) -> None:
        """Called before this node ends: if the cluster is over, and this node speaks for it, AWS ends what is left.

        Fewer than half of the nodes, without slot 0, cannot know that the rest is dead: AWS looks whether slot 0 has a
        machine. AWS ends nothing for `wait_s`, in which others may still save.
        """
        known = facts_file.present(self.root)
        if not self.is_alone or not (self.ends_all or self.is_lowest) or self.is_end_started:
            return
        self.is_end_started = True
        since = datetime.now(timezone.utc) - timedelta(seconds=self.awake_s - self.seen_s)
        sure = WHY_LOST if known["slot"] else WHY
        why = sure if self.ends_all else WHY_UNSURE
        tell(self.root, self.start(self.root, known, why, since, wait_s, time.sleep, not self.ends_all))

    def _lost(self, nodes: int, within_s: float) -> List[int]:
        """The slots of the cluster that said within `within_s` that they are without slot 0, too."""
        return [slot for slot, at in self.lost_s.items() if slot < nodes and self.awake_s - at < within_s]

    def _there(self, nodes: int, within_s: float) -> int:
        """How many of the cluster's slots slot 0 has heard within `within_s`, itself included."""
        heard = [slot for slot, at in self.heard_s.items() if slot < nodes and self.awake_s - at < within_s]
        return 1 + len(heard)

    def _exchange(self, known: Dict[str, Any], secret: bytes, pause_s: float) -> None:
        """Takes what has come since the last look, and sends beats when it is time. Raises OSError."""
        if self.door is None:
            self.door = _own_door(known)
        for words, sender in received(self.door, secret, known["cluster_id"]):
            self._take(self.door, sender, known, secret, words)
        if self.awake_s - self.beat_s < pause_s:
            return
        self.beat_s = self.awake_s
        self.own = [secrets.token_hex(16), *self.own][:KEPT]
        asked = range(known["nodes"]) if self.is_alone else range(1)
        for slot in asked:
            if known["slot"] not in (0, slot):
                beat = {"id": known["cluster_id"], "slot": known["slot"], "own": self.own[0], "theirs": self.theirs}
                with contextlib.suppress(OSError):  # that one alone may be gone
                    self.door.sendto(sealed(secret, beat), (address(known["slot_cidr"], slot), PORT))

    def _take(
        self, door: socket.socket, sender: Tuple[str, int], known: Dict[str, Any], secret: bytes, words: Dict[str, Any]
    ) -> None:
        """Answers a beat, or takes an answer: it repeats one of this node's random numbers and says `alone` or not."""
        slot = words["slot"]
        if slot >= known["nodes"] or slot == known["slot"]:
            return
        is_fresh = words["theirs"] in self.own
        if known["slot"] == 0:
            self._answer(door, sender, known, secret, words)
            if is_fresh:
                self.heard_s[slot] = self.awake_s
        elif slot == 0:
            if is_fresh:
                self.seen_s, self.theirs = self.awake_s, words["own"]
        elif "alone" not in words:
            self._answer(door, sender, known, secret, words)
        elif is_fresh and words["alone"] is True:
            self.lost_s[slot] = self.awake_s
        elif is_fresh:
            self.lost_s.pop(slot, None)
            self.ends_all = False  # that one has slot 0 again: what was decided counted it

    def _answer(
        self, door: socket.socket, sender: Tuple[str, int], known: Dict[str, Any], secret: bytes, words: Dict[str, Any]
    ) -> None:
        if self.own:
            answer = {"id": known["cluster_id"], "slot": known["slot"], "own": self.own[0], "theirs": words["own"]}
            with contextlib.suppress(OSError):
                door.sendto(sealed(secret, dict(answer, alone=self.is_alone)), sender)


def allowed_s(root: Path) -> float:
    """How many seconds the others may be unseen; 0 without the rule or without other nodes. Raises FactsError."""
    seconds = float((facts_file.pushed(root) or {}).get("dead_man_s") or 0)
    return seconds if facts_file.present(root)["nodes"] > 1 else 0.0


def _own_door(known: Dict[str, Any]) -> socket.socket:
    """A socket at the node's own port. If another program has that, a node that only asks uses any. Raises OSError."""
    try:
        return opened_door((address(known["slot_cidr"], known["slot"]), PORT))
    except OSError:
        if known["slot"] == 0:
            raise
        return opened_door(("", 0))
