"""Rows of `data/instance_types.json`, made from a dump of DescribeInstanceTypes. Run by `scripts/catalog`."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any  # AWS's JSON

SOURCE = "moto 5.2.5, moto/ec2/resources/instance_types.json.gz: a dump of EC2 DescribeInstanceTypes"
DATA = Path(__file__).parent / "data" / "instance_types.json"
DATED = "2026-10-27"
P_FAMILIES = ("p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")
G_FAMILIES = ("g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f", "g7", "g7e")
CPU_TYPES = ("t3.micro", "t3.medium", "m5.large", "c5.large", "c5n.18xlarge")
"""Cheap boxes for tests of everything but GPUs; c5n.18xlarge has EFA."""
GPU_NAMES: Mapping[tuple[str, int], str] = {
    ("V100", 32768): "V100 32GB",
    ("A100", 40960): "A100 40GB",
    ("A100", 81920): "A100 80GB",
    ("H100", 81920): "H100 80GB",
    ("H200", 144384): "H200 141GB",
    ("B200", 183359): "B200 180GB",
    ("B300", 275040): "B300 288GB",
    ("T4", 16384): "T4 16GB",
    ("T4g", 16384): "T4g 16GB",
    ("A10G", 22888): "A10G 24GB",
    ("L4", 22888): "L4 24GB",
    ("L40S", 45776): "L40S 48GB",
    ("RTX PRO 4500", 32768): "RTX PRO 4500 32GB",
    ("RTX PRO Server 6000", 98304): "RTX PRO 6000 96GB",
}
"""(name, MiB) as the API gives them → the name that people use."""
TOPOLOGY_LEVELS: Mapping[str, int] = {
    **dict.fromkeys(("p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "g6e", "g7e"), 3),
    **dict.fromkeys(("p6-b200", "p6-b300"), 4),
}
"""Levels of network nodes per family (EC2 User Guide, ec2-instance-topology-prerequisites); AWS supports no topology
for the catalog's other families."""

EFA_GBPS: Mapping[str, float] = {"p6-b200": 3200.0, "p6-b300": 6400.0}
"""The bandwidth of a type's EFA interfaces together, where it is not the API's figure, which is for IP: the cards carry
more by EFA, or one of them has no EFA (EC2 User Guide, efa-acc-inst-types)."""


def main(argv: list[str]) -> int:
    """Writes the data file from the dump that is named. Returns the exit code: 2 if none is named, else 0."""
    if len(argv) != 2:
        sys.stderr.write("usage: scripts/catalog path/to/instance_types.json.gz (or the moto wheel that holds it)\n")
        return 2
    DATA.write_text(document(json.loads(gzip.decompress(_dump(Path(argv[1]))))), encoding="utf-8")
    return 0


def document(dump: Mapping[str, Mapping[str, Any]]) -> str:
    """The JSON text of the data file, one instance type a line."""
    rows = [row(dump[name]) for name in sorted(dump) if _wanted(name)]
    lines = ",\n".join("  " + json.dumps(each, separators=(", ", ": ")) for each in rows)
    return f'{{\n "source": {json.dumps(SOURCE)},\n "dated": {json.dumps(DATED)},\n "types": [\n{lines}\n ]\n}}\n'


def row(described: Mapping[str, Any]) -> dict[str, object]:
    """The fields of `InstanceType` for one type as DescribeInstanceTypes describes it."""
    network = described["NetworkInfo"]
    cards = network["NetworkCards"]
    per_card = {card["MaximumNetworkInterfaces"] for card in cards}
    if len(per_card) != 1:
        raise ValueError(f"{described['InstanceType']}: cards differ in their number of interfaces: {per_card}")
    return {
        "name": described["InstanceType"],
        "vcpus": described["VCpuInfo"]["DefaultVCpus"],
        "memory_mib": described["MemoryInfo"]["SizeInMiB"],
        **_gpus(described),
        "architecture": described["ProcessorInfo"]["SupportedArchitectures"][0],
        "network_cards": network["MaximumNetworkCards"],
        "max_efa_interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "max_interfaces_per_card": per_card.pop(),
        "network_gbps": EFA_GBPS.get(
            _family(described["InstanceType"]), sum(card["BaselineBandwidthInGbps"] for card in cards)
        ),
        "nvme_gb": described.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "usage_classes": sorted(described["SupportedUsageClasses"]),
        "topology_levels": TOPOLOGY_LEVELS.get(_family(described["InstanceType"]), 0),
        "placement_group_cluster": "cluster" in described["PlacementGroupInfo"]["SupportedStrategies"],
    }


def _gpus(described: Mapping[str, Any]) -> dict[str, object]:
    if "GpuInfo" not in described:
        return {"gpu_count": 0, "gpu_name": None, "gpu_memory_mib": 0, "gpu_api_name": None}
    (gpu,) = described["GpuInfo"]["Gpus"]
    api_name, memory_mib = gpu["Name"], gpu["MemoryInfo"]["SizeInMiB"]
    if gpu["Count"] == 0:  # a part of a GPU (g6f, gr6f): the API counts 0 and gives the part's memory
        name = f"{api_name} {round(memory_mib / 953.7)}GB part"
    else:
        name = GPU_NAMES[api_name, memory_mib]
    count = gpu["Count"] or gpu["LogicalGpuCount"]
    return {"gpu_count": count, "gpu_name": name, "gpu_memory_mib": memory_mib, "gpu_api_name": api_name}


def _dump(path: Path) -> bytes:
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as wheel:
        return wheel.read("moto/ec2/resources/instance_types.json.gz")


def _wanted(name: str) -> bool:
    return name in CPU_TYPES or _family(name) in P_FAMILIES + G_FAMILIES


def _family(name: str) -> str:
    return name.partition(".")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv))
