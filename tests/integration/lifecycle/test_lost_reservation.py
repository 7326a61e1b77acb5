"""A capacity reservation that ends before its nodes: they run on, and nothing is reserved beside them."""

from __future__ import annotations

from datetime import timedelta

from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.store import Store

from tests.integration.region_access import clients_of
from tests.integration.rehearsed import Rehearsed


def reserved(cluster: Rehearsed) -> list[str]:
    """The reservations that AWS has."""
    store = Store(rehearsal_home(cluster.env).store)
    return [row.id for row in store.live(CAPACITY_RESERVATION)]


def cancel(cluster: Rehearsed) -> None:
    """As somebody does by hand."""
    region = cluster.inventory()["region"]
    ec2 = clients_of(cluster.env, region).ec2
    for id in reserved(cluster):
        ec2.cancel_capacity_reservation(CapacityReservationId=id)


def test_nodes_whose_reservation_has_ended_are_changed_extended_and_remade_without_one(ready: Rehearsed) -> None:
    first, second = ready.instance_ids().values()
    before, (held,) = ready.deadline(), reserved(ready)
    cancel(ready)

    ready.write(machines="none", caps={"runtime": "3h"})
    done = ready.run("up", str(ready.folder))
    assert done.exit_code == 0, done.text
    assert f"the reservation {held} has ended: running machines go on without it" in done.text
    assert list(ready.instance_ids().values()) == [first, second]
    assert ready.deadline() > before
    assert reserved(ready) == []
    plain = ready.pulumi("preview", "--expect-no-changes")
    assert plain.exit_code == 0, plain.text

    moved = ready.deadline()
    ready.ok("extend", "1h")
    assert ready.deadline() == moved + timedelta(hours=1)

    ready.fault("kill", f"{ready.name}-1")
    ready.up()
    now_first, now_second = ready.instance_ids().values()
    assert (now_first, now_second != second, reserved(ready)) == (first, True, [])

    for node in ready.instance_ids():
        ready.fault("kill", node)
    ready.up()
    assert len(reserved(ready)) == 1

    ids = ready.instance_ids()
    cancel(ready)
    ready.ok("replace", "--node", "1")
    name = f"{ready.name}-0"
    assert (ready.instance_ids()[name], reserved(ready)) == (ids[name], [])
