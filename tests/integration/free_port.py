"""A TCP port for one test, whatever else runs on this computer."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack

PORTS = range(16_384, 28_000)
"""Below those that Linux gives to outgoing connections (32768 and up): none of these takes a port before its test does,
and nobody who connects again and again to a port where nobody listens yet meets himself."""
TRIES = 20


def free_port(addresses: Sequence[str]) -> int:
    """A port that no process has on any of the IPv4 addresses; "" means all of this computer's."""
    for port in random.SystemRandom().sample(PORTS, TRIES):
        with ExitStack() as held:
            try:
                for address in addresses:
                    held.enter_context(socket.socket()).bind((address, port))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of {TRIES} ports is free on all of {addresses}")
