"""Which clusters this computer knows: those count as the person's own."""

from __future__ import annotations

import contextlib
import shlex
from datetime import datetime
from pathlib import Path

from clusterctl_infra.outputs import Inventory, InventoryUnreadable, read_inventory

from clusterctl.engine.run_file import RunRecord, read_record
from clusterctl.engine.whereabouts import PROJECT_FILES
from clusterctl.home import Home
from clusterctl.reap.verdict import KnownHere
from clusterctl.system.processes import is_alive
from clusterctl.text.next_commands import down_again


def inventories_here(home: Home, *, rehearsal: bool) -> tuple[Inventory, ...]:
    """The inventories on this computer, of rehearsals or of clusters on AWS; one that cannot be read counts as none."""
    found: list[Inventory] = []
    for name in home.cluster_names:
        try:
            found.append(read_inventory(home.inventory_file(name)))
        except (InventoryUnreadable, OSError):
            continue
    return tuple(each for each in found if each.rehearsal == rehearsal and not each.is_hosts)


def known_here(inventories: tuple[Inventory, ...], home: Home) -> dict[str, KnownHere]:
    """Cluster id → what this computer knows of it."""
    return {
        inventory.cluster_id: known_of(inventory, read_record(home.run_file(inventory.cluster)))
        for inventory in inventories
    }


def known_of(inventory: Inventory, record: RunRecord | None) -> KnownHere:
    """What an inventory, and the record of a run that may be over, say of a cluster."""
    return KnownHere(
        cluster=inventory.cluster,
        deadline=datetime.fromisoformat(inventory.deadline),
        is_down=inventory.run_nodes_down,
        changing=None if record is None else _under_way(record),
    )


def forgetting(home: Home, cluster: str) -> str:
    """The command with which this computer forgets a cluster that was ended.

    That is `down` as long as the folder of the cluster's stack is there, else `forget`; `rm` of an inventory that
    cannot be read.
    """
    file = home.inventory_file(cluster)
    with contextlib.suppress(InventoryUnreadable, OSError):
        inventory = read_inventory(file)
        folder = inventory.stack_dir
        if folder is not None and all((Path(folder) / name).is_file() for name in PROJECT_FILES):
            return down_again(inventory)
        return f"clusterctl forget {cluster}"
    return f"rm {shlex.quote(str(file))}"


def _under_way(record: RunRecord) -> str | None:
    if not (record.is_of_this_boot and is_alive(record.cli_pid, record.cli_ticks)):
        return None
    return f"clusterctl {record.verb} (pid {record.cli_pid})"
