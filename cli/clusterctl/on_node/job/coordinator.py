"""The coordinator of a job: listens on the job's lowest slot, hears its members, tells them what to do."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from clusterctl.on_node.job.channel import Channel, NotTrusted
from clusterctl.on_node.job.coordination import LOST_AFTER_S, Coordination, directive_for
from clusterctl.on_node.job.launch import coordinator_of
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.member_words import checked_words, names_of

BEAT_S = 0.5
"""How often each side sends all it knows, even if nothing has changed."""
SILENT_S = 10.0
POLL_S = 0.02
LAST_WORDS_S = 5.0
"""How long members may still come to hear how the job ended."""
LAST_STAGE_S = 90
"""How long after the end the last stage of the node's guard is due."""
MOST_UNPROVEN = 64
"""Besides a place for each member: connections at a time that have not proved yet that they know the job's key."""


class Coordinator:
    """Runs in threads of its own until all members know how the job ended."""

    def __init__(self, layout: Layout, spec: dict[str, Any], key: bytes) -> None:
        self._layout = layout
        self._spec = spec
        self._names = names_of(spec)
        self._key = key
        self._coordination = Coordination(spec, time.monotonic())
        self._changed = threading.Condition()
        """Guards `_coordination`, `_informed`, `_connections`; notified of a new directive, to send it at once."""
        self._informed: set[int] = set()
        self._connections: dict[int, int] = {}
        self._unproven = Unproven(MOST_UNPROVEN + len(spec["members"]))
        family = socket.AF_INET6 if ":" in coordinator_of(spec)["address"] else socket.AF_INET
        self._door = socket.create_server(("", int(spec["channel_port"])), family=family, backlog=4096)

    def start(self) -> threading.Thread:
        """Begins; the thread that is returned ends when all is done."""
        threading.Thread(target=self._listen, daemon=True).start()
        thread = threading.Thread(target=self._decide, daemon=True)
        thread.start()
        return thread

    def _decide(self) -> None:
        over_s = None
        while True:
            self._unproven.shut_late(time.monotonic())
            with self._changed:
                before = self._coordination.directive
                now_s = time.monotonic()
                if self._coordination.look(now_s, time.time(), deadline_s(self._layout)) is not before:
                    self._changed.notify_all()
                if self._coordination.is_over:
                    over_s = now_s if over_s is None else over_s
                    if self._informed >= self._coordination.listeners or now_s - over_s > LOST_AFTER_S + LAST_WORDS_S:
                        self._door.close()
                        return
            # What members say is looked at this often, not at each word: a thousand members say 2,000 things a second.
            time.sleep(POLL_S)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._door.accept()
            except OSError:
                return  # it is over
            self._unproven.admit(connection)
            try:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            except RuntimeError:  # the machine has no thread left now: the member tries again
                self._unproven.dismiss(connection)
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        slot = None
        try:
            with connection:
                connection.settimeout(SILENT_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                channel = Channel(connection, self._key, is_coordinator=True)
                slot = self._take(channel.hear())
                self._unproven.dismiss(connection)
                threading.Thread(target=self._tell, args=(channel, connection, slot), daemon=True).start()
                while True:
                    self._take(channel.hear())
        except (OSError, EOFError, NotTrusted, LookupError, ValueError, RuntimeError):
            pass  # the member connects again, or is lost
        finally:
            self._unproven.dismiss(connection)
            if slot is not None:
                with self._changed:
                    self._connections[slot] -= 1
                    if not self._connections[slot]:
                        self._coordination.gone(slot, time.monotonic())

    def _take(self, received: dict[str, Any]) -> int:
        if (received["job"], received["attempt"]) != (self._spec["job"], self._spec["attempt"]):
            raise NotTrusted("another job or attempt")
        words = checked_words(received, self._names)
        slot = int(words["slot"])
        with self._changed:
            if words["is_first"]:
                self._connections[slot] = self._connections.get(slot, 0) + 1
            self._coordination.receive(slot, words)
            if words["knows_end"]:
                self._informed.add(slot)
        return slot

    def _tell(self, channel: Channel, connection: socket.socket, slot: int) -> None:
        sent: dict[str, Any] | None = None
        at_s = 0.0
        try:
            while connection.fileno() >= 0:
                with self._changed:
                    directive = self._coordination.directive
                    if directive is sent and time.monotonic() - at_s < BEAT_S:
                        self._changed.wait(BEAT_S)
                        continue
                channel.send(directive_for(slot, directive))
                sent, at_s = directive, time.monotonic()
        except (OSError, ValueError):
            pass  # the other thread of this connection has noticed, too


class Unproven:
    """The connections that have proved nothing yet: a bounded number at a time, each for a bounded time."""

    def __init__(self, most: int) -> None:
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._since_s: dict[socket.socket, float] = {}

    def admit(self, connection: socket.socket) -> None:
        """Waits for a place: one gets free within `SILENT_S`, since `shut_late` closes late connections."""
        self._places.acquire()
        with self._lock:
            self._since_s[connection] = time.monotonic()

    def dismiss(self, connection: socket.socket) -> None:
        """Gives the connection's place back, as it has proved itself or is gone; does nothing the second time."""
        with self._lock:
            if self._since_s.pop(connection, None) is not None:
                self._places.release()

    def shut_late(self, now_s: float) -> None:
        """Closes connections whose time is over; their readers see that the other side hung up."""
        with self._lock:
            late = [connection for connection, since_s in self._since_s.items() if now_s - since_s > SILENT_S]
        for connection in late:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has gone by itself


def deadline_s(layout: Layout) -> float | None:
    """When this node ends, by its own clock; None if it is not known.

    The node's guard counts by the uptime, since clocks are set and may be wrong, and so does this.
    """
    try:
        clock, due_s = layout.last_stage.read_text().split()
        if clock == "uptime":
            uptime_s = float((layout.root / "proc/uptime").read_text().split()[0])
            return time.time() + float(due_s) - LAST_STAGE_S - uptime_s
    except (OSError, ValueError, LookupError):
        pass  # a process machine has no guard
    try:
        return float(layout.deadline.read_text().split()[2])
    except (OSError, ValueError, LookupError):
        return None
