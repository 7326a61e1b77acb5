"""What spot machines cost at most: nothing is reserved for them, so nothing bills where none runs."""

from __future__ import annotations

import json

import pytest
from clusterctl.cloud.instances import instance_state
from clusterctl.cloud.spot_history import SpotPriceChange, spot_history
from clusterctl.cost.cost_row import CostRow, by_kind, cost_row
from clusterctl.cost.estimate import cost_rows
from clusterctl.cost.sighting import Observed, news, seen_machines, sighting_from_json, sighting_to_json
from clusterctl.cost.spot_bill import machines_at_spot_usd, spot_machines
from clusterctl.cost.view import MAXIMUM, CostView, cost_json, cost_text, remarks
from clusterctl.text.headline import money
from clusterctl_infra.ledger import Ledger
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cost.paid_cluster import BORN, DEADLINE, a_span, an_inventory, at
from tests.unit.cli.cost.reconcile_cases import seen

SPOT = an_inventory(capacity="spot")
TWO = Ledger(spans=(a_span(0, "i-a", price=20), a_span(1, "i-b", price=20)))
REMADE = Ledger(spans=(a_span(0, "i-a", price=20), a_span(1, "i-b", 0, 4, price=20), a_span(1, "i-c", 4, price=20)))


def node_hours(ledger: Ledger, observed: Observed, *, alive: frozenset[str] | None, now_h: float) -> float:
    """What all machines and places together were paid for, in machine hours."""
    rows = cost_rows(SPOT, ledger, alive=alive, now=at(now_h), observed=observed, is_reserved=None)
    kinds = by_kind(rows)
    assert "empty" not in kinds
    return (kinds["node"].spent_usd or 0) / 20


def test_a_machine_that_was_taken_back_bills_no_more_though_its_ledger_goes_on() -> None:
    observed = Observed(machines={"i-b": seen("i-b", 1, 0, 2, is_spot=True)})
    assert node_hours(TWO, observed, alive=frozenset({"i-a"}), now_h=5) == pytest.approx(5 + 2)


def test_between_two_machines_of_a_slot_nothing_bills() -> None:
    observed = Observed(machines={"i-b": seen("i-b", 1, 0, 2, is_spot=True), "i-c": seen("i-c", 1, 4, is_spot=True)})
    assert node_hours(REMADE, observed, alive=frozenset({"i-a", "i-c"}), now_h=5) == pytest.approx(5 + 2 + 1)


@pytest.mark.parametrize(("now_h", "hours"), [(5.0, 5.0), (11.0, 11.0), (12.0, 12.0), (30.0, 12.0)])
def test_of_machines_whose_end_nobody_saw_all_is_counted_up_to_the_deadline(now_h: float, hours: float) -> None:
    assert node_hours(TWO, Observed(), alive=frozenset(), now_h=now_h) == pytest.approx(2 * hours)


def test_what_an_earlier_run_on_demand_had_reserved_is_counted_still() -> None:
    inventory = an_inventory(capacity="spot", run=2, started_at=at(6).isoformat())
    ledger = Ledger(spans=(a_span(0, "i-a", 0, 4), a_span(0, "i-b", 6, price=20)))
    observed = Observed(machines={"i-a": seen("i-a", 0, 0, 1)})
    rows = cost_rows(inventory, ledger, alive=frozenset({"i-b"}), now=at(7), observed=observed)
    assert (by_kind(rows)["empty"].spent_usd or 0) == pytest.approx(3 * 55.04)


def test_what_an_earlier_run_on_spot_machines_had_is_no_empty_place_either() -> None:
    inventory = an_inventory(run=2, started_at=at(6).isoformat())
    ledger = Ledger(spans=(a_span(0, "i-a", 0, 4, price=20), a_span(0, "i-b", 6)))
    observed = Observed(machines={"i-a": seen("i-a", 0, 0, 1, is_spot=True)})
    rows = cost_rows(inventory, ledger, alive=frozenset({"i-b"}), now=at(7), observed=observed, is_reserved=True)
    assert "empty" not in by_kind(rows)
    assert by_kind(rows)["node"].spent_usd == pytest.approx(20 + 55.04)


def test_every_sum_is_said_to_be_the_most() -> None:
    view = CostView(inventory=SPOT, ledger=TWO, alive=frozenset({"i-a", "i-b"}), cloud_trouble=None, now=at(1))
    title = cost_text(view).splitlines()[0]
    assert title.startswith("train · at most $41.39 so far of $1000.00 · ")
    assert "at most $496.68 when it ends" in title
    assert MAXIMUM in remarks(view)
    assert money(SPOT, 1.0) == "at most $1.00 of $1000.00"
    assert money(an_inventory(), 1.0) == "about $1.00 of $1000.00"


@pytest.mark.parametrize(
    ("code", "words", "text"),
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
def test_a_machine_that_aws_took_back_says_so(code: str, words: str, text: str) -> None:
    reason = {"Code": code, "Message": f"{code}: {words}"}
    row = {"InstanceId": "i-1", "State": {"Name": "terminated"}, "StateReason": reason, "LaunchTime": BORN}
    assert instance_state(row).state_and_reason == text


def test_by_the_prices_of_its_time_a_machine_costs_what_each_was_while_it_held() -> None:
    history = (price(-5, 10), price(1, 12), price(3, 18))
    rows = (a_row("i-a", 0), a_row("i-b", 0, 2))
    assert at_spot(rows, history, now_h=4) == pytest.approx((10 + 2 * 12 + 18) + (10 + 12))


def test_aws_bills_no_more_than_the_maximum() -> None:
    assert at_spot((a_row("i-a", 0),), (price(-1, 30),), now_h=2) == pytest.approx(2 * 20)


def test_machines_that_are_not_on_spot_cost_what_is_counted_for_them() -> None:
    rows = (a_row("i-a", 0), a_row("i-other", 2, 3))
    found = machines_at_spot_usd(rows, (price(-1, 10),), on_spot={"i-a"}, now=at(4))
    assert found == pytest.approx(4 * 10 + 20)


def test_spot_machines_of_every_run_are_told_by_aws_s_word() -> None:
    machines = {
        "i-first": seen("i-first", 0, -2, -1, is_spot=True),
        "i-now": seen("i-now", 0, 0, is_spot=True),
        "i-reserved": seen("i-reserved", 0, -3, -2),
        "i-forgotten": seen("i-forgotten", 0, -91 * 24, -90 * 24, is_spot=True),
    }
    observed = Observed(machines=machines)
    assert spot_machines(observed, "p5.48xlarge", now=at(1)) == {"i-first": at(-2), "i-now": at(0)}
    assert spot_machines(observed, "p4d.24xlarge", now=at(1)) == {}


@pytest.mark.parametrize("history", [(), (1,)])
def test_where_a_price_is_missing_for_a_part_of_the_time_nothing_is_guessed(history: tuple[int, ...]) -> None:
    known = tuple(price(hour, 10) for hour in history)
    assert at_spot((a_row("i-a", 0),), known, now_h=4) is None
    assert at_spot((), known, now_h=4) == 0


@given(
    changes=st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 100)), max_size=6),
    began_h=st.floats(0, 5),
    lived_h=st.floats(0, 5),
)
def test_no_price_history_makes_a_machine_dearer_than_its_maximum(
    changes: list[tuple[float, float]], began_h: float, lived_h: float
) -> None:
    history = (price(-1, 5), *(price(hour, usd) for hour, usd in sorted(changes)))
    row = a_row("i-a", began_h, began_h + lived_h)
    found = at_spot((row,), history, now_h=20)
    assert found is not None
    assert 0 <= found <= 20 * lived_h + 1e-6


@pytest.mark.parametrize(
    ("prices", "trouble", "line"),
    [
        ((10,), None, "by the spot prices of us-west-2b machines have cost about $20.00 so far"),
        ((), None, "what they have cost by the spot prices of us-west-2b is not known"),
        (None, "AccessDenied", "what they have cost by the spot prices of us-west-2b is not known (AccessDenied)"),
    ],
)
def test_cost_says_what_machines_cost_by_the_prices_that_aws_told(
    prices: tuple[int, ...] | None, trouble: str | None, line: str
) -> None:
    machines = {id: seen(id, slot, 0, is_spot=True) for slot, id in enumerate(("i-a", "i-b"))}
    view = CostView(
        inventory=SPOT,
        ledger=TWO,
        alive=frozenset({"i-a", "i-b"}),
        cloud_trouble=None,
        now=at(1),
        observed=Observed(machines=machines),
        spot_prices=None if prices is None else tuple(price(-1, usd) for usd in prices),
        spot_trouble=trouble,
    )
    assert line in remarks(view)
    estimated = cost_json(view)["estimated_cost"]
    assert isinstance(estimated, dict)
    assert (estimated["is_maximum"], estimated["machines_at_spot_usd"]) == (True, 20.0 if prices else None)


def test_the_history_is_told_oldest_first() -> None:
    rows = [{"Timestamp": at(hour), "SpotPrice": f"{usd:.6f}"} for hour, usd in ((2, 12.5), (0, 10))]
    clients = clients_of({("us-west-2", "describe_spot_price_history", "SpotPriceHistory"): rows})
    found = spot_history(clients, instance_type="p5.48xlarge", zone="us-west-2b", since=at(0), until=at(3))
    assert found == (price(0, 10), price(2, 12.5))


@pytest.mark.parametrize(("lifecycle", "is_spot"), [({"InstanceLifecycle": "spot"}, True), ({}, False)])
def test_a_look_keeps_which_machines_were_of_the_spot_market(lifecycle: dict[str, str], is_spot: bool) -> None:
    row = {"InstanceId": "i-1", "State": {"Name": "running"}, "LaunchTime": BORN, **lifecycle}
    (sighting,) = news({}, [instance_state(row)], at=at(1))
    kept = sighting_from_json(json.loads(json.dumps(sighting_to_json(sighting))))
    assert seen_machines([kept])["i-1"].is_spot is is_spot


def price(hour: float, usd: float) -> SpotPriceChange:
    return SpotPriceChange(at=at(hour), usd_per_hour=usd)


def a_row(id: str, start_h: float, end_h: float | None = None) -> CostRow:
    """A machine with a maximum of $20.00."""
    return cost_row(
        kind="node",
        name=id,
        instance_id=id,
        started_at=at(start_h),
        ended_at=None if end_h is None else at(end_h),
        usd_per_hour=20,
        deadline=DEADLINE,
        now=at(4),
    )


def at_spot(rows: tuple[CostRow, ...], history: tuple[SpotPriceChange, ...], *, now_h: float) -> float | None:
    """The sum in USD of these rows, all of spot machines."""
    return machines_at_spot_usd(rows, history, on_spot={row.instance_id or "" for row in rows}, now=at(now_h))
