"""Where the machines of a cluster stand in AWS's network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any  # answers of botocore's

from clusterctl.cloud.answers import pages_by_token
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.refusal import aws_errors

ASKING = "asking where the machines stand in the network"
IDS_A_CALL = 100
"""As many as DescribeInstanceTopology takes by id (EC2 API reference, checked 2026-11)."""
MOST_PAGES = IDS_A_CALL
"""The most pages of one call: as many as machines are asked about, since a page without a machine is of no use."""
ATTEMPTS = 3
PAUSE_S = 3.0
"""EC2 answers late about machines that were just made ("eventual consistency", same page)."""


def network_paths(
    clients: Clients, instance_ids: Sequence[str], *, sleep: Callable[[float], None] = time.sleep
) -> Mapping[str, tuple[str, ...]]:
    """Instance id → the network nodes above it, from the top down; empty if AWS gives none. Raises CloudError.

    AWS gives none for types that it does not describe (G5, G6, …), and for machines that do not run. It is asked a few
    times, because it answers late about new machines.
    """
    found = _asked(clients, instance_ids)
    for _ in range(0 if clients.is_rehearsal else ATTEMPTS - 1):
        if all(found.values()):
            break
        sleep(PAUSE_S)
        found = _asked(clients, instance_ids)
    return found


def _asked(clients: Clients, instance_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = dict.fromkeys(instance_ids, ())
    with aws_errors(ASKING):
        for start in range(0, len(instance_ids), IDS_A_CALL):
            for page in _pages(clients, list(instance_ids[start : start + IDS_A_CALL])):
                found |= {row["InstanceId"]: tuple(row.get("NetworkNodes") or ()) for row in page["Instances"]}
    return found


def _pages(clients: Clients, ids: list[str]) -> Iterator[Any]:
    return pages_by_token(
        lambda **token: clients.ec2.describe_instance_topology(InstanceIds=ids, **token),
        f"{ASKING}, about {len(ids)} of them",
        most_pages=MOST_PAGES,
    )
