"""What a job has to know of a node before it is started there."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping

from clusterctl.on_node.job import launch, lease, shared_storage
from clusterctl.on_node.job.container import present_engine
from clusterctl.on_node.job.layout import Layout, read_json
from clusterctl.on_node.job.take import gpus
from clusterctl.on_node.job.warned import is_reclaimed

PORTS = range(28000, 29000)
"""The ports of jobs: between the start barrier's and those that Linux gives to outgoing connections."""
LISTEN = "0A"


def node_facts(layout: Layout, job: str, program: str = "") -> Dict[str, Any]:
    """What a job has to know of this node before it is started; `program` is a path that it needs here, if any."""
    facts = read_json(layout.node_file)
    holders = lease.holders(layout)
    return {
        "slot": facts["slot"],
        "cluster_id": facts["cluster_id"],
        "generation": facts["generation"],
        "gpus": gpus(int(facts["gpus_per_node"])),
        "phase": _phase(layout),
        "shared": shared_storage.shared_mount(layout.root, facts),
        "mounts": [_mount_words(mount) for mount in facts.get("mounts") or []],
        "holders": holders,
        "engine": present_engine(),
        "is_reclaimed": is_reclaimed(layout.root, time.time()),
        "is_name_taken": layout.folder(job).exists(),
        "missing_program": missing_program(layout, program),
        "ports_in_use": sorted({*ports_in_use(layout.root), *ports_of_jobs(layout, holders)}),
        "free_bytes": shutil.disk_usage(_existing(layout.jobs)).free,
    }


def _mount_words(mount: dict[str, Any]) -> Dict[str, Any]:
    return {key: mount[key] for key in ("path", "kind", "source", "writable")}


def missing_program(layout: Layout, program: str) -> str | None:
    """`program` if nothing is there; None if it is, or is on shared storage, where root may see less than the user.

    Raises ValueError where the path does not answer.
    """
    if not program or any(program.startswith(mount.rstrip("/") + "/") for mount in shared_storage.shared_paths(layout)):
        return None
    return None if shared_storage.present_paths((program,)) else program


def ports_in_use(root: Path) -> list[int]:
    """The ports in `PORTS` on which somebody listens."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (root / "proc/net" / name).read_text().splitlines()[1:]
        except OSError:
            continue  # there is none without IPv6
        found |= {int(line.split()[1].rpartition(":")[2], 16) for line in lines if line.split()[3] == LISTEN}
    return sorted(port for port in found if port in PORTS)


def ports_of_jobs(layout: Layout, holders: Iterable[Mapping[str, Any]]) -> set[int]:
    """The ports that other jobs here were given, though nothing may listen on them yet."""
    found: set[int] = set()
    for holder in holders:
        found |= set(holder.get("ports") or ())
        try:
            spec = read_json(layout.spec(holder["job"]))
            found |= {int(port) for port in launch.ports(spec)}
        except (OSError, ValueError, LookupError, TypeError):
            continue  # it is being prepared
    return found


def _phase(layout: Layout) -> str:
    try:
        return str(read_json(layout.root / "etc/clusterctl/status.json")["phase"])
    except (OSError, ValueError, LookupError):
        return "unknown"


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
