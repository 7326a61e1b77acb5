"""The screen of `cost`: sums, rows, and all that makes them an estimate."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from clusterctl.cost.sighting import Observed
from clusterctl.cost.view import CostView, cost_json, cost_text

from tests.unit.cli.cost.paid_cluster import (
    ALL,
    REPLACED,
    a_view,
    an_inventory,
    at,
)
from tests.unit.cli.cost.reconcile_cases import seen


def test_where_aws_does_not_tell_of_reservations_the_sum_says_so() -> None:
    seen = CostView(
        inventory=an_inventory(),
        ledger=REPLACED,
        alive=ALL,
        cloud_trouble=None,
        now=at(3),
        reserved_trouble="UnauthorizedOperation: no",
    )
    assert (
        "  AWS did not say whether places are reserved (UnauthorizedOperation: no), so only what this computer knows "
        "is counted"
    ) in cost_text(seen).splitlines()
    cloud = json.loads(json.dumps(cost_json(seen)))["cloud"]
    assert (cloud["reserved"], cloud["reserved_trouble"]) == (None, "UnauthorizedOperation: no")


def test_the_screen_has_sums_rows_kinds_and_what_is_an_estimate() -> None:
    text = cost_text(a_view())
    first, *rest = text.splitlines()
    assert first.startswith("train · about $334.41 so far of $1000.00 · $111.47/h now · about $1337.64 when it ends")
    assert "2026-03-02 00:00 UTC" in first
    assert sum("train-1" in line for line in rest) == 2
    assert any("all nodes" in line and "$330.24" in line for line in rest)
    assert "an estimate from AWS's list prices of 2026-01; not in it: traffic, what the NAT gateway carries" in rest[-2]
    assert rest[-1] == "  ~ before a time: assumed from this computer's ledger; all other times are AWS's"


def test_a_rehearsal_says_that_its_money_is_simulated() -> None:
    text = cost_text(a_view(inventory=an_inventory(rehearsal=True, cluster="train@rehearsal")))
    assert "simulated money)" in text.splitlines()[0]
    assert "simulated money, at AWS's list prices" in text
    assert cost_json(a_view(inventory=an_inventory(rehearsal=True)))["simulated"] is True


def test_a_rehearsal_without_gpus_simulates_its_money_alone() -> None:
    text = cost_text(a_view(inventory=an_inventory(rehearsal=True, gpus_per_node=0)))
    assert text.splitlines()[0].endswith(" (rehearsed: simulated money)")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ledger": None}, "this computer has no ledger of the cluster"),
        ({"alive": None, "cloud_trouble": "no answer in 8 s"}, "AWS did not say what runs (no answer in 8 s)"),
        ({"alive": ALL | {"i-z"}}, "runs, but its cost is not counted in the deadline: i-z; next: clusterctl up"),
        ({"inventory": an_inventory(run=2)}, "this is run 2: disks, addresses and storage count from its start"),
        ({"inventory": an_inventory(prices_dated=None)}, "disks, addresses and storage are not counted"),
    ],
)
def test_whatever_makes_it_less_than_the_bill_is_said(changes: dict[str, object], words: str) -> None:
    assert words in cost_text(a_view(**changes))


def test_programs_read_the_same_sums() -> None:
    read = json.loads(json.dumps(cost_json(a_view())))
    assert read["estimated_cost"]["spent_usd"] == 334.41
    assert read["estimated_cost"]["at_deadline_usd"] == 1337.64
    assert read["kinds"]["node"]["usd_per_hour"] == 110.08
    assert [row["name"] for row in read["rows"]] == ["train-0", "train-1", "train-1", "addresses", "storage"]
    assert datetime.fromisoformat(read["at"]) == at(3).astimezone(UTC)


def test_programs_read_which_moments_aws_has_shown_and_which_are_of_the_ledger() -> None:
    observed = Observed(machines={"i-b": seen("i-b", 1, 0.1, 1)})
    read = json.loads(json.dumps(cost_json(a_view(observed=observed))))
    assert [(row["instance_id"], row["start"], row["end"]) for row in read["rows"] if row["kind"] == "node"] == [
        ("i-a", "assumed", None),
        ("i-b", "observed", "observed"),
        ("i-c", "assumed", None),
    ]
