"""Some slots that wait at a start barrier, in one process: `python -m bench.waiting ADDRESS NODES FIRST COUNT`.

Prints `waits` once all of them do (slot 0: once only one other slot is missing), and at the end when the last one went
on, by the clock that all processes of this computer share.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from clusterctl_bootstrap.node.barrier import Wait

SECRET = b"a secret of the benchmark's own!"
TIMEOUT_S = 120
POLL_S = 0.01


def waits_of(address: str, *, nodes: int, slots: Sequence[int]) -> list[Wait]:
    """A wait for each slot, none begun."""
    known = {"cluster": "bench", "nodes": nodes, "generation": 1, "master_addr": address}
    return [Wait({**known, "slot": slot}, SECRET, "bench", TIMEOUT_S) for slot in slots]


def is_waiting(wait: Wait) -> bool:
    """Whether a slot has tried to reach slot 0; for slot 0, whether only one other slot is missing."""
    return len(wait.missing) == 1 if wait.facts["slot"] == 0 else bool(wait.trouble or wait.missing)


def allow_many_connections() -> None:
    """Raises the limit of open files: a connection for each node is more than the usual 1024."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def main(address: str, nodes: int, first: int, count: int) -> None:
    allow_many_connections()
    threading.stack_size(256 * 1024)
    waits = waits_of(address, nodes=nodes, slots=range(first, first + count))
    with ThreadPoolExecutor(count) as pool:
        ends = [pool.submit(_meet, wait) for wait in waits]
        while not all(is_waiting(wait) for wait in waits):
            time.sleep(POLL_S)
        print("waits", flush=True)
        print(max(end.result() for end in ends), flush=True)


def _meet(wait: Wait) -> float:
    wait.meet()
    return time.monotonic()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
