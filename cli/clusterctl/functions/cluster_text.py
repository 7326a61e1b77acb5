"""Writes the cluster.yaml of an app's own cluster, and words its problems in terms of the app's arguments. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any  # what `access` holds

from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.errors import ConfigError

from clusterctl.functions.needs import ClusterNeeds, Volume
from clusterctl.text.quantities import count

GIB, GB = 2**30, 10**9
FSX_FROM_GB = 1200
"""A smaller volume is put on EFS, which bills what is stored: FSx for Lustre begins at 1200 GiB."""
FSX_STEP_GIB, FSX_LEAST_GIB = 2400, 1200
SXM: Mapping[str, str] = {"V100": "sxm2", "A100": "sxm4", "H100": "sxm5", "H200": "sxm5", "B200": "sxm", "B300": "sxm"}
"""GPU with NVLink → its form factor (NVIDIA's data sheets of V100, A100, H100, H200; 2026-11); others are on PCIe."""
ARGUMENTS: Mapping[str, str] = {
    "name": "the name of the App",
    "region": "region",
    "access": "access",
    "nodes": "num_instances",
    "gpus": "gpu",
    "instance_type": "instance_type",
    "image": "image",
    "fabric": "internode_interconnect",
    "storage": "volumes, mounts",
    "caps.price_usd_per_hour": "max_price_per_hour",
    "caps.budget_usd": "budget_usd",
    "caps.runtime": "max_run_time_hours",
    "caps.idle": "idle",
}
"""Path in cluster.yaml → the argument that it was written from."""


@dataclass(frozen=True, kw_only=True)
class AppCluster:
    """An app's own cluster, as the App describes it."""

    name: str
    region: str
    access: Mapping[str, Any] = field(default_factory=dict)
    """The value of `access` in cluster.yaml."""
    idle: str = "15m"
    is_rehearsal: bool = False


def cluster_text(cluster: AppCluster, needs: ClusterNeeds) -> str:
    """The text of cluster.yaml. JSON is YAML, so every value is written as JSON."""
    rows: dict[str, object] = {"name": cluster.name, "region": cluster.region, "nodes": needs.num_instances}
    named = {"gpus": needs.gpu, "instance_type": needs.instance_type, "image": needs.image, "fabric": needs.fabric}
    rows |= {key: value for key, value in named.items() if value is not None}
    rows["access"] = dict(cluster.access)
    if storage := [*map(_file_system, needs.volumes), *_buckets(needs)]:
        rows["storage"] = storage
    rows["caps"] = _caps(cluster, needs)
    lines = [
        f"# Written for the functions of App({json.dumps(cluster.name)}), and anew when their arguments change.",
        "# What is changed here by hand is lost then. Every key is in docs/config.md.",
    ]
    for key, value in rows.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {_json(row)}" for row in value)]
        elif key == "caps" and isinstance(value, dict):
            lines += ["caps:", *(f"  {cap}: {_json(limit)}" for cap, limit in value.items())]
        else:
            lines.append(f"{key}: {_json(value)}")
    return "\n".join(lines) + "\n"


def lustre_gib(size_gb: int) -> int | None:
    """The size of the smallest file system of FSx for Lustre that holds `size_gb`; None if EFS is used instead."""
    if size_gb < FSX_FROM_GB:
        return None
    wanted = math.ceil(size_gb * GB / GIB)
    return FSX_LEAST_GIB if wanted <= FSX_LEAST_GIB else math.ceil(wanted / FSX_STEP_GIB) * FSX_STEP_GIB


def substitutes(needs: ClusterNeeds) -> Iterator[str]:
    """A line for each argument that AWS has no exact match for, which says what is used instead."""
    for volume in needs.volumes:
        yield f"{volume.path}: {_volume_line(volume)}"
    for mount in needs.mounts:
        yield f"{mount.path}: s3://{mount.bucket}/{mount.prefix}, read-only"
    if (needs.fabric_word or "").lower() == "infiniband":
        yield (
            "internode_interconnect: AWS has EFA instead of InfiniBand: NCCL reaches it through aws-ofi-nccl, and "
            "its NCCL_IB_… variables do nothing"
        )
    if needs.priority is not None:
        yield f"priority={needs.priority!r}: AWS sells no priority; these are on-demand machines"
    if needs.left_out_image is not None:
        yield f"image={needs.left_out_image!r} is left out: functions run in the nodes' own python3"


def link_problem(link: str, row: InstanceType) -> str | None:
    """Why a node of this type does not have this link between its GPUs; None if it has."""
    form = SXM.get(row.gpu_api_name or "", "pcie")
    has_nvlink = form != "pcie"
    if link in (form, "nvlink" if has_nvlink else "pcie") or (link == "sxm" and has_nvlink):
        return None
    has = f"{form.upper()} GPUs with NVLink" if has_nvlink else "GPUs on PCIe"
    return f"intranode_interconnect={link.upper()!r}: a {row.name} has {has}"


def by_arguments(error: ConfigError) -> ConfigError:
    """The error with each problem named by the argument it comes from: no person has written this cluster.yaml."""
    problems = [f"  {_argument(problem)}" for problem in error.problems] or [f"  {error.message}"]
    found = f"{count(len(problems), 'problem')}, nothing was started"
    return ConfigError(found, problems=problems, hint="docs/python.md")


def _argument(problem: str) -> str:
    text = re.sub(r"^\s*(line \d+\s+)?", "", problem)
    path, _, rest = text.partition(": ")
    plain = re.sub(r"\[\d+\]", "", path)
    parts = plain.split(".")
    for length in range(len(parts), 0, -1):
        if argument := ARGUMENTS.get(".".join(parts[:length])):
            below = ".".join(parts[length:])
            return f"{argument}{f' ({below})' if below else ''}: {rest}"
    return text


def _file_system(volume: Volume) -> dict[str, object]:
    size_gib = lustre_gib(volume.size_gb)
    return {"mount": volume.path, **({"efs": {}} if size_gib is None else {"fsx-lustre": {"size": f"{size_gib}GiB"}})}


def _buckets(needs: ClusterNeeds) -> Iterable[dict[str, object]]:
    for mount in needs.mounts:
        yield {
            "mount": mount.path,
            "s3": {"bucket": mount.bucket, **({"prefix": mount.prefix} if mount.prefix else {})},
        }


def _caps(cluster: AppCluster, needs: ClusterNeeds) -> dict[str, object]:
    runtime = None if needs.max_run_time_hours is None else f"{math.ceil(needs.max_run_time_hours * 60)}m"
    caps = {
        "price_usd_per_hour": needs.max_price_per_hour,
        "budget_usd": needs.budget_usd,
        "runtime": runtime,
        "idle": cluster.idle,
    }
    return {key: value for key, value in caps.items() if value is not None}


def _volume_line(volume: Volume) -> str:
    size_gib = lustre_gib(volume.size_gb)
    if size_gib is None:
        return f"{volume.name}, {volume.size_gb} GB: EFS, which has no size and bills what is stored"
    return f"{volume.name}, {volume.size_gb} GB: FSx for Lustre of {size_gib} GiB, which bills them full or empty"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
