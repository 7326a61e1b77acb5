"""Every node finds the leader by its name and says which rank it is; the leader waits for all.

Names count the ranks of the cluster, so the job needs the node that is the cluster's rank 0.
"""

import ipaddress
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


def refuse_other_leader() -> None:
    """Ends the program if the name of rank 0 belongs to another node than the job's first."""
    name, leader = name_of(0), os.environ["SATURN_JOB_LEADER"]
    if is_address(leader):
        sys.exit(
            f"this job's rank 0 is at {leader}, and may not be {name}: the nodes have another membership than the "
            "computer that started the job; clusterctl status on that computer says which"
        )
    if leader != name:
        sys.exit(
            f"{name} is the cluster's rank 0, and this job's is {leader}: run the job on all nodes, without --node"
        )


def is_address(leader: str) -> bool:
    """Whether `leader` is an address, which a job has instead of a name where it is not known whose the name is."""
    try:
        ipaddress.ip_address(leader)
    except ValueError:
        return False
    return True


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
    refuse_other_leader()
    own = int(os.environ["SATURN_JOB_RANK"])
    sys.exit(follow(own) if own else lead(int(os.environ["SATURN_JOB_SCALE"])))
