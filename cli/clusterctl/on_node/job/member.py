"""A supervisor's connection to the job's coordinator, made again whenever it is lost."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from clusterctl.on_node.job.channel import Channel, NotTrusted
from clusterctl.on_node.job.coordinator import BEAT_S, SILENT_S
from clusterctl.on_node.job.launch import coordinator_of

RETRY_S = 0.2


class MemberLink:
    """Tells the coordinator how this node is, and holds what the coordinator says to do."""

    def __init__(self, spec: dict[str, Any], slot: int, key: bytes) -> None:
        coordinator = coordinator_of(spec)
        self._place = (str(coordinator["address"]), int(spec["channel_port"]))
        self._key = key
        self._who = {"job": spec["job"], "attempt": spec["attempt"], "slot": slot}
        self._says: dict[str, Any] = {"phase": "ready"}
        self._changed = threading.Condition()
        self._heard_s = time.monotonic()
        self.directive: dict[str, Any] = {"do": "wait"}

    def start(self) -> None:
        """Keeps the connection, in a thread that ends with the process."""
        threading.Thread(target=self._keep, daemon=True).start()

    def say(self, **words: Any) -> None:
        """Adds to what this node says from now on, or changes it."""
        with self._changed:
            if any(self._says.get(name) != value for name, value in words.items()):
                self._says = {**self._says, **words}
                self._changed.notify_all()

    def silent_s(self) -> float:
        """For how long the coordinator has said nothing."""
        return time.monotonic() - self._heard_s

    def wait(self, timeout_s: float) -> None:
        """Waits until something may have changed, at most for this time."""
        with self._changed:
            self._changed.wait(timeout_s)

    def _keep(self) -> None:
        while True:
            try:
                with socket.create_connection(self._place, SILENT_S) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    channel = Channel(connection, self._key, is_coordinator=False)
                    channel.send({**self._who, **self._says, "is_first": True})
                    threading.Thread(target=self._tell, args=(channel, connection), daemon=True).start()
                    while True:
                        self._take(channel.hear())
            except (OSError, EOFError, NotTrusted, ValueError, RuntimeError):
                time.sleep(RETRY_S)

    def _take(self, directive: dict[str, Any]) -> None:
        with self._changed:
            self._heard_s = time.monotonic()
            if directive != self.directive:
                self.directive = directive
                self._changed.notify_all()

    def _tell(self, channel: Channel, connection: socket.socket) -> None:
        sent: dict[str, Any] | None = None
        at_s = 0.0
        try:
            while connection.fileno() >= 0:
                with self._changed:
                    says = self._says
                    if says is sent and time.monotonic() - at_s < BEAT_S:
                        self._changed.wait(BEAT_S)
                        continue
                channel.send({**self._who, **says})
                sent, at_s = says, time.monotonic()
        except (OSError, ValueError):
            pass  # the other thread of this connection has noticed, too
