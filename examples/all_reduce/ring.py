"""Sum one number per node around a ring, with nothing but Python's standard library.

Run it on all nodes at once. It reads only what a job and /etc/clusterctl/env give: NNODES, NODE_RANK and
CLUSTERCTL_HOSTFILE (a file with a line for each node, in the order of the ranks, that begins with its name). Rank r
contributes 2**r, so the sum is 2**NNODES - 1 only if every rank took part exactly once.
"""

import os
import socket
import sys
import time
from pathlib import Path

PORT = 29501
DEADLINE_S = 60.0


def main() -> int:
    """0 when the sum proves that all ranks took part, 1 otherwise."""
    nodes = int(os.environ["NNODES"])
    rank = int(os.environ["NODE_RANK"])
    right_name = name_of((rank + 1) % nodes)
    started = time.monotonic()
    with socket.create_server(("", PORT), backlog=1) as server:
        server.settimeout(DEADLINE_S)
        right = connect(right_name, started + DEADLINE_S)
        left, _ = server.accept()
        left.settimeout(DEADLINE_S)
        total = passing = 2**rank
        for _ in range(nodes - 1):
            right.sendall(passing.to_bytes(8, "big"))
            passing = int.from_bytes(receive(left, 8), "big")
            total += passing
    expected = 2**nodes - 1
    verdict = "all ranks took part" if total == expected else f"WRONG, expected {expected}"
    print(f"rank {rank} of {nodes} on {socket.gethostname()}: all-reduce sum {total}, {verdict}")
    return 0 if total == expected else 1


def name_of(rank: int) -> str:
    """The name of the node with this rank; the number in the name is its slot, which need not be the rank."""
    return Path(os.environ["CLUSTERCTL_HOSTFILE"]).read_text().splitlines()[rank].split()[0]


def connect(name: str, until: float) -> socket.socket:
    """A connection to the right neighbour, which may not be listening yet."""
    while True:
        try:
            return socket.create_connection((name, PORT), timeout=5)
        except OSError as e:
            if time.monotonic() > until:
                raise TimeoutError(f"{name}:{PORT} did not answer within {DEADLINE_S:.0f} s ({e})") from e
            time.sleep(0.05)


def receive(left: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes from the left neighbour."""
    data = b""
    while len(data) < count:
        chunk = left.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the left neighbour closed the ring")
        data += chunk
    return data


if __name__ == "__main__":
    sys.exit(main())
