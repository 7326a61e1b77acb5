"""The resources that a cluster uses but does not own: looked up before the engine runs, kept in the stack's config.

They are never changed, tagged or ended: they carry no `clusterctl:id`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # JSON values


@dataclass(frozen=True, kw_only=True)
class AdoptedCapacity:
    """A capacity reservation or a capacity block, as AWS described it."""

    reservation_id: str
    instance_type: str
    zone: str
    ends_at: datetime | None
    """None: it has no end date."""
    placement_group: str | None
    """The name of the placement group that it is in."""


@dataclass(frozen=True, kw_only=True)
class AdoptedNetwork:
    """A network that exists, and the addresses in it that the cluster's slots have."""

    vpc_id: str
    subnet_id: str
    subnet_cidr: str
    zone: str
    slot_cidr: str
    """The range of the slots' addresses, which was free when it was chosen, before the first node: slot i has its
    address i for as long as the cluster lives."""


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """Everything that was looked up; None for what the configuration does not adopt."""

    capacity: AdoptedCapacity | None = None
    network: AdoptedNetwork | None = None

    @property
    def zone(self) -> str | None:
        """The zone that the cluster has to be in; None if neither capacity nor network is adopted."""
        if self.capacity is not None:
            return self.capacity.zone
        return None if self.network is None else self.network.zone


NOTHING_ADOPTED = Adopted()


def adopted_to_json(adopted: Adopted) -> dict[str, Any]:
    """The facts as JSON; what was not looked up is left out."""
    rows: dict[str, Any] = {}
    if adopted.capacity is not None:
        ends_at = adopted.capacity.ends_at
        end = {"ends_at": None if ends_at is None else ends_at.isoformat()}
        rows["capacity"] = {**dataclasses.asdict(adopted.capacity), **end}
    if adopted.network is not None:
        rows["network"] = dataclasses.asdict(adopted.network)
    return rows


def adopted_from_json(rows: Mapping[str, Any]) -> Adopted:
    """The facts in `rows`; unknown keys are passed over. Raises KeyError, TypeError, ValueError."""
    capacity, network = rows.get("capacity"), rows.get("network")
    return Adopted(
        capacity=None if capacity is None else _capacity(capacity),
        network=None if network is None else AdoptedNetwork(**_known(AdoptedNetwork, network)),
    )


def _capacity(row: Mapping[str, Any]) -> AdoptedCapacity:
    ends_at = row["ends_at"]
    facts = {**_known(AdoptedCapacity, row), "ends_at": None if ends_at is None else datetime.fromisoformat(ends_at)}
    return AdoptedCapacity(**facts)


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: row[field.name] for field in dataclasses.fields(kind)}
