"""`clusterctl extend` on machines that run: the deadline moves on every layer, and what did not take it is named.

One cluster for all tests, in their order; its times are short and real, and the last test sees it end.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from tests.integration.recorded_stack import in_state
from tests.integration.rehearsed import CLUSTERCTL, STATE_ONCE, Rehearsed, alive_without_root, rehearsed, wait_until

TOLERANCE_S = 5
LAUNCHED_WITHIN_S = 60


@pytest.fixture(scope="module")
def brought_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rehearsed, timedelta]]:
    """Two process machines, ready, and how long that took: an `extend` takes about as long."""
    folder = tmp_path_factory.mktemp("extend")
    with rehearsed(folder, machines="process", nodes=2, access={"mode": "private"}) as made:
        began = time.monotonic()
        made.up()
        yield made, timedelta(seconds=round(time.monotonic() - began))


@pytest.fixture
def cluster(brought_up: tuple[Rehearsed, timedelta]) -> Rehearsed:
    return brought_up[0]


def on_nodes(cluster: Rehearsed) -> set[datetime]:
    """The deadlines that the nodes themselves know."""
    return {on_node(cluster, name) for name in cluster.instance_ids()}


def on_node(cluster: Rehearsed, name: str) -> datetime:
    """The deadline that a node knows, by the file on its disk."""
    return datetime.fromisoformat(json.loads(cluster.on_disk(name, "/etc/clusterctl/node.json"))["deadline"])


def outside(cluster: Rehearsed) -> set[datetime]:
    """The deadlines that AWS knows: of the schedule and of the reservation, in the engine's state."""
    rows = in_state(cluster)
    schedule = next(row for row in rows if row["type"] == "aws:scheduler/schedule:Schedule")["inputs"]
    reservation = next(row for row in rows if row["type"].endswith(":CapacityReservation"))["inputs"]
    fires = datetime.fromisoformat(schedule["scheduleExpression"][3:-1]).replace(tzinfo=UTC)
    return {fires, datetime.fromisoformat(reservation["endDate"])}


def settings(cluster: Rehearsed) -> dict[str, str]:
    read = yaml.safe_load((cluster.folder / "Pulumi.dev.yaml").read_text())
    return dict(read["config"])


def test_later_moves_it_on_every_layer_and_touches_nothing_else(cluster: Rehearsed) -> None:
    before, ids, starts = cluster.deadline(), cluster.instance_ids(), cluster.starts()
    later = json.loads(cluster.ok("extend", "2h", "--json"))
    wanted = before + timedelta(hours=2)
    assert datetime.fromisoformat(later["deadline"]) == wanted
    assert (later["simulated"], [row["taken"] for row in later["nodes"]]) == (True, [True, True])
    assert later["added_usd"] == pytest.approx(2 * (2 * (55.04 + 200 * 0.08 / 730) + 0.005 + 0.045), abs=0.01)
    assert on_nodes(cluster) == outside(cluster) == {wanted} == {cluster.deadline()}
    assert (cluster.instance_ids(), cluster.starts()) == (ids, starts)
    plain = cluster.pulumi("preview", "--expect-no-changes")
    assert plain.exit_code == 0, plain.text
    assert "extend)" in cluster.ok("status")


def test_a_budget_moves_it_to_where_it_is_spent_and_bounds_what_may_be_added(cluster: Rehearsed) -> None:
    before = cluster.deadline()
    cluster.ok("extend", "--budget", "25")
    by_budget = cluster.deadline()
    assert by_budget < before
    assert on_nodes(cluster) == outside(cluster) == {by_budget}
    cost = json.loads(cluster.ok("cost", "--json"))
    # The budget is counted from the run's start, cost from when the machines were launched.
    assert 25 - LAUNCHED_WITHIN_S * 110 / 3600 <= cost["estimated_cost"]["at_deadline_usd"] <= 25 + 2 * 110 / 3600
    planned = json.loads(cluster.ok("plan", str(cluster.folder), "--json"))
    assert planned["estimated_cost"]["at_deadline_usd"] == pytest.approx(25, abs=2 * 110 / 3600)
    status = cluster.status()
    later = json.loads(cluster.ok("cost", "--json"))
    until_now, soon = (answer["estimated_cost"]["spent_usd"] for answer in (cost, later))
    assert until_now < status["spent_usd"] <= soon + 2 * 110 / 3600
    refused = cluster.run("extend", "1h")
    assert refused.exit_code == 1, refused.text
    assert "the budget of $25.00 is spent at" in refused.stderr
    assert cluster.deadline() == by_budget
    too_little = cluster.run("extend", "--budget", "0.01")
    assert "a budget of $0.01 is below what" in too_little.stderr


def test_one_that_was_killed_is_done_again_and_not_added_to(cluster: Rehearsed) -> None:
    before = cluster.deadline()
    extend = ("extend", "20m", "--budget", "1000")  # the budget of the test before would refuse it
    steps_kept = {key: value for key, value in cluster.env.items() if key != STATE_ONCE}
    killed = subprocess.Popen([CLUSTERCTL, *extend], env=steps_kept, cwd=cluster.folder)
    try:
        # Its first engine run is over and the nodes are getting it, or have it, when the inventory has the new end.
        wait_until(lambda: cluster.deadline() != before, what="the new end is written", timeout_s=60)
    finally:
        killed.kill()
        killed.wait(timeout=10)
    assert "clusterctl:extended-from" in settings(cluster)
    status = cluster.run("status").stdout
    assert "an extend was interrupted: parts of the cluster may still end at" in status
    assert f"--cluster {cluster.name}@rehearsal" in status
    cluster.ok(*extend)
    wanted = before + timedelta(minutes=20)
    assert on_nodes(cluster) == outside(cluster) == {wanted}
    assert "clusterctl:extended-from" not in settings(cluster)


def test_a_node_that_did_not_take_it_is_named_with_what_that_means(cluster: Rehearsed) -> None:
    before = cluster.deadline()
    cluster.fault("freeze", f"{cluster.name}-1")
    done = cluster.run_unshown("extend", "10m", "--json")
    cluster.fault("thaw", f"{cluster.name}-1")
    assert done.exit_code == 4, "a node's trouble sets the exit code, although stdout cannot be written"
    named = rf"{cluster.name}-1: still ends at (\d{{4}}-\d\d-\d\d )?{before:%H:%M} UTC \("
    assert re.search(named, done.stderr), done.stderr
    wanted = before + timedelta(minutes=10)
    assert f"clusterctl extend --until {wanted:%Y-%m-%dT%H:%M:%SZ}" in done.stderr
    assert outside(cluster) == {wanted}
    assert on_nodes(cluster) == {before, wanted}
    cluster.ok("extend", "--until", f"{wanted:%Y-%m-%dT%H:%M:%SZ}")
    assert on_nodes(cluster) == {wanted}


def test_beside_a_machine_that_is_gone_the_others_live_past_the_old_deadline_and_end_at_the_new(
    brought_up: tuple[Rehearsed, timedelta],
) -> None:
    cluster, took = brought_up
    ids = cluster.instance_ids()
    cluster.fault("kill", f"{cluster.name}-1")
    near = datetime.now(UTC).replace(microsecond=0) + 4 * took + timedelta(seconds=10)
    extend_beside_a_gone_one(cluster, "--until", near.isoformat())
    assert outside(cluster) == {near} == {on_node(cluster, f"{cluster.name}-0")}, "an end that is earlier"
    later = near + timedelta(seconds=15)
    extend_beside_a_gone_one(cluster, "--until", later.isoformat(), "--budget", "1000")
    assert outside(cluster) == {later} == {on_node(cluster, f"{cluster.name}-0")}
    assert cluster.instance_ids() == ids, "nothing was made anew"
    end = later.timestamp()
    time.sleep(max(0.0, near.timestamp() + 3 - time.time()))  # time itself is what is waited for
    assert alive_without_root(cluster.name) == [f"{cluster.name}-0"]
    left_s = end - time.time() + TOLERANCE_S
    wait_until(lambda: alive_without_root(cluster.name) == [], what="the node is gone", timeout_s=left_s)
    assert abs(time.time() - end) <= TOLERANCE_S
    over = cluster.run("extend", "1h")
    assert over.exit_code == 1, over.text
    assert "ended at" in over.stderr
    down = cluster.run("down", str(cluster.folder))
    assert down.exit_code == 0, down.text
    assert "the budget of $1000.00 that extend gave it went with it" in down.stderr
    assert "clusterctl:" not in (cluster.folder / "Pulumi.dev.yaml").read_text()


def extend_beside_a_gone_one(cluster: Rehearsed, *arguments: str) -> None:
    """`clusterctl extend` while node 1 has no machine, which it names."""
    done = cluster.run("extend", *arguments)
    assert done.exit_code == 4, done.text
    assert f"{cluster.name}-1: has no machine (" in done.stderr
