"""Capacity × access × network × storage: every combination of a cluster, and a few in which every pair meets.

`python -m tests.combinations` writes tests/golden/combinations.md anew.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any  # configurations as YAML gives them

TABLE = Path(__file__).parent / "golden" / "combinations.md"
VPC_ID, SUBNET_ID, SERVICES_ID = "vpc-0a1b2c3d4e5f67890", "subnet-0a1b2c3d4e5f67890", "subnet-0f1e2d3c4b5a69788"
PLACES_ID = "cr-0e5e7a7100000000a"
PUBLIC = {"mode": "public", "ssh_from": ["198.18.0.7/32"]}
AXES: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "capacity": {
        "on-demand": {},
        "spot": {"capacity": "spot", "caps": {"runtime": "4h", "price_usd_per_hour": 60}},
        "reservation": {"reservation": PLACES_ID},
        "capacity block": {"capacity_block": PLACES_ID},
    },
    "access": {
        "automatic addresses": {"access": PUBLIC, "instance_type": "p5.4xlarge"},
        "elastic addresses": {"access": PUBLIC, "instance_type": "p5.48xlarge"},
        "Session Manager": {"access": {"mode": "private"}, "instance_type": "p5.48xlarge"},
    },
    "network": {
        "own": {},
        "adopted": {
            "network": {
                "adopt": {"vpc_id": VPC_ID, "node_subnet_id": SUBNET_ID, "service_subnet_id": SERVICES_ID},
            },
        },
    },
    "storage": {
        "none": {},
        "EFS": {"storage": [{"mount": "/work", "efs": {}}]},
        "FSx": {"storage": [{"mount": "/shared", "fsx-lustre": {"size": "1200GiB"}}]},
        "S3": {"storage": [{"mount": "/data", "s3": {"bucket": "ml-datasets"}}]},
    },
}
"""Axis → value → what cluster.yaml says for it."""
Row = tuple[str, ...]
"""One value of each axis, in their order."""


def all_rows() -> tuple[Row, ...]:
    """Every combination."""
    return tuple(itertools.product(*AXES.values()))


def config_of(row: Row) -> dict[str, Any]:
    """What cluster.yaml says, without name and region."""
    parts = (AXES[axis][value] for axis, value in zip(AXES, row, strict=True))
    caps = {"caps": {"runtime": "4h"}}
    return copy.deepcopy({"nodes": 1, **caps, **{key: value for part in parts for key, value in part.items()}})


def engine_rows() -> tuple[Row, ...]:
    """The four that the real engine brings up: each value is in one, and both file systems are in an adopted network.

    In a network of the cluster's own, tests/integration/lifecycle brings up both: test_kept_storage.py, for example.
    """
    rows = all_rows()
    chosen: list[Row] = [
        ("on-demand", "Session Manager", "adopted", "FSx"),
        ("spot", "elastic addresses", "adopted", "EFS"),
    ]
    left = {value for row in rows for value in enumerate(row)} - {value for row in chosen for value in enumerate(row)}
    while left:
        best = max(rows, key=lambda row: len(left & set(enumerate(row))))
        chosen.append(best)
        left -= set(enumerate(best))
    return tuple(chosen)


def pairwise(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows in which every two values of different axes meet: always the one next that brings the most new pairs."""
    left = {pair for row in rows for pair in pairs_in(row)}
    chosen: list[Row] = []
    while left:
        best = max(rows, key=lambda row: len(left & pairs_in(row)))
        chosen.append(best)
        left -= pairs_in(best)
    return tuple(chosen)


def pairs_in(row: Row) -> frozenset[tuple[tuple[int, str], tuple[int, str]]]:
    """All pairs of values that meet in a row, each value with the number of its axis."""
    return frozenset(itertools.combinations(enumerate(row), 2))


def table_text(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(AXES) + " |", "|---" * len(AXES) + "|", *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table_text(pairwise(all_rows())), encoding="utf-8")
