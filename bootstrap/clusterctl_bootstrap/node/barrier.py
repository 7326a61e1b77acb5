"""The start barrier: every slot waits at slot 0 until all are there, then all go on together.

Slot 0's own process listens while it waits, and the others come again until their time is over: so slot 0 may be
killed and begin anew, and no service has to run. Both speak JSON lines: the host a challenge, the guest who it is with
a proof that it knows the cluster's secret; from then on the host says who is missing, which the guest answers, and at
last `go` with a proof of its own.
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
from typing import Any, Dict, TextIO

from clusterctl_bootstrap.node.facts import FactsError, read_json
from clusterctl_bootstrap.node.trust import BARRIER_SECRET

FIRST_PORT = 20000
PORTS = 8000
"""Below what Linux gives to outgoing connections; a port for each name, so that several may stand at a time."""
BEAT_S = 2.0
NODES_A_SECOND = 100
"""What a busy slot 0 can surely tell who is missing: beyond 200 nodes it does so less often."""
BEATS = 3
"""A side that says nothing for so many is gone though its connection stands: frozen, or without power."""
POLL_S = 0.1
RETRY_S = 0.3
SAY_S = 10.0
LATE = 1
REFUSED = 3
TROUBLES = (OSError, EOFError, ValueError, LookupError, TypeError)


class NotMet(Exception):
    """The exit code, and why in words."""


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
        self.why: Dict[str, str] = {}  # slot → why it was refused, of those that are missing
        self.trouble = ""
        self.beat_s = max(BEAT_S, facts["nodes"] / NODES_A_SECOND)
        self.said = time.monotonic()
        self.until = self.said + timeout_s
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
                self.trouble = " (%s)" % e
            self._look_at_the_clock()
            time.sleep(RETRY_S)

    def _look_at_the_clock(self) -> None:
        """Says every now and then who is not there, as far as it is known here. Raises NotMet at the end."""
        now = time.monotonic()
        if now < min(self.until, self.said + SAY_S):
            return
        self.said = now
        cluster = self.facts["cluster"]
        names = [cluster + "-0" + self.trouble] * bool(self.trouble)
        names += ["%s-%d%s" % (cluster, slot, self.why.get(str(slot), "")) for slot in sorted(self.missing)]
        missing = ", ".join(names)
        if now >= self.until:
            raise NotMet(LATE, "not met in time, missing: %s" % missing)
        print("barrier %s: waits for %s" % (self.facts["name"], missing), file=sys.stderr, flush=True)

    def _host(self) -> None:
        try:
            door = socket.create_server(self.place, backlog=4096)
        except OSError as e:
            raise NotMet(REFUSED, "slot 0 waits here already: %s" % e) from e
        self.gate, opener = os.pipe()
        # It is shut before anybody goes: who comes for the next round finds the next host.
        with door:
            door.settimeout(POLL_S)
            while self.missing:
                self._look_at_the_clock()
                try:
                    threading.Thread(target=self._receive, args=door.accept()[:1], daemon=True).start()
                except OSError:
                    pass  # nobody came, or somebody left again
        self.is_over = True
        os.close(opener)
        while len(self.missing) < self.facts["nodes"] - 1:  # all have heard it, or are silent
            time.sleep(POLL_S)

    def _receive(self, connection: socket.socket) -> None:
        """One guest, from its knock until it leaves."""
        connection.settimeout(BEATS * self.beat_s)
        try:
            with connection, connection.makefile("rw") as file:
                challenge = secrets.token_hex()
                tell(file, challenge)
                words, proof = hear(file)
                slot = words["slot"]
                is_proven = hmac.compare_digest(self._proof([challenge], words), proof)
                reason = self._refusal(words) if is_proven else "another secret"
                if is_proven and reason:
                    self.why[str(slot)] = " (%s)" % reason
                if reason or not self._admit(slot):
                    return tell(file, {"refused": reason or "slot %s waits already" % slot})
                try:
                    pause_s = 0.5  # who comes with the last needs no list of the others
                    while not self._is_open(connection, pause_s):
                        tell(file, {"missing": self.missing, "why": self.why})
                        hear(file)
                        pause_s = self.beat_s
                    tell(file, {"go": self._proof("go", words)})
                    file.read()
                finally:
                    self.missing.append(slot)
        except TROUBLES:
            pass  # it is missing again

    def _is_open(self, connection: socket.socket, pause_s: float) -> bool:
        """Whether all may go; waits for it a while. Raises EOFError when this guest leaves before."""
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
        with socket.create_connection(self.place, BEATS * self.beat_s) as connection, connection.makefile("rw") as file:
            words = {word: self.facts[word] for word in ("name", "nodes", "generation", "slot")}
            words["nonce"] = secrets.token_hex()
            # In a list, so that no host can choose a challenge whose proof would be its own `go`.
            tell(file, [words, self._proof([hear(file)], words)])
            said = hear(file)
            while "missing" in said:
                self.trouble, self.missing, self.why = "", said["missing"], dict(said.get("why", ()))
                self._look_at_the_clock()
                tell(file, 0)
                said = hear(file)
        if "refused" in said:
            raise NotMet(REFUSED, "slot 0 refused this node: %s" % said["refused"])
        if said["go"] != self._proof("go", words):
            raise ValueError("another secret")

    def _refusal(self, words: Dict[str, Any]) -> str:
        for word in ("name", "nodes", "generation"):
            if words[word] != self.facts[word]:
                return "%s %s was offered, %s is here" % (word, words[word], self.facts[word])
        return ""

    def _proof(self, challenge: Any, words: Dict[str, Any]) -> str:
        return hmac.new(self.secret, json.dumps([challenge, words]).encode(), "sha256").hexdigest()


def tell(file: TextIO, words: Any) -> None:
    """Sends a line."""
    print(json.dumps(words), file=file, flush=True)


def hear(file: TextIO) -> Any:
    """The next line. Raises one of TROUBLES."""
    line = file.readline(1 << 16)
    if not line:
        raise EOFError("it hung up")
    return json.loads(line)
