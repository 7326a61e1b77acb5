"""The start barrier: every slot waits at slot 0 until all are there, then all go on together.

Slot 0's own process listens while it waits, and the others connect again until their time is over: so slot 0 may be
killed and begin anew, and no service has to run. Both sides send JSON lines. Slot 0 sends a challenge; the other slot,
its guest, says who it is, with a proof that it knows the cluster's secret. All that slot 0 says after that carries a
proof for this guest alone: that it is refused, or who is missing, which the guest answers, and at last `go`. A side
that proves nothing is not believed.
"""

import hmac
import json
import os
import secrets
import select
import socket
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any, Dict

from clusterctl_bootstrap.node.barrier_door import POLL_S, Door
from clusterctl_bootstrap.node.barrier_lines import SHORT_BYTES, Lines
from clusterctl_bootstrap.node.facts import FactsError, read_json
from clusterctl_bootstrap.node.received import is_text, is_whole, printable
from clusterctl_bootstrap.node.trust import BARRIER_SECRET

FIRST_PORT = 20000
PORTS = 8000
"""Below what Linux gives to outgoing connections; a port for each name, so that several barriers may wait at a time."""
BEAT_S = 2.0
NODES_A_SECOND = 100
"""How many nodes a busy slot 0 surely can tell each second who is missing; more than 200 are told less often."""
BEATS = 3
"""A side that says nothing for this many beats counts as gone although its connection stands: it is frozen or off."""
RETRY_S = 0.3
SAY_S = 10.0
LONGEST_NAME, LONGEST_PROOF, HIGHEST = 64, 128, 10**12
LATE = 1
REFUSED = 3
TROUBLES = (OSError, EOFError, ValueError, LookupError, TypeError)


class NotMet(Exception):
    """Not all have met; its arguments are the exit code, and why in words."""


def barrier(root: Path, name: str, timeout_s: float) -> int:
    """0 when all met, `LATE` when they did not in time, `REFUSED` when this process may not take part."""
    began = time.monotonic()
    try:
        facts = read_json(root / "etc/clusterctl/node.json")
        Wait(facts, (root / BARRIER_SECRET).read_bytes(), name, timeout_s).meet()
    except (NotMet, FactsError, OSError) as e:
        code, why = e.args if isinstance(e, NotMet) else (REFUSED, e)
        print("barrier %s: %s" % (name, why), file=sys.stderr)
        return int(code)
    print(json.dumps({"barrier": name, "waited_s": round(time.monotonic() - began, 3)}))
    return 0


class Wait:
    """One slot's wait; `facts` is node.json."""

    def __init__(self, facts: Dict[str, Any], secret: bytes, name: str, timeout_s: float) -> None:
        self.facts = dict(facts, name=name)
        self.secret = secret
        self.place = (facts["master_addr"], FIRST_PORT + zlib.crc32(name.encode()) % PORTS)
        self.missing = list(range(1, facts["nodes"])) if facts["slot"] == 0 else []
        self.why: Dict[str, str] = {}  # missing slot → why it was refused
        self.trouble = ""
        self.beat_s = max(BEAT_S, facts["nodes"] / NODES_A_SECOND)
        self.reported_s = time.monotonic()
        self.until = self.reported_s + timeout_s
        self.lock = threading.Lock()
        self.is_over = False

    def meet(self) -> None:
        """Returns when all are there. Raises NotMet."""
        if self.facts["slot"] == 0:
            return self._host()
        while True:
            try:
                return self._visit()
            except TROUBLES as e:
                self.trouble = " (%s)" % printable(e)
            self._look_at_the_clock()
            time.sleep(RETRY_S)

    def _look_at_the_clock(self) -> None:
        """Says from time to time which nodes are missing, as far as it is known here. Raises NotMet at the end."""
        now = time.monotonic()
        if now < min(self.until, self.reported_s + SAY_S):
            return
        self.reported_s = now
        cluster = self.facts["cluster"]
        names = [cluster + "-0" + self.trouble] * bool(self.trouble)
        names += ["%s-%d%s" % (cluster, slot, self.why.get(str(slot), "")) for slot in sorted(self.missing)]
        missing = ", ".join(names)
        if now >= self.until:
            raise NotMet(LATE, "not met in time, missing: %s" % missing)
        print("barrier %s: waits for %s" % (self.facts["name"], missing), file=sys.stderr, flush=True)

    def _host(self) -> None:
        try:
            door = Door(self.place, self.facts["nodes"], self._receive)
        except OSError as e:
            reason = "slot 0 waits here already, or another program has port %d: %s: ss -ltnp"
            raise NotMet(REFUSED, reason % (self.place[1], e)) from e
        self.gate, opener = os.pipe()
        # The door is shut before anybody goes: a guest that comes for the next round finds the next slot 0 there.
        with door:
            self.door = door
            while self.missing:
                self._look_at_the_clock()
                door.look()
        self.is_over = True
        os.close(opener)
        while len(self.missing) < self.facts["nodes"] - 1:  # all have heard it, or are silent
            time.sleep(POLL_S)

    def _receive(self, connection: socket.socket) -> None:
        """Serves one guest, from its connection until it leaves."""
        try:
            self._serve(connection, Lines(connection))
        except TROUBLES:
            pass  # it is missing again

    def _serve(self, connection: socket.socket, lines: Lines) -> None:
        patience_s = BEATS * self.beat_s
        challenge = secrets.token_hex()
        lines.tell(challenge, patience_s)
        words, proof = lines.hear(patience_s, SHORT_BYTES)

        def say(**message: Any) -> None:
            lines.tell([message, self._proof(message, words)], patience_s)

        if not is_guest(words) or not is_same(self._proof([challenge], words), proof):
            return say(refused="another secret")  # which this guest cannot believe
        self.door.remove_unproven(connection)
        slot = words["slot"]
        reason = self._refusal(words)
        if reason and slot in self.missing:
            self.why[str(slot)] = " (%s)" % reason
        if reason or not self._admit(slot):
            return say(refused=reason or "slot %s waits already" % slot)
        try:
            pause_s = 0.5  # a guest that comes with the last ones needs no list
            while not self._is_open(connection, pause_s):
                say(missing=self.missing, why=self.why)
                lines.hear(patience_s, SHORT_BYTES)
                pause_s = self.beat_s
            say(go=True)
            lines.hear(patience_s, SHORT_BYTES)  # until it hangs up
        finally:
            self.missing.append(slot)

    def _is_open(self, connection: socket.socket, pause_s: float) -> bool:
        """Whether all may go; waits for that for `pause_s`. Raises EOFError if this guest leaves before."""
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.register(self.gate)
        seen = dict(poll.poll(pause_s * 1000))
        if seen and self.gate not in seen:
            raise EOFError
        return bool(seen)

    def _admit(self, slot: int) -> bool:
        """Whether the slot may come in; a process that was killed just now may not have been noticed yet."""
        for _ in range(10):
            with self.lock:
                if slot in self.missing and not self.is_over:
                    self.missing.remove(slot)
                    self.why.pop(str(slot), None)
                    return True
            time.sleep(POLL_S)
        return False

    def _visit(self) -> None:
        patience_s = BEATS * self.beat_s
        with socket.create_connection(self.place, patience_s) as connection:
            lines = Lines(connection)
            words = {word: self.facts[word] for word in ("name", "nodes", "generation", "slot")}
            words["nonce"] = secrets.token_hex()
            # In a list, so that no false slot 0 can choose a challenge whose proof it could then use.
            proof = self._proof([lines.hear(patience_s, SHORT_BYTES)], words)
            lines.tell([words, proof], patience_s)
            message = self._believed(lines.hear(patience_s), words)
            while "missing" in message:
                self.trouble, self.missing, self.why = "", message["missing"], message["why"]
                self._look_at_the_clock()
                lines.tell(0, patience_s)
                message = self._believed(lines.hear(patience_s), words)
        if "refused" in message:
            raise NotMet(REFUSED, "slot 0 refused this node: %s" % printable(message["refused"]))
        if message.get("go") is not True:
            raise ValueError("it does not speak as a barrier does")

    def _believed(self, answer: Any, words: Dict[str, Any]) -> Dict[str, Any]:
        """What slot 0 says. Raises ValueError where it does not prove the secret, or says what no slot 0 says."""
        message, proof = answer if isinstance(answer, list) and len(answer) == 2 else (None, None)
        if not isinstance(message, dict) or not is_same(self._proof(message, words), proof):
            raise ValueError("what answers there does not know the secret that this node knows")
        if "missing" in message:
            missing, why = message["missing"], message.get("why")
            if not isinstance(missing, list) or not all(is_whole(slot, 0, HIGHEST) for slot in missing):
                raise ValueError("slot 0 sent no list of missing slots")
            if not isinstance(why, dict):
                raise ValueError("slot 0 sent no table of reasons")
            return {"missing": missing, "why": {slot: printable(reason) for slot, reason in why.items()}}
        return message

    def _refusal(self, words: Dict[str, Any]) -> str:
        """Why a guest with the right secret may not take part; nothing when it may."""
        for word in ("name", "nodes", "generation"):
            if words[word] != self.facts[word]:
                return "%s %s was offered, %s is here" % (word, words[word], self.facts[word])
        return "" if words["slot"] < self.facts["nodes"] else "there is no slot %s here" % words["slot"]

    def _proof(self, message: Any, words: Dict[str, Any]) -> str:
        return hmac.new(self.secret, json.dumps([message, words]).encode(), "sha256").hexdigest()


def is_same(proof: str, received: Any) -> bool:
    """Whether the other side's proof is the right one."""
    return is_text(received, LONGEST_PROOF) and hmac.compare_digest(proof.encode(), received.encode("utf-8", "replace"))


def is_guest(words: Any) -> bool:
    """Whether these are a guest's first words: each is there, and none is too long."""
    return (
        isinstance(words, dict)
        and is_text(words.get("name"), LONGEST_NAME)
        and all(is_whole(words.get(word), 0, HIGHEST) for word in ("nodes", "generation", "slot"))
        and is_text(words.get("nonce"), LONGEST_PROOF)
    )
