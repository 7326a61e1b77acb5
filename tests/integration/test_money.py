"""Caps, the price of `up`, and `cost`, on the real engine; machines are only written down."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from datetime import UTC, datetime
from typing import Any  # parsed JSON

import pytest
from clusterctl.cloud.deadline_resources import state_machines
from clusterctl.cloud.early_end import SINCE
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient

from tests.integration.kill_campaign import victims_of
from tests.integration.recorded_stack import INSTANCE, in_state
from tests.integration.region_access import clients_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, wait_until

NODE_USD_PER_HOUR = 55.04
A_SECOND_USD = 2 * 2 * NODE_USD_PER_HOUR / 3600 + 0.005
"""Of two places of each of two reservations: when AWS confirmed the end of one is known here to the second."""


def test_a_cap_refuses_with_both_numbers_before_anything_exists(recorded: Rehearsed) -> None:
    recorded.write(machines="none", caps={"total_usd_per_hour": 100})
    refused = recorded.run("up", str(recorded.folder))
    assert refused.exit_code == 2, refused.text
    assert "caps.total_usd_per_hour" in refused.stderr
    assert "cost $110.17" in refused.stderr
    assert "the cap is $100.00" in refused.stderr
    assert recorded.resources() == []


def test_what_counts_a_deadline_is_refused_by_a_clock_that_is_off_and_a_down_is_not(ready: Rehearsed) -> None:
    settings = {"clock_ahead_s": 90}
    ready.write(machines="none", settings=settings)
    with RegionClient(rehearsal_home(ready.env)) as region:  # as the next run's plugin would
        region.ask("settings", {"settings": {"machines": "none", **settings}})
    ids = ready.instance_ids()
    cluster_id = ready.inventory()["cluster_id"]
    for words in (
        ("up", str(ready.folder), "--nodes", "3"),
        ("extend", "1h"),
        ("replace", "--node", "1", "--yes"),
        ("reap", "--rehearse", "--region", "us-west-2", "--cluster", cluster_id, "--yes"),
    ):
        refused = ready.run(*words)
        assert refused.exit_code == 1, refused.text
        assert re.search(r"clock is 1 m (29|30|31) s behind AWS's \(at most 1 m is allowed\)", refused.stderr), (
            refused.text
        )
        assert "next: timedatectl set-ntp true" in refused.stderr
    assert ready.instance_ids() == ids
    ready.down()


def test_an_up_to_a_dearer_type_ends_by_the_budget_at_the_new_price_and_plan_counts_what_was_written_down(
    ready: Rehearsed,
) -> None:
    """At the old price the hour would end first."""
    ready.write(machines="none", instance_type="p6-b200.48xlarge", caps={"runtime": "1h", "budget_usd": 150})
    ready.up()
    assert ready.status()["deadline_reason"] == "budget"
    planned = json.loads(ready.ok("plan", str(ready.folder), "--json"))
    assert planned["deadline"]["at"] == ready.status()["deadline"]
    assert planned["estimated_cost"]["at_deadline_usd"] == pytest.approx(150, abs=0.2)


def test_cost_is_what_the_account_and_the_prices_say_also_after_a_resize(ready: Rehearsed) -> None:
    first = json.loads(ready.ok("cost", "--json"))
    assert first["simulated"] is True
    assert first["cloud"] == {"answered": True, "trouble": None, "reserved": True, "reserved_trouble": None}
    assert first["kinds"]["node"]["usd_per_hour"] == pytest.approx(2 * NODE_USD_PER_HOUR)
    assert_bill(first, nodes=2)
    made = json.loads(ready.up("--nodes", "3", "--json"))
    assert [node["slot"] for node in made["nodes"]] == [0, 1, 2]
    second = json.loads(ready.ok("cost", "--json"))
    assert second["kinds"]["node"]["usd_per_hour"] == pytest.approx(3 * NODE_USD_PER_HOUR)
    assert second["estimated_cost"]["spent_usd"] > first["estimated_cost"]["spent_usd"]
    assert_bill(second, nodes=3)
    output = ready.ok("cost")
    assert "simulated money" in output
    assert f"{ready.name}-2" in output


def test_cost_is_the_region_s_bill_to_the_cent_after_a_cut_off_up_and_a_replacement(recorded: Rehearsed) -> None:
    cut_off_with_a_machine(recorded)
    recorded.up()
    recorded.ok("replace", "--node", "1", "--yes")
    cost = json.loads(recorded.ok("cost", "--json"))
    bill = bill_rows(recorded, "--until", cost["at"])
    rows, billed = machines_in(cost), {row["id"]: row for row in bill if row["kind"] == "Instance"}
    ended = [row for row in billed.values() if row["ended_at"] is not None]
    assert len(ended) >= 2, "one of the up that was cut off, one that was replaced"
    assert any("in no ledger" in str(row["note"]) for row in rows.values())
    assert {id: row["spent_usd"] for id, row in rows.items()} == {
        id: pytest.approx(row["usd"], abs=0.005) for id, row in billed.items()
    }
    assert {(row["start"], row["end"]) for row in rows.values()} == {("observed", "observed"), ("observed", None)}
    empty = [row for row in cost["rows"] if row["kind"] == "empty"]
    assert {(row["start"], row["end"]) for row in empty} == {("observed", "observed")}
    reserved = sum(row["usd"] for row in bill if row["kind"] == "CapacityReservation")
    assert sum(row["spent_usd"] for row in empty) == pytest.approx(reserved, abs=A_SECOND_USD)
    down = recorded.run("down", str(recorded.folder))
    shown = re.search(r"it cost about \$(\d+\.\d\d) in all, by list prices \(simulated money\)", down.stderr)
    assert shown is not None, down.text
    counted = sum(row["usd"] for row in bill_rows(recorded))
    assert float(shown[1]) == pytest.approx(counted, abs=A_SECOND_USD)


def test_an_up_waits_for_an_end_that_is_under_way_and_makes_the_cluster_anew(ready: Rehearsed) -> None:
    before = set(ready.instance_ids().values())
    begin_an_idle_end(ready, wait_s=4)
    refused = ready.run("extend", "1h")
    assert refused.exit_code == 1, refused.text
    assert "is being ended by its state machine (idle)" in refused.stderr
    up = ready.run("up", str(ready.folder))
    assert up.exit_code == 0, up.text
    assert "waiting, 30 minutes at most" in up.stderr
    rows = ready.resources()
    machines = {row.id for row in rows if row.token.endswith(":Instance") and row.state == "running"}
    assert machines == set(ready.instance_ids().values())
    assert not machines & before
    assert sum(row.token.endswith(":CapacityReservation") for row in rows) == 1


def begin_an_idle_end(cluster: Rehearsed, *, wait_s: int) -> None:
    """What slot 0 does: it starts the state machine, which waits for those who still save."""
    clients = clients_of(cluster.env)
    (machine,) = state_machines(clients, cluster.inventory()["cluster_id"])
    name = datetime.now(UTC).strftime("idle" + SINCE)
    clients.sfn.start_execution(stateMachineArn=machine.id, name=name, input=json.dumps({"WaitSeconds": wait_s}))


def cut_off_with_a_machine(cluster: Rehearsed) -> None:
    """`up` is killed, with its engine, as soon as the region has a machine of it."""
    cluster.keep_steps()
    cluster.write(machines="process")  # takes a second to boot: the engine has not heard of it yet
    argv = [CLUSTERCTL, "up", str(cluster.folder)]
    store = rehearsal_home(cluster.env).store
    with (
        (cluster.folder.parent / "output.txt").open("w") as output,
        subprocess.Popen(
            argv, env=cluster.env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as child,
    ):
        wait_until(lambda: any(store.glob("Instance.*.json")), what="the first machine", timeout_s=120)
        for pid in victims_of("both", cluster, cli=child.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    cluster.write(machines="none")


def machines_in(cost: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Instance id → its row of `cost --json`."""
    return {row["instance_id"]: row for row in cost["rows"] if row["kind"] == "node" and row["instance_id"]}


def bill_rows(cluster: Rehearsed, *options: str) -> list[dict[str, Any]]:
    """The region's own bill."""
    rows: list[dict[str, Any]] = json.loads(cluster.ok("rehearse", "bill", "--json", *options))["rows"]
    return rows


def test_down_names_what_stays_and_ends_what_no_state_knows(recorded: Rehearsed) -> None:
    recorded.write(machines="none", storage=[{"mount": "/work", "efs": {}}])
    recorded.up()
    lost = next(row for row in in_state(recorded) if row["type"] == INSTANCE)
    forgotten = recorded.pulumi("state", "delete", lost["urn"], "--yes", "--target-dependents")
    assert forgotten.exit_code == 0, forgotten.text
    down = recorded.run("down", str(recorded.folder))
    assert down.exit_code == 0, down.text
    asked, _, done = down.stderr.partition("no node runs; network and storage are kept")
    for part in (asked, done):
        assert "/work (EFS, " in part
        assert "NAT gateway" not in part, "it goes with the nodes"
    assert f"ending instance {lost['id']}: it is in no Pulumi state" in down.stderr
    assert "AWS was asked again: nothing else bills" in done
    types = {row.token for row in recorded.resources()}
    assert not types & {INSTANCE, "aws:ec2/natGateway:NatGateway", "aws:ec2/eip:Eip"}


def assert_bill(cost: dict[str, object], *, nodes: int) -> None:
    """Every row is its price times its time, and the sums are theirs, to the cent."""
    rows, total = cost["rows"], cost["estimated_cost"]
    assert isinstance(rows, list)
    assert isinstance(total, dict)
    at = datetime.fromisoformat(str(cost["at"])).astimezone(UTC)
    assert sum(row["kind"] == "node" for row in rows) == nodes
    for row in rows:
        if row["ended_at"] is not None:  # a place before its first machine, the disks of another size
            assert (row["kind"] in ("empty", "disks"), row["usd_per_hour"]) == (True, 0)
            continue
        hours = (at - datetime.fromisoformat(row["started_at"])).total_seconds() / 3600
        assert row["spent_usd"] == pytest.approx(row["usd_per_hour"] * hours, abs=0.005)
    assert total["spent_usd"] == pytest.approx(sum(row["spent_usd"] for row in rows), abs=0.005)
    assert total["usd_per_hour"] == pytest.approx(sum(row["usd_per_hour"] for row in rows), abs=0.005)
