"""The dead man's rule: a node that slot 0 does not answer any more ends, and so does slot 0 without a majority.

Every slot sends slot 0 a beat, one datagram, and slot 0 answers it. Both prove that they know the cluster's secret:
the answer holds the beat's own random number, and a beat counts if it holds the one of a late answer, so that nobody is
seen by what was said before.
"""

import contextlib
import hmac
import json
import secrets
import socket
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from clusterctl_bootstrap.node import facts as facts_file
from clusterctl_bootstrap.node.environment import address
from clusterctl_bootstrap.node.release import start_ending
from clusterctl_bootstrap.node.trust import BARRIER_SECRET
from clusterctl_bootstrap.node.warning import in_words, tell

PORT = 329
"""Of slot 0, for datagrams. Below 1024, so that no user of slot 0 can sit there first and have all others end; below
those from which Linux mounts NFS (665 and up), and of no service in IANA's list (as Debian 12 has it; 2026-11-22)."""
WHY = "alone"
"""Begins the name of the execution that ends the rest."""
BEATS = 6
"""At least so many in the time that is allowed."""
LONGEST_BEAT_S = 10.0
SEEN_BEATS = 3
"""Who has not been heard for so many is not there."""
AWAKE_S = 3.0
"""A pause between two looks counts for so much at most: who was frozen has not looked for anybody."""
KEPT = 4
"""Random numbers of its own that a side remembers."""
LINES = 4096
"""Read at one look at most."""


class DeadMan:
    """One node's view of the others; `clock` in seconds, of any beginning."""

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.root = root
        self.clock = clock
        self.looked_s = clock()
        self.awake_s = 0.0
        self.seen_s = 0.0
        """When all was well: slot 0 answered, or a majority was there. By `awake_s`, as the others."""
        self.beat_s = -LONGEST_BEAT_S
        self.heard_s: Dict[int, float] = {}
        self.own: List[str] = []
        self.theirs = ""
        self.door: Optional[socket.socket] = None
        self.is_alone = False
        self.is_told = False

    def look(self) -> str:
        """Why this node has to end; nothing while it has not to. Raises FactsError and OSError."""
        now = self.clock()
        self.awake_s += min(now - self.looked_s, AWAKE_S)
        self.looked_s = now
        known = facts_file.present(self.root)
        allowed_s = float((facts_file.pushed(self.root) or {}).get("dead_man_s") or 0)
        if not allowed_s or known["nodes"] < 2:
            self.seen_s, self.is_alone = self.awake_s, False
            return ""
        pause_s = min(LONGEST_BEAT_S, allowed_s / BEATS)
        secret = (self.root / BARRIER_SECRET).read_bytes()
        with contextlib.suppress(OSError):  # no network: nobody is seen
            self._exchange(known, secret, pause_s)
        there = self._there(known["nodes"], SEEN_BEATS * pause_s)
        # Where somebody else has the port, nobody can be heard: that says nothing of the others.
        if known["slot"] == 0 and (self.door is None or 2 * there > known["nodes"]):
            self.seen_s = self.awake_s
        unseen_s = self.awake_s - self.seen_s
        self.is_alone = unseen_s > allowed_s
        if not self.is_alone:
            return ""
        what = "%d of %d nodes" % (there, known["nodes"]) if known["slot"] == 0 else "no slot 0"
        return "dead man: %s seen for %s" % (what, in_words(unseen_s))

    def last_words(self, wait_s: int) -> None:
        """Called before this node ends: without a majority the cluster is over, and slot 0 has AWS end what is left.

        Another node has no such word: it cannot know that the rest is dead. `wait_s` is left to those who still save.
        """
        known = facts_file.present(self.root)
        if known["slot"] != 0 or not self.is_alone or self.is_told:
            return
        self.is_told = True
        since = datetime.now(timezone.utc) - timedelta(seconds=self.awake_s - self.seen_s)
        tell(self.root, start_ending(self.root, known, WHY, since, wait_s, time.sleep))

    def _there(self, nodes: int, within_s: float) -> int:
        """How many of the slots there are were heard by slot 0, with itself."""
        heard = [slot for slot, at in self.heard_s.items() if slot < nodes and self.awake_s - at < within_s]
        return 1 + len(heard)

    def _exchange(self, known: Dict[str, Any], secret: bytes, pause_s: float) -> None:
        """Beats, when it is time, and what has come since the last look. Raises OSError."""
        place = (address(known["slot_cidr"], 0), PORT)
        if self.door is None:
            self.door = opened_door(place if known["slot"] == 0 else ("", 0))
        self._hear(self.door, known, secret)
        if self.awake_s - self.beat_s < pause_s:
            return
        self.beat_s = self.awake_s
        self.own = [secrets.token_hex(16), *self.own][:KEPT]
        if known["slot"] != 0:
            beat = {"id": known["cluster_id"], "slot": known["slot"], "own": self.own[0], "theirs": self.theirs}
            self.door.sendto(sealed(secret, beat), place)

    def _hear(self, door: socket.socket, known: Dict[str, Any], secret: bytes) -> None:
        for _ in range(LINES):
            try:
                data, sender = door.recvfrom(2048)
            except BlockingIOError:
                return
            said = opened(secret, data)
            if said is None or said.get("id") != known["cluster_id"]:
                continue
            if known["slot"] == 0:
                self._answer(door, sender, known, secret, said)
            elif said.get("slot") == 0 and said.get("theirs") in self.own:
                self.seen_s, self.theirs = self.awake_s, str(said.get("own"))

    def _answer(
        self, door: socket.socket, sender: Tuple[str, int], known: Dict[str, Any], secret: bytes, said: Dict[str, Any]
    ) -> None:
        slot = said.get("slot")
        if type(slot) is not int or not 0 < slot < known["nodes"]:
            return
        if said.get("theirs") in self.own:
            self.heard_s[slot] = self.awake_s
        if self.own:
            answer = {"id": known["cluster_id"], "slot": 0, "own": self.own[0], "theirs": said.get("own")}
            with contextlib.suppress(OSError):
                door.sendto(sealed(secret, answer), sender)


def opened_door(place: Tuple[str, int]) -> socket.socket:
    """A socket for datagrams. Raises OSError where the place is another's."""
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.setblocking(False)
    try:
        door.bind(place)
    except OSError:
        door.close()
        raise
    return door


def sealed(secret: bytes, words: Dict[str, Any]) -> bytes:
    """The words with a proof of the secret."""
    return json.dumps([words, _proof(secret, words)]).encode()


def opened(secret: bytes, data: bytes) -> Optional[Dict[str, Any]]:
    """The words whose proof is right; None for anything else."""
    try:
        words, proof = json.loads(data)
        is_proven = isinstance(words, dict) and hmac.compare_digest(_proof(secret, words), proof)
    except (ValueError, TypeError):
        return None
    return words if is_proven else None


def _proof(secret: bytes, words: Dict[str, Any]) -> str:
    """Begins with a word that no proof of the start barrier begins with."""
    return hmac.new(secret, json.dumps(["beat", words], sort_keys=True).encode(), "sha256").hexdigest()
