"""Writes tests/golden/graph-*.json and the lists of tests/golden/examples anew.

`python -m tests.unit.infra.components.write_golden` runs it.

A change in it is a promise broken: a renamed resource is made anew, a changed trigger replaces every node that runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any  # configurations as YAML gives them

from tests.unit.infra.components.example_clusters import GOLDEN_EXAMPLES, NAMES, golden_file, listed, recorded
from tests.unit.infra.components.recorded_program import Recording, as_text, cluster_program, graph, record

FOLDER = Path(__file__).parents[3] / "golden"
GOLDEN = FOLDER / "graph-4-nodes.json"
GOLDEN_STORAGE = FOLDER / "graph-storage.json"
STORAGE: list[dict[str, Any]] = [
    {
        "mount": "/shared",
        "fsx-lustre": {
            "size": "4800GiB",
            "throughput": 250,
            "data_repository": {"bucket": "ml-datasets", "prefix": "runs/", "imports": [], "exports": ["new"]},
        },
    },
    {"mount": "/work", "efs": {"on_delete": "delete"}},
    {"mount": "/data", "s3": {"bucket": "ml-datasets", "prefix": "imagenet/"}},
]


def with_storage(**changes: Any) -> Recording:
    """The program of one node with storage of every kind that AWS makes."""
    return record(cluster_program(nodes=1, storage=STORAGE, **changes))


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(as_text(graph(record(cluster_program()))), encoding="utf-8")
    GOLDEN_STORAGE.write_text(as_text(graph(with_storage())), encoding="utf-8")
    GOLDEN_EXAMPLES.mkdir(exist_ok=True)
    for example in NAMES:
        golden_file(example).write_text(listed(recorded(example)), encoding="utf-8")
