"""Clusters on spot machines: whole or not at all, without a reservation; whole again after AWS took one back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.store import Store

from tests.integration.ready_clusters import ReadyClusters
from tests.integration.region_access import clients_of
from tests.integration.rehearsed import Rehearsed, wait_until

CAP_USD_PER_HOUR = 20
"""Between the catalog's spot price of a p5.48xlarge in us-west-2, $12.69, and its price on demand, $55.04."""
CENT = 0.01
CAPS = {"runtime": "1h", "price_usd_per_hour": CAP_USD_PER_HOUR}


@pytest.fixture
def spot(recorded: Rehearsed) -> Rehearsed:
    """Two nodes on spot machines that are only written down, not yet up."""
    recorded.write(machines="none", capacity="spot", caps=CAPS)
    return recorded


@pytest.fixture
def ready_spot(ready_clusters: ReadyClusters) -> Iterator[Rehearsed]:
    """Two nodes on spot machines, as a plain `up` left them."""
    with ready_clusters.restored(nodes=2, capacity="spot", caps=CAPS) as cluster:
        yield cluster


def machines(cluster: Rehearsed) -> list[dict[str, Any]]:
    """The instances of the region that live, as DescribeInstances shows them."""
    ec2 = clients_of(cluster.env).ec2
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    answer = ec2.describe_instances(Filters=alive)  # type: ignore[arg-type]  # a list of filters
    return [dict(row) for held in answer["Reservations"] for row in held["Instances"]]


def prices_in_reap(cluster: Rehearsed) -> list[float]:
    """What each machine costs a day, by `reap`."""
    found = json.loads(cluster.ok("reap", "--rehearse", "--region", "us-west-2", "--json"))
    things = [thing for row in found["clusters"] for thing in row["things"]]
    return [thing["usd_per_day"] for thing in things if thing["kind"] == "instance"]


def billed(cluster: Rehearsed, *, until: str) -> float:
    """What the region has billed for machines up to then, in US dollars."""
    rows = json.loads(cluster.ok("rehearse", "bill", "--json", "--until", until))["rows"]
    return sum(float(row["usd"]) for row in rows if row["kind"] == "Instance")


def taken_back(cluster: Rehearsed, node: str) -> None:
    """AWS has taken the node's machine: its notice has run out."""
    cluster.fault("interrupt", node, "1")
    id = cluster.instance_ids()[node]
    wait_until(lambda: all(row.id != id for row in cluster.resources()), what=f"{node} is gone", timeout_s=30)


def test_a_slot_that_aws_took_back_is_named_and_comes_back_alone(ready_spot: Rehearsed) -> None:
    assert {row["InstanceLifecycle"] for row in machines(ready_spot)} == {"spot"}
    assert list(Store(rehearsal_home(ready_spot.env).store).live(CAPACITY_RESERVATION)) == []
    assert prices_in_reap(ready_spot) == [pytest.approx(24 * 12.69, abs=1)] * 2
    before, (first, second) = ready_spot.instance_ids(), ready_spot.instance_ids()

    taken_back(ready_spot, second)
    note = ready_spot.nodes()[second]["note"]
    assert note == "AWS took this spot machine back (Server.SpotInstanceTermination)"
    seen = json.loads(ready_spot.ok("cost", "--json"))
    rows = [row for row in seen["rows"] if row["kind"] in ("node", "empty")]
    assert [(row["slot"], row["ended_at"] is None) for row in rows] == [(0, True), (1, False)]
    assert {row["usd_per_hour"] for row in rows} == {CAP_USD_PER_HOUR, 0.0}
    spent = seen["estimated_cost"]["machines_at_spot_usd"]
    assert 0 < spent == pytest.approx(billed(ready_spot, until=seen["at"]), abs=CENT)

    remade = ready_spot.run("up", str(ready_spot.folder))
    assert remade.exit_code == 0, remade.text
    assert "a spot p5.48xlarge costs $12.69 in us-west-2b now; counted at $20.00" in remade.text
    assert f"slot 1: {before[second]} is gone (terminated: AWS took this spot machine back" in remade.text
    after = ready_spot.instance_ids()
    assert (after[first] == before[first], after[second] == before[second]) == (True, False)
    a_down_cancels_no_request_of_a_machine_that_aws_took_long_ago(ready_spot)


def a_down_cancels_no_request_of_a_machine_that_aws_took_long_ago(spot: Rehearsed) -> None:
    taken_back(spot, f"{spot.name}-1")
    down = spot.run("down", str(spot.folder))
    assert down.exit_code == 0, down.text
    assert "at most about" in down.text
    assert "nodes       1/1" in down.text, "AWS deletes the request of the other after four hours"
    assert (machines(spot), spot.resources()) == ([], [])


def test_running_nodes_take_another_maximum_when_they_are_made_and_do_not_leave_spot(ready_spot: Rehearsed) -> None:
    ids = ready_spot.instance_ids()
    ready_spot.write(machines="none", caps={**CAPS, "price_usd_per_hour": 30})
    raised = ready_spot.run("up", str(ready_spot.folder))
    assert raised.exit_code == 0, raised.text
    assert "the maximum price of spot machines: takes effect when a node is replaced" in raised.text
    assert ready_spot.instance_ids() == ids

    ready_spot.write(machines="none", capacity="on-demand", caps={"runtime": "1h"})
    refused = ready_spot.run("up", str(ready_spot.folder))
    assert refused.exit_code == 2
    assert "capacity: spot → on-demand: fixed when the nodes are made" in refused.text
    there = ready_spot.resources()
    plain = ready_spot.pulumi("up", "--yes", "--skip-preview")
    assert plain.exit_code != 0
    assert "capacity: spot → on-demand: fixed when the nodes are made" in plain.text
    assert ready_spot.resources() == there, "a reservation beside spot machines would bill empty"


def test_a_machine_in_the_place_of_one_that_aws_took_back_is_asked_for_at_the_price_of_the_moment(
    ready_spot: Rehearsed,
) -> None:
    name, before = f"{ready_spot.name}-1", ready_spot.instance_ids()
    taken_back(ready_spot, name)
    ready_spot.write(machines="none", caps={**CAPS, "price_usd_per_hour": 10})
    too_low = ready_spot.run("up", str(ready_spot.folder))
    assert too_low.exit_code == 1
    assert "costs $12.69 in us-west-2b now, but the maximum is $10.00 (caps.price_usd_per_hour)" in too_low.text
    assert "slot 1" not in too_low.text, "it was refused before anything was changed"

    ready_spot.write(machines="none", caps=CAPS)
    replaced = ready_spot.run("replace", "--node", "1", "--yes")
    assert replaced.exit_code == 0, replaced.text
    assert "replaced" not in replaced.text, "AWS deletes the request of the old one, and nobody could cancel that"
    after = ready_spot.instance_ids()
    assert {key for key in after if after[key] != before[key]} == {name}
    assert len(machines(ready_spot)) == 2

    ready_spot.write(machines="none", caps=CAPS, settings={"capacity": {"p5.48xlarge": 1}})
    lost = ready_spot.run("replace", "--node", "0", "--yes")
    assert lost.exit_code == 1
    assert "Slot 0: it has no machine now; the others run on." in lost.stderr, "its row stays in the engine's state"
    assert len(machines(ready_spot)) == 1


@pytest.mark.parametrize(
    ("settings", "caps", "reason"),
    [
        ({"capacity": {"p5.48xlarge": 1}}, CAPS, "InsufficientInstanceCapacity: There is no Spot capacity available"),
        ({"quotas": {"spot_vcpus": 192}}, CAPS, "MaxSpotInstanceCountExceeded: Max spot instance count exceeded"),
        ({}, {**CAPS, "price_usd_per_hour": 10}, "costs $12.69 in us-west-2b now, but the maximum is $10.00"),
    ],
    ids=["capacity for one of two", "a quota for one of two", "a maximum below the spot price"],
)
def test_without_a_place_for_all_at_that_price_nothing_is_left(
    spot: Rehearsed, settings: dict[str, Any], caps: dict[str, Any], reason: str
) -> None:
    spot.write(machines="none", settings=settings, caps=caps)
    refused = spot.run("up", str(spot.folder))
    assert refused.exit_code == 1
    assert refused.text.count(reason) == 1, refused.text
    assert (machines(spot), spot.resources()) == ([], [])
    assert not (Path(spot.home) / "inventory" / f"{spot.name}@rehearsal.json").exists()
