"""The addresses behind a target's host, without holding up the other nodes while a name server thinks."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Generator

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.dialling import Address, looked_up
from clusterctl.ssh.fanout.event_loop import Waiting
from clusterctl.ssh.target import Target


def addresses(target: Target, ends_at: float) -> Generator[Waiting, bool, list[Address]]:
    """Where to dial, in the system's order; a plain address is not looked up. Raises NodeFailure."""
    try:
        return looked_up(target, socket.AI_NUMERICHOST)
    except socket.gaierror:
        return (yield from _asked(target, ends_at))


def _asked(target: Target, ends_at: float) -> Generator[Waiting, bool, list[Address]]:
    reader, writer = os.pipe()
    answer: list[list[Address] | socket.gaierror] = []

    def ask() -> None:
        try:
            answer.append(looked_up(target, 0))
        except socket.gaierror as e:
            answer.append(e)
        os.close(writer)  # wakes the task that waits

    threading.Thread(target=ask, daemon=True, name=f"look up {target.host}").start()
    try:
        yield Waiting(descriptor=reader, for_reading=True, until=ends_at)
        yield Waiting(until=0.0)
    finally:
        os.close(reader)
    if not answer:
        raise NodeFailure("unreachable", f"no name server answered for {target.host}")
    if isinstance(answer[0], socket.gaierror):
        raise NodeFailure("unreachable", f"{target.host} is no known host: {answer[0].strerror}")
    return answer[0]
