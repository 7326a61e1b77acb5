"""Every node finds the leader by its name and says which rank it is; the leader waits for all."""

import os
import socket
import sys
import time

PORT = 5000
WITHIN_S = 60


def name_of(rank: int) -> str:
    """The name under which every node knows the node of this rank."""
    parts = ("SATURN_INTERNAL_SUBDOMAIN", "SATURN_NAMESPACE")
    return ".".join(
        [f"{os.environ['SATURN_JOB_RUN']}-{rank}", *(os.environ[part] for part in parts), "svc.cluster.local"]
    )


def lead(scale: int) -> int:
    """Waits for every other node to come; returns 0."""
    missing = set(range(1, scale))
    with socket.create_server((socket.gethostbyname(name_of(0)), PORT)) as server:
        server.settimeout(WITHIN_S)
        while missing:
            visitor, _ = server.accept()
            with visitor:
                visitor.settimeout(WITHIN_S)
                missing.discard(int(visitor.recv(16)))
    print(f"all {scale} nodes found {name_of(0)}", flush=True)
    return 0


def follow(rank: int) -> int:
    """Tells the leader this rank; returns 0 once the leader knows."""
    until = time.monotonic() + WITHIN_S
    while True:
        try:
            with socket.create_connection((os.environ["SATURN_JOB_LEADER"], PORT), WITHIN_S) as leader:
                leader.sendall(str(rank).encode())
            return 0
        except ConnectionRefusedError:  # the leader has not begun yet
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    own = int(os.environ["SATURN_JOB_RANK"])
    sys.exit(follow(own) if own else lead(int(os.environ["SATURN_JOB_SCALE"])))
