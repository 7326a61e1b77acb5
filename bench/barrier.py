"""How long a thousand waiting nodes take to go on once the last one has come, over this computer's loopback."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

from bench.timing import CommandFailed
from bench.waiting import TIMEOUT_S, allow_many_connections, waits_of

WAITING = 1024
SLOTS_PER_PROCESS = 256
AIM = "< 1 s"


def table() -> list[tuple[str, ...]]:
    """Rows: who comes last, who waits, seconds from the last one's arrival until all have gone on, aim."""
    allow_many_connections()
    slot_0_last = [(1 + first, SLOTS_PER_PROCESS) for first in range(0, WAITING, SLOTS_PER_PROCESS)]
    slot_0_first = [
        (0, 1),
        *((first, min(SLOTS_PER_PROCESS, WAITING - first)) for first in range(1, WAITING, SLOTS_PER_PROCESS)),
    ]
    return [
        ("a node", f"{WAITING}, including slot 0", f"{_released_s(slot_0_first, last=WAITING):.2f} s", AIM),
        ("slot 0", f"{WAITING}, which try again and again", f"{_released_s(slot_0_last, last=0):.2f} s", AIM),
    ]


def _released_s(shares: list[tuple[int, int]], *, last: int) -> float:
    """Seconds from the arrival of slot `last` until all have gone on; `shares`: first slot and number of slots of each
    process.
    """
    address = f"127.99.{last % 250}.{1 + time.monotonic_ns() % 250}"
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(_waiting(address, first, count)) for first, count in shares]
        for child in children:
            if _line(child) != "waits":
                raise CommandFailed(f"{child.args!r}: it does not wait")
        (wait,) = waits_of(address, nodes=WAITING + 1, slots=[last])
        came = time.monotonic()
        wait.meet()
        return max([time.monotonic(), *(float(_line(child)) for child in children)]) - came


@contextlib.contextmanager
def _waiting(address: str, first: int, count: int) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "bench.waiting", address, str(WAITING + 1), str(first), str(count)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
            child.wait(timeout=TIMEOUT_S)
        finally:
            child.kill()


def _line(child: subprocess.Popen[str]) -> str:
    return "" if child.stdout is None else child.stdout.readline().strip()
