"""A look at what AWS has of a cluster that costs by the hour, written down for `cost`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.instances import InstanceState, instances_of
from clusterctl.cloud.reservations import ReservationState, reservations_of
from clusterctl.cost.sighting_file import note_instances, note_reservations


def note_look(clients: Clients, path: Path, cluster_id: str) -> None:
    """Asks for both and writes down in `path` what is new. Raises CloudError."""
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
