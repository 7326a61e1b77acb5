"""What spot machines cost at most: nothing is reserved for them, so nothing bills where none runs."""

from __future__ import annotations

import pytest
from clusterctl.cloud.instances import instance_state
from clusterctl.cost.cost_row import by_kind
from clusterctl.cost.estimate import cost_rows
from clusterctl.cost.sighting import Observed
from clusterctl.views.cost import MAXIMUM, CostView, cost_text, remarks
from clusterctl.views.status import money
from clusterctl_infra.ledger import Ledger

from tests.unit.cli.reconcile_cases import seen
from tests.unit.cli.test_cost import BORN, DEADLINE, a_span, an_inventory, at

SPOT = an_inventory(capacity="spot")
TWO = Ledger(spans=(a_span(0, "i-a", price=20), a_span(1, "i-b", price=20)))
REMADE = Ledger(spans=(a_span(0, "i-a", price=20), a_span(1, "i-b", 0, 4, price=20), a_span(1, "i-c", 4, price=20)))


def node_hours(account: Ledger, observed: Observed, *, alive: frozenset[str] | None, now_h: float) -> float:
    """What all machines and places together were paid for, in machine hours."""
    rows = cost_rows(SPOT, account, alive=alive, now=at(now_h), observed=observed, is_reserved=None)
    kinds = by_kind(rows)
    assert "empty" not in kinds
    return (kinds["node"].spent_usd or 0) / 20


def test_a_machine_that_was_taken_back_bills_no_more_though_its_account_goes_on() -> None:
    observed = Observed(machines={"i-b": seen("i-b", 1, 0, 2)})
    assert node_hours(TWO, observed, alive=frozenset({"i-a"}), now_h=5) == pytest.approx(5 + 2)


def test_between_two_machines_of_a_slot_nothing_bills() -> None:
    observed = Observed(machines={"i-b": seen("i-b", 1, 0, 2), "i-c": seen("i-c", 1, 4)})
    assert node_hours(REMADE, observed, alive=frozenset({"i-a", "i-c"}), now_h=5) == pytest.approx(5 + 2 + 1)


@pytest.mark.parametrize(("now_h", "hours"), [(5.0, 5.0), (11.0, 11.0), (12.0, 12.0), (30.0, 12.0)])
def test_of_machines_whose_end_nobody_saw_all_is_counted_up_to_the_deadline(now_h: float, hours: float) -> None:
    assert node_hours(TWO, Observed(), alive=frozenset(), now_h=now_h) == pytest.approx(2 * hours)


def test_what_an_earlier_run_on_demand_had_reserved_is_counted_still() -> None:
    inventory = an_inventory(capacity="spot", run=2, started_at=at(6).isoformat())
    account = Ledger(spans=(a_span(0, "i-a", 0, 4), a_span(0, "i-b", 6, price=20)))
    observed = Observed(machines={"i-a": seen("i-a", 0, 0, 1)})
    rows = cost_rows(inventory, account, alive=frozenset({"i-b"}), now=at(7), observed=observed)
    assert (by_kind(rows)["empty"].spent_usd or 0) == pytest.approx(3 * 55.04)


def test_every_sum_is_said_to_be_the_most() -> None:
    view = CostView(inventory=SPOT, account=TWO, alive=frozenset({"i-a", "i-b"}), cloud_trouble=None, now=at(1))
    title = cost_text(view).splitlines()[0]
    assert title.startswith("train · at most $41.39 so far of $1000.00 · ")
    assert "at most $496.68 when it ends" in title
    assert MAXIMUM in remarks(view)
    assert money(SPOT, 1.0) == "at most $1.00 of $1000.00"
    assert money(an_inventory(), 1.0) == "about $1.00 of $1000.00"
    assert DEADLINE > BORN


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (
            "Server.SpotInstanceTermination",
            "Spot instance termination",
            "terminated: AWS took this spot machine back (Server.SpotInstanceTermination)",
        ),
        (
            "Server.SpotInstanceShutdown",
            "Spot instance shutdown",
            "terminated: AWS took this spot machine back (Server.SpotInstanceShutdown)",
        ),
        (
            "Client.UserInitiatedShutdown",
            "User initiated shutdown",
            "terminated: Client.UserInitiatedShutdown: User initiated shutdown",
        ),
    ],
)
def test_a_machine_that_aws_took_back_says_so(code: str, words: str, told: str) -> None:
    reason = {"Code": code, "Message": f"{code}: {words}"}
    row = {"InstanceId": "i-1", "State": {"Name": "terminated"}, "StateReason": reason, "LaunchTime": BORN}
    assert instance_state(row).told == told
