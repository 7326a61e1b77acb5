"""Slot 0's door: it keeps few connections that have proved nothing yet, and each for a short time.

Every user of every node may connect. If there are too many, the oldest one from the address with the most has to go, so
that a crowd on one node is in the way of that node alone.
"""

import contextlib
import socket
import threading
import time
from collections import Counter
from typing import Callable, Dict, Tuple

BACKLOG = 4096
POLL_S = 0.1
MOST_UNPROVEN = 64
"""How many unproven connections it keeps, besides one for each node of the cluster."""
PROVE_S = 5.0
CROWD_PAUSE_S = 0.0005
"""The pause after one that had to go, so that a crowd that comes again and again does not get a whole processor."""


class Door:
    """A listening socket, closed when its context is left. Raises OSError if the place is taken."""

    def __init__(
        self,
        place: Tuple[str, int],
        nodes: int,
        receive: Callable[[socket.socket], None],
        prove_s: float = PROVE_S,
    ) -> None:
        self.receive = receive
        self.prove_s = prove_s
        self.most = MOST_UNPROVEN + nodes
        self.lock = threading.Lock()
        self.unproven: Dict[socket.socket, Tuple[str, float]] = {}
        """Connection → its address, and since when it waits; the oldest first."""
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self.listening = socket.create_server(place, family=family, backlog=BACKLOG)
        self.listening.settimeout(POLL_S)

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, *error: object) -> None:
        self.listening.close()

    def look(self) -> None:
        """Accepts the next connection that comes within `POLL_S`, and closes those that have waited too long without
        proof.
        """
        try:
            connection, address = self.listening.accept()
            self._let_in(connection, address[0])
        except socket.timeout:
            pass
        except (OSError, RuntimeError):  # it left again; or no files or threads are left: others have to end first
            time.sleep(POLL_S)
        late = time.monotonic() - self.prove_s
        with self.lock:
            gone = [connection for connection, (_, since_s) in self.unproven.items() if since_s < late]
        for connection in gone:
            self._send_away(connection)

    def remove_unproven(self, connection: socket.socket) -> None:
        """Takes the connection off the unproven ones, as it has proved itself or is gone."""
        with self.lock:
            self.unproven.pop(connection, None)

    def _let_in(self, connection: socket.socket, address: str) -> None:
        with self.lock:
            self.unproven[connection] = (address, time.monotonic())
            is_crowd = len(self.unproven) > self.most
            last = self._oldest_of_the_most() if is_crowd else connection
        if is_crowd:
            self._send_away(last)
            time.sleep(CROWD_PAUSE_S)
        try:
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
        except RuntimeError:
            self.remove_unproven(connection)
            connection.close()
            raise

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection:
                self.receive(connection)
        finally:
            self.remove_unproven(connection)

    def _oldest_of_the_most(self) -> socket.socket:
        """The oldest connection of the address that has the most unproven ones; the caller holds the lock."""
        crowd = Counter(address for address, _ in self.unproven.values()).most_common(1)[0][0]
        return next(connection for connection, (address, _) in self.unproven.items() if address == crowd)

    def _send_away(self, connection: socket.socket) -> None:
        """Closes the connection; the thread that reads from it sees that it hung up."""
        self.remove_unproven(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
