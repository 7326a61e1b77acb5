"""Removing a rehearsal without asking its region: what the kernel holds, what the store says."""

from __future__ import annotations

from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.machines.driver import MachineDriver
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.process import ProcessDriver
from clusterctl_rehearsal.region.process import cache_folder
from clusterctl_rehearsal.region.store import Store


def clean(home: RehearsalHome, *, cluster: str | None) -> list[str]:
    """Ends machines and networks of a cluster (or of all) and forgets its resources; says each, one a line.

    The region must not be running. Nothing is asked of it, so it works whatever became of its state.
    """
    removed: list[str] = []
    records = _forget(home, cluster)
    for driver in _drivers(home):
        found = driver.found()
        networks = {network for network, _ in found} if cluster is None else {cluster}
        for network in sorted(networks):
            removed += [f"ended {node} of {network}" for owner, node in found if owner == network]
            driver.clean(network)
    if records:
        removed.append(f"forgot {records} resources")
    if cluster is None:
        (home.root / "faults.json").unlink(missing_ok=True)
    return removed


def _drivers(home: RehearsalHome) -> list[MachineDriver]:
    every: list[MachineDriver] = [
        NspawnDriver(root=home.machines, cache=cache_folder()),
        ProcessDriver(root=home.machines),
    ]
    return [driver for driver in every if driver.unusable() is None]


def _forget(home: RehearsalHome, cluster: str | None) -> int:
    if not home.store.is_dir():
        return 0
    store, count = Store(home.store), 0
    networks = {row.facts.get("network") for row in store.all() if row.tags.get("clusterctl:name") == cluster}
    ours = {row.id for row in store.all() if row.tags.get("clusterctl:name") == cluster}
    for row in store.all():
        is_part = bool(ours & set(row.refs)) or row.facts.get("network") in networks - {None}
        if cluster is None or row.id in ours or is_part:
            store.forget(row)
            count += 1
    return count
