"""The file of what AWS said of a cluster: `observed/<cluster_id>.jsonl`, appended and never changed.

Each line is about a machine or a reservation.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.strict_json import NotAsExpected, parsed

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.cloud.reservations import ReservationState, reservations_of
from clusterctl.cost.reserved import (
    SeenReservation,
    ending,
    reservation_from_json,
    reservation_news,
    reservation_to_json,
    resizing,
    seen_reservations,
)
from clusterctl.cost.sighting import (
    Observed,
    SeenMachine,
    news,
    seen_machines,
    sighting_from_json,
    sighting_to_json,
)
from clusterctl.home import Home

T = TypeVar("T")


def read_seen(path: Path) -> dict[str, SeenMachine]:
    """Instance id → machine; lines that cannot be read are left out."""
    return seen_machines(sighting for row in _rows(path) if (sighting := _read(row, sighting_from_json)) is not None)


def read_reserved(path: Path) -> dict[str, SeenReservation]:
    """Reservation id → reservation; lines that cannot be read are left out."""
    return seen_reservations(
        sighting for row in _rows(path) if (sighting := _read(row, reservation_from_json)) is not None
    )


def read_observed(home: Home, ledger: Ledger | None, *, cluster_id: str, region: str) -> Observed:
    """The observed machines and reservations of the cluster, with list prices of those that are in no ledger."""
    path = home.observed_file(cluster_id)
    machines, reservations = read_seen(path), read_reserved(path)
    known = set() if ledger is None else {span.instance_id for span in ledger.spans}
    types = {
        machine.instance_type
        for id, machine in machines.items()
        if id not in known and machine.instance_type is not None
    }
    types |= set() if known else {reservation.instance_type for reservation in reservations.values()}
    if not types:
        return Observed(machines=machines, reservations=reservations)
    catalog = load_catalog(home.prices_file)
    prices = {name: catalog.price_usd_per_hour(name, region) for name in types}
    return Observed(machines=machines, reservations=reservations, usd_per_hour=prices)


def note_instances(path: Path, instances: Iterable[InstanceState], *, at: datetime) -> None:
    """Writes down what AWS's answer at the instant `at` adds to what is known.

    An error in writing is ignored, so that people can ask for a status even on a full disk: what is missing is assumed
    from the ledger, and shown as assumed.
    """
    _append(path, [sighting_to_json(sighting) for sighting in news(read_seen(path), instances, at=at)])


def note_reservations(path: Path, found: Iterable[ReservationState], *, at: datetime) -> None:
    """Writes down what is new of the cluster's reservations; one that AWS no longer shows has ended."""
    _append(path, [reservation_to_json(sighting) for sighting in reservation_news(read_reserved(path), found, at=at)])


def note_cancelled(path: Path, reservation_id: str, *, at: datetime) -> None:
    """Writes down that AWS agreed to cancel a reservation that was seen before."""
    known = read_reserved(path).get(reservation_id)
    if known is not None and known.ended_at is None:
        _append(path, [reservation_to_json(ending(known, at=at, ended_at=at))])


def note_resized(path: Path, reservation_id: str, places: int, *, at: datetime) -> None:
    """Writes down that AWS agreed to another size of a reservation that was seen before."""
    known = read_reserved(path).get(reservation_id)
    if known is not None and known.places[-1][1] != places:
        _append(path, [reservation_to_json(resizing(known, places, at=at))])


def _append(path: Path, rows: Iterable[dict[str, object]]) -> None:
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    if not text:
        return
    with contextlib.suppress(OSError):
        make_private_folder(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            stream.write(text.encode())  # one write: two commands at once do not tear each other's lines


def _rows(path: Path) -> list[Mapping[str, object]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    return [row for line in lines if (row := _row(line)) is not None]


def _row(line: str) -> Mapping[str, object] | None:
    try:
        row = parsed(line)
    except NotAsExpected:
        return None
    return row if isinstance(row, dict) else None


def _read(row: Mapping[str, object], read: Callable[[Mapping[str, object]], T]) -> T | None:
    """What `read` makes of a row; None for a broken row, or one of the other kind."""
    try:
        return read(row)
    except NotAsExpected:
        return None


def note_look(clients: Clients, path: Path, cluster_id: str) -> None:
    """Asks for the cluster's instances and reservations, and writes down in `path` what is new. Raises CloudError."""
    look_at_instances(clients, path, cluster_id)
    look_at_reservations(clients, path, cluster_id)


def look_at_instances(clients: Clients, path: Path, cluster_id: str) -> tuple[InstanceState, ...]:
    """The cluster's instances; what is new about them is written down. Raises CloudError."""
    found = instances_of(clients, cluster_id)
    note_instances(path, found, at=datetime.now(UTC))
    return found


def look_at_reservations(clients: Clients, path: Path, cluster_id: str) -> tuple[ReservationState, ...]:
    """The cluster's reservations; what is new about them is written down. Raises CloudError."""
    found = reservations_of(clients, cluster_id)
    note_reservations(path, found, at=datetime.now(UTC))
    return found
