"""What bills beside machines: disks, addresses, the gateway, storage, by the ledger or by the last `up`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from clusterctl_infra.ledger import Ledger, Standing, StandingKind
from clusterctl_infra.outputs import Inventory

from clusterctl.cost.cost_row import CostRow, cost_row

WAYS_OUT: Mapping[str, StandingKind] = {"elastic IP": "addresses", "NAT gateway": "gateway"}
"""The ways by which nodes reach the internet: kind in AWS → kind in the ledger. They end after the last machine."""


def standing_rows(
    inventory: Inventory,
    ledger: Ledger | None,
    *,
    over: Mapping[StandingKind, datetime],
    deadline: datetime,
    now: datetime,
) -> tuple[CostRow, ...]:
    """What bills until somebody ends it; `over`: kinds that no longer bill → since when, whatever the ledger says."""
    standing = _assumed(inventory) if ledger is None or not ledger.standing else ledger.standing
    return tuple(_row(_cut(charge, over.get(charge.kind)), deadline=deadline, now=now) for charge in standing)


def gone_with_machines(
    inventory: Inventory,
    machines: Sequence[CostRow],
    *,
    alive: frozenset[str] | None,
    ways_out: frozenset[StandingKind] | None,
) -> dict[StandingKind, datetime]:
    """The kinds of things that are gone because all machines are, and since when; empty while a machine lives.

    These are root disks, addresses that AWS gave with the machines, and elastic IPs and the NAT gateway unless they are
    in `ways_out`, which has those that AWS still has (None: it was not asked): they are ended some minutes after the
    last machine.
    """
    ends = [row.ended_at for row in machines]
    if alive != frozenset() or not ends or None in ends:
        return {}
    last = max(end for end in ends if end is not None)
    kinds: set[StandingKind] = {"disks", "addresses"} if inventory.addresses_go_with_machines else {"disks"}
    if ways_out is not None:
        kinds |= {kind for kind in WAYS_OUT.values() if kind not in ways_out}
    return dict.fromkeys(kinds, last)


def assumed_rates(inventory: Inventory) -> dict[StandingKind, float | None]:
    """What each kind costs an hour, as the last `up` said; None is unknown."""
    return {
        "disks": inventory.disks_usd_per_hour,
        "addresses": inventory.addresses_usd_per_hour,
        "gateway": inventory.gateway_usd_per_hour,
        "storage": inventory.storage_usd_per_hour,
    }


def _cut(charge: Standing, over_at: datetime | None) -> Standing:
    return (
        charge
        if over_at is None or charge.ended_at is not None
        else replace(charge, ended_at=max(over_at, charge.started_at))
    )


def _row(standing: Standing, *, deadline: datetime, now: datetime) -> CostRow:
    return cost_row(
        kind=standing.kind,
        name=standing.kind,
        started_at=standing.started_at,
        ended_at=standing.ended_at,
        usd_per_hour=standing.usd_per_hour,
        deadline=deadline,
        now=now,
    )


def _assumed(inventory: Inventory) -> tuple[Standing, ...]:
    """What is assumed if no ledger has it: the rates that the last `up` named, from the start of the run."""
    if inventory.prices_dated is None:  # written by a clusterctl that knew only the sum
        return ()
    began = datetime.fromisoformat(inventory.started_at)
    return tuple(
        Standing(kind=kind, started_at=began, ended_at=None, usd_per_hour=rate)
        for kind, rate in assumed_rates(inventory).items()
        if rate != 0
    )
