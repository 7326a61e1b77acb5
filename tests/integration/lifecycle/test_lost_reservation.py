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


def test_nodes_whose_reservation_has_ended_are_changed_extended_and_remade_without_one(recorded: Rehearsed) -> None:
    recorded.up()
    first, second = recorded.instance_ids().values()
    before, (held,) = recorded.deadline(), reserved(recorded)
    cancel(recorded)

    recorded.write(machines="none", caps={"runtime": "3h"})
    done = recorded.run("up", str(recorded.folder))
    assert done.exit_code == 0, done.text
    assert f"the reservation {held} has ended: running machines go on without it" in done.text
    assert list(recorded.instance_ids().values()) == [first, second]
    assert recorded.deadline() > before
    assert reserved(recorded) == []
    plain = recorded.pulumi("preview", "--expect-no-changes")
    assert plain.exit_code == 0, plain.text

    moved = recorded.deadline()
    recorded.ok("extend", "1h")
    assert recorded.deadline() == moved + timedelta(hours=1)

    recorded.fault("kill", f"{recorded.name}-1")
    recorded.up()
    now_first, now_second = recorded.instance_ids().values()
    assert (now_first, now_second != second, reserved(recorded)) == (first, True, [])

    for node in recorded.instance_ids():
        recorded.fault("kill", node)
    recorded.up()
    assert len(reserved(recorded)) == 1

    ids = recorded.instance_ids()
    cancel(recorded)
    recorded.ok("replace", "--node", "1")
    name = f"{recorded.name}-0"
    assert (recorded.instance_ids()[name], reserved(recorded)) == (ids[name], [])
