"""What a job is, in the words that its nodes read: from what was asked for and what its nodes say. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any  # JSON

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.jobs.launcher import Launch
from clusterctl.on_node.job.launch import PLAIN, owned_names

VERSION = 1
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
FIRST_PORT, PORTS = 28000, 1000
AUTO = "auto"
HINT = "clusterctl run --help"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What was typed, before any node was asked."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    name: str
    launch: Launch
    nproc: str
    """`auto`, or a number."""
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    timeout_s: float | None = None
    grace_s: float
    is_sudo: bool = False
    by: str


def default_name(command: Sequence[str], now: datetime, token: str) -> str:
    """`train-1123-101500-3f9a`: the program, when it was started, and four digits by chance for two of one second."""
    base = re.sub(r"[^a-z0-9]+", "-", command[0].rsplit("/", 1)[-1].removesuffix(".py").lower()).strip("-")
    return f"{base[:22].strip('-') or 'job'}-{now:%m%d-%H%M%S}-{token}"


def checked_name(name: str) -> str:
    """The name. Raises UsageError for one that is none."""
    if NAME.fullmatch(name) is None:
        raise UsageError(f"--name {name!r}: write small letters, digits and dashes, at most 40", hint=HINT)
    return name


def problems(request: JobRequest, said: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """What speaks against starting the job on these nodes; `said` is what each slot's node says of itself."""
    found = []
    generations = {said[node.slot]["generation"] for node in request.nodes}
    if len(generations) > 1:
        found.append(f"nodes have different memberships (generations {sorted(generations)}): clusterctl up")
    for node in request.nodes:
        answer = said[node.slot]
        told = f"Node {node.slot} ({node.name})"
        if answer["slot"] != node.slot or answer["cluster_id"] != request.inventory.cluster_id:
            found.append(f"{told}: another machine answers there")
        if answer["phase"] != "ready":
            found.append(f"{told}: not ready ({answer['phase']}): clusterctl status")
        if answer["is_name_taken"]:
            found.append(f"{told}: a job of the name {request.name} was there already: choose another --name")
        if answer["holder"] is not None:
            found.append(f"{told}: in use by the job {answer['holder']['job']}: clusterctl job show")
        gpus = int(answer["gpus"])
        if request.nproc != AUTO and gpus and int(request.nproc) > gpus:
            found.append(f"{told}: --nproc {request.nproc} is more than its {gpus} GPUs")
    return found


def make_spec(
    request: JobRequest, said: Mapping[int, Mapping[str, Any]], snapshot: Mapping[str, Any]
) -> dict[str, Any]:
    """The spec. Raises UsageError where a variable or the ports do not fit."""
    master_port, channel_port = free_ports(
        request.name, [port for node in request.nodes for port in said[node.slot]["ports_in_use"]]
    )
    spec = {
        "version": VERSION,
        "job": request.name,
        "attempt": 1,
        "cluster": request.inventory.cluster,
        "cluster_id": request.inventory.cluster_id,
        "generation": said[request.nodes[0].slot]["generation"],
        "by": request.by,
        "user": request.inventory.ssh.user,
        "launcher": request.launch.launcher,
        "launcher_options": list(request.launch.options),
        "command": list(request.launch.command),
        "members": _members(request, said),
        "master_port": master_port,
        "channel_port": channel_port,
        "environment": dict(request.environment),
        "secrets": list(request.secrets),
        "timeout_s": request.timeout_s,
        "grace_s": request.grace_s,
        "is_sudo": request.is_sudo,
        "snapshot": dict(snapshot),
    }
    refuse_owned_names(spec)
    return spec


def refuse_owned_names(spec: Mapping[str, Any]) -> None:
    """Raises UsageError for a variable that the job sets itself, or launchers would read."""
    owned = owned_names(spec)
    for name in (*spec["environment"], *spec["secrets"]):
        if name in owned or name.startswith("PET_"):
            raise UsageError(f"{name}: the job sets it itself, and another value would break it", hint=HINT)


def free_ports(job: str, in_use: Sequence[int]) -> tuple[int, int]:
    """Two ports that nobody listens on, on any node. Raises UsageError."""
    begin = zlib.crc32(job.encode()) % PORTS
    order = (FIRST_PORT + (begin + step) % PORTS for step in range(PORTS))
    free = [port for port in order if port not in set(in_use)]
    if len(free) < 2:
        raise UsageError(f"no two ports from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are free on all nodes of the job")
    return free[0], free[1]


def _members(request: JobRequest, said: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """In the order of their ranks."""
    return [
        {
            "slot": node.slot,
            "name": node.name,
            "address": node.private_ip,
            "gpus": int(said[node.slot]["gpus"]),
            "nproc": _nproc(request, int(said[node.slot]["gpus"])),
        }
        for node in sorted(request.nodes, key=lambda node: node.rank)
    ]


def _nproc(request: JobRequest, gpus: int) -> int:
    if request.nproc != AUTO:
        return int(request.nproc)
    return 1 if request.launch.launcher == PLAIN else max(1, gpus)
