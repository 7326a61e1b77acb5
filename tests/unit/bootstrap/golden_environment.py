"""Writes tests/golden/environment/ anew: `python -m tests.unit.bootstrap.golden_environment`.

The files of the last slot for the largest type of each GPU family: whole for two p5 nodes, digests for the others.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from clusterctl_bootstrap.birth import birth_json
from clusterctl_bootstrap.node.writing import write_environment, write_identity
from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import load_catalog

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, plan, routed

GOLDEN = Path(__file__).parents[2] / "golden" / "environment"
SIZES = (1, 2, 8, 256)
FILES = ("env", "env.list", "hostfile", "nccl.env", "slurm.env")
WHOLE = ("p5.48xlarge", 2)


def largest_types() -> list[InstanceType]:
    """The type with the most GPUs of each family that has any, by name."""
    catalog = load_catalog()
    rows = [row for row in map(catalog.instance_type, catalog.names()) if row is not None and row.gpu_count]
    largest = {row.family: row for row in sorted(rows, key=lambda row: (row.gpu_count, row.name))}
    return [largest[family] for family in sorted(largest)]


def node_files(kind: InstanceType, nodes: int) -> dict[str, str]:
    """File name → what the last of `nodes` such nodes writes."""
    efa_interfaces = sum(name != "interface" for _, _, name in kind.interfaces())
    fabric = "required" if efa_interfaces else "none"
    with tempfile.TemporaryDirectory() as folder:
        root = routed(born(Path(folder)))
        node = plan(
            nodes=nodes, slot=nodes - 1, rank=nodes - 1, gpus_per_node=kind.gpu_count, fabric=fabric, env={"MINE": "x"}
        )
        facts = json.loads(birth_json(node, agent="0123456789ab"))
        write_identity(root, facts)
        write_environment(root, facts, FakeOutside())
        return {name: (root / "etc/clusterctl" / name).read_text() for name in FILES}


def digests(kind: InstanceType) -> dict[str, dict[str, str]]:
    """Number of nodes → file → the beginning of its SHA-256."""
    found = {}
    for nodes in SIZES:
        files = node_files(kind, nodes)
        found[str(nodes)] = {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in files.items()}
    return found


def whole_files() -> dict[str, str]:
    """The files that are kept whole."""
    kind = next(kind for kind in largest_types() if kind.name == WHOLE[0])
    return node_files(kind, WHOLE[1])


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    everything = {kind.name: digests(kind) for kind in largest_types()}
    (GOLDEN / "digests.json").write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    for name, text in whole_files().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
    print(GOLDEN)
