"""Removes a rehearsal without asking its region, by what the kernel shows of it and what its store holds."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from clusterctl_infra.names import NAME_TAG

from clusterctl_rehearsal.home import RehearsalHome, cache_folder
from clusterctl_rehearsal.machines.driver import MachineDriver, MachineError
from clusterctl_rehearsal.machines.nspawn import NspawnDriver
from clusterctl_rehearsal.machines.owners import processes_of, root_elsewhere
from clusterctl_rehearsal.machines.process import ProcessDriver
from clusterctl_rehearsal.machines.processes import owner_id, send, wait_until_gone
from clusterctl_rehearsal.region.journal import BILL_FILE
from clusterctl_rehearsal.region.shares import Shares
from clusterctl_rehearsal.region.store import Store


def clean(home: RehearsalHome, *, cluster: str | None) -> list[str]:
    """Ends machines and networks of a cluster (None: of all in this home) and forgets its resources.

    Returns lines that say what was removed. The region must not be running: it is not asked, so this works
    whatever state it is in. Machines of another home's cluster of this name stay. Raises MachineError if a
    machine cannot be ended: then the cluster's records stay, too.
    """
    networks = _networks(home) if cluster is None else {cluster}
    _refuse_what_others_run(home, networks)
    removed: list[str] = []
    drivers = _drivers(home)
    for network in sorted(networks):
        if root_elsewhere(home.machines, network) is not None:
            continue
        removed += [
            f"ended {node} of {network}" for driver in drivers for owner, node in driver.found() if owner == network
        ]
        # First, since both kinds keep their files in one folder, which the clean-up of booted machines removes.
        ProcessDriver(root=home.machines).end(network)
        for driver in drivers:
            driver.clean(network)
    _end_what_is_left(home, networks)
    forgotten = _forget(home, cluster)
    Shares(home.shares).keep_only(row.id for row in (Store(home.store).all() if home.store.is_dir() else []))
    if forgotten:
        removed.append(f"forgot {forgotten} resources")
    if cluster is None:
        (home.root / "faults.json").unlink(missing_ok=True)
        (home.root / BILL_FILE).unlink(missing_ok=True)
        home.executions_file.unlink(missing_ok=True)
    return removed


def machines_elsewhere(home: RehearsalHome) -> list[tuple[str, str, Path | None]]:
    """(cluster, node, folder of the other home's machines if there is one) of machines that are not this home's."""
    ours = _networks(home)
    found = sorted({machine for driver in _drivers(home) for machine in driver.found()})
    folders = {network: root_elsewhere(home.machines, network) for network, _ in found}
    return [(network, node, folders[network]) for network, node in found if network not in ours or folders[network]]


def _networks(home: RehearsalHome) -> set[str]:
    """The networks that this home's folders, records or processes name: any of the three may be all that is left."""
    folders = {path.name for path in home.machines.iterdir() if path.is_dir()} if home.machines.is_dir() else set()
    rows = Store(home.store).all() if home.store.is_dir() else []
    running = {cluster for _, cluster in processes_of(home.machines)}
    return folders | {row.facts["network"] for row in rows if "network" in row.facts} | running


def _refuse_what_others_run(home: RehearsalHome, networks: set[str]) -> None:
    """Raises MachineError if another user runs a machine of these networks, which this user cannot end."""
    for process_id, network in processes_of(home.machines):
        owner = owner_id(process_id)
        if network in networks and owner is not None and os.geteuid() not in (0, owner):
            message = f"machines of {network} run as another user (process {process_id}): nothing was removed"
            raise MachineError(message, f"sudo clusterctl rehearse clean {network}")


def _end_what_is_left(home: RehearsalHome, networks: set[str]) -> None:
    """Kills processes that no driver knew, such as those of a driver that no longer works here. Raises MachineError."""
    for process_id, network in processes_of(home.machines):
        if network in networks:
            send(process_id, signal.SIGKILL)
            if not wait_until_gone(process_id):
                raise MachineError(f"a machine of {network} does not end", f"kill -9 {process_id}")


def _drivers(home: RehearsalHome) -> list[MachineDriver]:
    """The drivers that can end machines here. Ending process machines takes only signals, so their driver always can.

    That driver's `unusable` is not called: it runs a test, which also fails on a busy computer.
    """
    booted = NspawnDriver(root=home.machines, cache=cache_folder())
    process = ProcessDriver(root=home.machines)
    return [booted, process] if booted.unusable() is None else [process]


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
