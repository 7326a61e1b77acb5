"""The simulated bill, from what the region did: by the second, full or empty, and after everything is gone."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # parameters

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.listing import bill_json, bill_text
from clusterctl_rehearsal.region.bill import ROOT_DISK, Billed, bill, billed_things
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.instances import transition_reason
from clusterctl_rehearsal.region.journal import INSTANCE, RESERVATION, Journal
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types import network

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import EVERYTHING, SmallRegion

CATALOG = load_catalog()
P5_USD_PER_S = 55.04 / 3600
MACHINE_USD_PER_S = P5_USD_PER_S + 100 * 0.08 / 730 / 3600
"""With its root disk, as large as the image's."""


def billed(id: str, began: float, ended: float | None, **facts: object) -> Billed:
    return Billed(
        **{  # type: ignore[arg-type]  # a table of facts
            "id": id,
            "token": INSTANCE,
            "region": "us-west-2",
            "cluster_id": "0123456789ab",
            "began_at": began,
            "ended_at": ended,
            "instance_type": "p5.48xlarge",
            "reservation": None,
            **facts,
        }
    )


def total(world: SmallRegion) -> float:
    rows = bill(billed_things(world.store.journal.rows(), world.store.live()), CATALOG, until=world.now)
    return sum(row.usd or 0.0 for row in rows)


def test_a_machine_bills_from_its_launch_to_its_end_and_not_after(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path)
    node = world.node()
    world.now += 100
    assert total(world) == pytest.approx(100 * MACHINE_USD_PER_S)
    world.region.instances.terminate(node)
    world.now += 10_000
    world.region.instances.watch()
    assert world.store.get(network.INSTANCE, node.id) is None, "AWS does not show it any more"
    assert total(world) == pytest.approx(100 * MACHINE_USD_PER_S)


def test_the_root_disk_that_a_machine_asked_for_bills_beside_it_and_is_gone_with_it() -> None:
    instance = billed("i-1", 10, 60, disk_gib=500)
    rows = bill([instance], CATALOG, until=120)
    assert [(row.id, row.kind, row.ended_at) for row in rows] == [("i-1", "Instance", 60.0), ("i-1", ROOT_DISK, 60.0)]
    assert rows[1].usd == pytest.approx(500 * 0.08 / 730 * 50 / 3600)


def test_a_machine_that_shuts_down_bills_no_more_from_the_second_that_its_transition_reason_names(
    tmp_path: Path,
) -> None:
    world = SmallRegion(tmp_path)
    node = world.node()
    world.now += 100
    ending = world.region.instances.shut_down(node)
    world.now += 500
    assert total(world) == pytest.approx(100 * MACHINE_USD_PER_S)
    world.region.instances.finish(ending)
    gone = world.store.get(network.INSTANCE, node.id)
    assert gone is not None
    named = datetime.fromtimestamp(node.created_at + 100, UTC)
    assert transition_reason(gone) == f"User initiated ({named:%Y-%m-%d %H:%M:%S} GMT)"
    assert total(world) == pytest.approx(100 * MACHINE_USD_PER_S)


def test_what_is_reserved_bills_full_or_empty_and_by_its_count_of_the_time(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path)
    held = world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION])
    world.now += 50
    world.region.update(CAPACITY_RESERVATION, held.id, {**held.inputs, "instanceCount": 3})
    world.now += 10
    world.region.delete(CAPACITY_RESERVATION, held.id)
    world.now += 1000
    assert total(world) == pytest.approx((2 * 50 + 3 * 10) * P5_USD_PER_S)


def test_a_place_with_a_machine_in_it_bills_once() -> None:
    held = billed("cr-1", 0, 100, token=RESERVATION, counts=((0, 2), (80, 1)))
    inside = billed("i-1", 10, 60, reservation="cr-1")
    beside = billed("i-2", 20, None)
    rows = {row.id: row.usd for row in bill([held, inside, beside], CATALOG, until=120)}
    assert rows["i-1"] == pytest.approx(50 * P5_USD_PER_S)
    assert rows["cr-1"] == pytest.approx((2 * 80 + 1 * 20 - 50) * P5_USD_PER_S)
    assert rows["i-2"] == pytest.approx(100 * P5_USD_PER_S)


def test_a_capacity_block_bills_its_price_once_when_it_is_bought(world: SmallRegion, client: Client) -> None:
    asked: dict[str, Any] = {"InstanceType": "p5.48xlarge", "InstanceCount": 2, "CapacityDurationHours": 24}
    offer = client.ec2("DescribeCapacityBlockOfferings", **asked)["CapacityBlockOfferings"][0]
    bought = {"CapacityBlockOfferingId": offer["CapacityBlockOfferingId"], "InstancePlatform": "Linux/UNIX"}
    block = client.ec2("PurchaseCapacityBlock", **bought)["CapacityReservation"]
    price = float(offer["UpfrontFee"])
    assert price == pytest.approx(55.04 * 2 * 24)
    for _ in range(3):  # scheduled, active, over
        world.now += 24 * 3600
        world.region.expire()
        assert total(world) == pytest.approx(price)
    assert client.ec2("DescribeCapacityReservations")["CapacityReservations"][0]["State"] == "expired"
    rows = bill(billed_things(world.store.journal.rows(), world.store.live()), CATALOG, until=0)
    assert [(row.id, row.usd) for row in rows] == [(block["CapacityReservationId"], 0.0)]


def test_a_machine_in_a_capacity_block_is_paid_with_the_block() -> None:
    inside = billed("i-1", 10, 60, reservation="cr-1", market="capacity-block", disk_gib=500)
    rows = {row.kind: row.usd for row in bill([inside], CATALOG, until=120)}
    assert rows["Instance"] == 0.0
    assert rows[ROOT_DISK] == pytest.approx(500 * 0.08 / 730 * 50 / 3600)


def test_the_sum_is_what_counting_every_second_gives() -> None:
    source = random.Random(7)
    held = billed("cr-1", 0, 200, token=RESERVATION, counts=((0, 2), (90, 4), (150, 1)))
    machines = []
    for number in range(12):
        began = source.randrange(180)
        machines.append(billed(f"i-{number}", began, began + source.randrange(1, 60), reservation="cr-1"))
    seconds = 0
    for at in range(200):
        count = [held_count for since, held_count in held.counts if since <= at][-1]
        running = sum(machine.began_at <= at < (machine.ended_at or 0) for machine in machines)
        seconds += max(running, count)
    seconds += sum(max(0, int(machine.ended_at or 0) - max(200, int(machine.began_at))) for machine in machines)
    rows = bill([held, *machines], CATALOG, until=500)
    assert sum(row.usd or 0 for row in rows) == pytest.approx(seconds * P5_USD_PER_S)


def test_an_unknown_price_is_unknown_in_the_sum_too() -> None:
    rows = bill([billed("i-1", 0, 10, instance_type="p99.large")], CATALOG, until=10)
    assert rows[0].usd is None
    assert "in all unknown (simulated" in bill_text(rows)
    assert "in all $0.00 (simulated; traffic and what is stored are not in it)" in bill_text([])


def test_a_region_killed_in_the_middle_of_an_end_bills_it_once(tmp_path: Path) -> None:
    world = SmallRegion(tmp_path)
    node = world.node()
    world.now += 10
    world.store.journal.follow(node, None, at=world.now)  # the line is written, the store did not follow
    with (tmp_path / "bill.jsonl").open("a") as file:
        file.write('{"id": "torn')
    again = Store(tmp_path / "store")
    rows = bill(billed_things(Journal(tmp_path / "bill.jsonl").rows(), again.live()), CATALOG, until=world.now + 5)
    assert [row.ended_at for row in rows if row.id == node.id and row.kind == "Instance"] == [None]
    assert sum(row.usd or 0 for row in rows) == pytest.approx(15 * MACHINE_USD_PER_S)


def test_a_program_reads_the_bill_s_times_as_those_of_all_other_json() -> None:
    rows = bill([billed("i-1", 10, 60.7), billed("i-2", 20, None)], CATALOG, until=120)
    document = bill_json(rows)
    assert document["simulated"] is True
    listed = document["rows"]
    assert isinstance(listed, list)
    assert [(row["started_at"], row["ended_at"]) for row in listed] == [
        ("1970-01-01T00:00:10+00:00", "1970-01-01T00:01:00+00:00"),
        ("1970-01-01T00:00:20+00:00", None),
    ]
