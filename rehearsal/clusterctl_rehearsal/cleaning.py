"""Removing a rehearsal without asking its region: what the kernel holds, what the store says."""

from __future__ import annotations

from pathlib import Path

from clusterctl_infra.names import NAME_TAG

from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.machines.driver import MachineDriver
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.owners import root_elsewhere
from clusterctl_rehearsal.machines.process import ProcessDriver
from clusterctl_rehearsal.region.journal import BILL_FILE
from clusterctl_rehearsal.region.process import cache_folder
from clusterctl_rehearsal.region.shares import Shares
from clusterctl_rehearsal.region.store import Store


def clean(home: RehearsalHome, *, cluster: str | None) -> list[str]:
    """Ends machines and networks of a cluster (None: of all in this home) and forgets its resources; a line for each.

    The region must not be running. Nothing is asked of it, so it works whatever became of its state. Machines of the
    same name that live in another home stay.
    """
    networks = _networks(home) if cluster is None else {cluster}
    forgotten = _forget(home, cluster)
    removed: list[str] = []
    for driver in _drivers(home):
        found = driver.found()
        for network in sorted(networks):
            if root_elsewhere(home.machines, network) is not None:
                continue
            removed += [f"ended {node} of {network}" for owner, node in found if owner == network]
            driver.clean(network)
    Shares(home.shares).keep_only(row.id for row in (Store(home.store).all() if home.store.is_dir() else []))
    if forgotten:
        removed.append(f"forgot {forgotten} resources")
    if cluster is None:
        (home.root / "faults.json").unlink(missing_ok=True)
        (home.root / BILL_FILE).unlink(missing_ok=True)
    return removed


def elsewhere(home: RehearsalHome) -> list[tuple[str, str, Path | None]]:
    """(cluster, node, folder of the other home's machines if there is one) of machines that are not this home's."""
    ours = _networks(home)
    found = sorted({machine for driver in _drivers(home) for machine in driver.found()})
    folders = {network: root_elsewhere(home.machines, network) for network, _ in found}
    return [(network, node, folders[network]) for network, node in found if network not in ours or folders[network]]


def _networks(home: RehearsalHome) -> set[str]:
    folders = {path.name for path in home.machines.iterdir() if path.is_dir()} if home.machines.is_dir() else set()
    rows = Store(home.store).all() if home.store.is_dir() else []
    return folders | {row.facts["network"] for row in rows if "network" in row.facts}


def _drivers(home: RehearsalHome) -> list[MachineDriver]:
    booted = NspawnDriver(root=home.machines, cache=cache_folder())
    every: list[MachineDriver] = [booted, ProcessDriver(root=home.machines)]
    return [driver for driver in every if driver.unusable() is None]


def _forget(home: RehearsalHome, cluster: str | None) -> int:
    if not home.store.is_dir():
        return 0
    store, count = Store(home.store), 0
    networks = {row.facts.get("network") for row in store.all() if row.tags.get(NAME_TAG) == cluster}
    ours = {row.id for row in store.all() if row.tags.get(NAME_TAG) == cluster}
    for row in store.all():
        is_part = bool(ours & set(row.refs)) or row.facts.get("network") in networks - {None}
        if cluster is None or row.id in ours or is_part:
            store.forget(row)
            count += row.is_live
    return count
