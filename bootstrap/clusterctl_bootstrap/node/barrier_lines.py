"""JSON lines over a connection of the start barrier: each is heard whole within a time, and has to be short."""

import json
import socket
import time
from typing import Any

from clusterctl_bootstrap.node.received import parsed

MOST_BRACKETS = 8
"""The most in the longest line, which says who is missing, and why."""
LONGEST_BYTES = 65536
SHORT_BYTES = 1024
"""The longest line that is read from a peer without proof."""
AT_ONCE = 4096


class Lines:
    """Both directions of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rest = b""

    def tell(self, words: Any, within_s: float) -> None:
        """Sends a line. Raises OSError."""
        self.connection.settimeout(within_s)
        self.connection.sendall(json.dumps(words).encode() + b"\n")

    def hear(self, within_s: float, longest: int = LONGEST_BYTES) -> Any:
        """The next line. Raises EOFError, OSError, or ValueError for what is no line of a barrier."""
        until = time.monotonic() + within_s
        while b"\n" not in self.rest:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise OSError("it said nothing for %d s" % within_s)
            if len(self.rest) > longest:
                raise ValueError("it says too much")
            self.connection.settimeout(left_s)
            data = self.connection.recv(AT_ONCE)
            if not data:
                raise EOFError("it hung up")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            return parsed(line, longest, MOST_BRACKETS)
        except ValueError as e:
            raise ValueError("it does not speak as a barrier does") from e
