"""What was paid for: the ledger, put right by what AWS said; a table of cases, and what holds for all."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from clusterctl.cost.cost_row import sums
from clusterctl.cost.estimate import IN_NO_LEDGER, NO_LEDGER, cost_rows
from clusterctl.cost.reconcile import all_gone_at, reconcile
from clusterctl.cost.reserved import SeenReservation
from clusterctl.cost.sighting import Observed, SeenMachine, Sighting, seen_machines
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.outputs import InventoryNode
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cli.cost.paid_cluster import DEADLINE, REPLACED, a_span, an_inventory, at, ledgers
from tests.unit.cli.cost.reconcile_cases import CASES, ONE, P5, PRICES, Case, reserved, seen


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_shown_of_each_machine(case: Case) -> None:
    nodes = (InventoryNode(slot=0, rank=0, name="train-0", private_ip="10.0.8.0", host_public_key="k"),)
    observed = Observed(
        machines={machine.instance_id: machine for machine in case.machines},
        reservations={reservation.reservation_id: reservation for reservation in case.reservations},
        usd_per_hour=PRICES,
    )
    rows = cost_rows(
        an_inventory(nodes=nodes),
        case.ledger,
        alive=case.alive,
        now=at(case.now_h),
        observed=observed,
        is_reserved=case.is_reserved,
    )
    paid = [row for row in rows if row.kind in ("node", "empty")]
    assert Counter((row.instance_id, row.started_at, row.ended_at, row.note) for row in paid) == Counter(
        (id, at(start_h), None if end_h is None else at(end_h), note) for id, start_h, end_h, note in case.shown
    )
    assert all((row.kind == "empty") == (row.instance_id is None) for row in paid)
    assert all(row.usd_per_hour == P5 for row in paid)


def test_a_row_says_which_of_its_times_aws_said() -> None:
    machines = {machine.instance_id: machine for machine in (seen("i-b", 1, 0.1, 1.1), seen("i-c", 1, 1.3, gone_h=2))}
    paid = reconcile(
        REPLACED.spans, Observed(machines=machines), alive=frozenset({"i-a"}), deadline=DEADLINE, now=at(3)
    )
    seen_times = {row.instance_id: (row.is_start_seen, row.is_end_seen) for row in paid if row.instance_id is not None}
    assert seen_times == {"i-a": (False, False), "i-b": (True, True), "i-c": (True, False)}


def test_the_end_of_a_place_that_the_ledger_alone_tells_of_is_not_called_seen() -> None:
    ledger = Ledger(spans=(a_span(0, "i-a", 0, 2),))
    machines = {"i-a": seen("i-a", 0, 0.1, 1)}
    paid = reconcile(ledger.spans, Observed(machines=machines), alive=frozenset(), deadline=DEADLINE, now=at(3))
    (place,) = [row for row in paid if row.instance_id is None]
    assert (place.started_at, place.ended_at) == (at(1), at(2))
    assert (place.is_start_seen, place.is_end_seen) == (True, False)


GONE = {
    "the place went after the machine": (seen("i-a", 0, 0.1, 1), reserved(0, cancelled_h=2), False, 2),
    "the machine went after the place": (seen("i-a", 0, 0.1, 3), reserved(0, cancelled_h=2), False, 3),
    "nobody saw the machine end, and it was missed": (
        seen("i-a", 0, 0.1, gone_h=4),
        reserved(0, cancelled_h=2),
        False,
        4,
    ),
    "AWS holds the place": (seen("i-a", 0, 0.1, 1), reserved(0, held_h=2), True, None),
}


@pytest.mark.parametrize(("machine", "place", "is_reserved", "gone_h"), GONE.values(), ids=GONE.keys())
def test_all_is_gone_since_the_last_machine_or_place_went(
    machine: SeenMachine, place: SeenReservation, is_reserved: bool, gone_h: float | None
) -> None:
    observed = Observed(machines={"i-a": machine}, reservations={"cr-1": place})
    found = all_gone_at(observed, is_reserved=is_reserved, deadline=DEADLINE, now=at(6))
    assert found == (None if gone_h is None else at(gone_h))


@pytest.mark.parametrize(("machine_type", "price"), [("p5.48xlarge", 40.0), ("p4d.24xlarge", P5)])
def test_a_reserved_place_costs_what_a_machine_of_its_type_in_it_did_and_else_the_list_price(
    machine_type: str, price: float
) -> None:
    observed = Observed(
        machines={"i-a": replace(seen("i-a", 0, 0.2, 2), instance_type=machine_type)},
        reservations={"cr-1": reserved(0.1)},
        usd_per_hour=PRICES,
    )
    spans = (a_span(0, "i-a", price=40.0),)
    paid = reconcile(spans, observed, alive=frozenset(), deadline=DEADLINE, now=at(3), is_reserved=True)
    assert {row.usd_per_hour for row in paid if row.instance_id is None} == {price}


def test_a_stray_of_a_type_without_a_price_makes_the_sum_unknown_and_not_0() -> None:
    observed = Observed(machines={"i-z": seen("i-z", None, 0.5)}, usd_per_hour={"p5.48xlarge": None})
    rows = cost_rows(an_inventory(), ONE, alive=frozenset({"i-a", "i-z"}), now=at(3), observed=observed)
    assert sums(rows).spent_usd is None


def test_without_a_ledger_a_machine_that_was_seen_counts_once() -> None:
    observed = Observed(machines={"i-a": seen("i-a", 0, 0.5)}, usd_per_hour=PRICES)
    rows = cost_rows(an_inventory(), None, alive=frozenset({"i-a"}), now=at(3), observed=observed)
    assert [row.note for row in rows if row.kind == "node"] == [IN_NO_LEDGER]
    assert NO_LEDGER in {row.note for row in cost_rows(an_inventory(), None, alive=None, now=at(3))}


MINUTES = st.integers(min_value=1, max_value=30)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Ledger, dict[str, SeenMachine], dict[str, tuple[datetime, datetime | None]]]:
    """A ledger, each machine as AWS saw it, and its actual times: launched after it was planned, ended after that."""
    ledger = draw(ledgers())
    machines, actual = {}, {}
    free_at: dict[int, datetime] = {}
    for span in ledger.spans:
        late, tail = timedelta(seconds=draw(MINUTES)), timedelta(seconds=draw(MINUTES))
        # A slot has one address, so one machine at a time.
        launched = max(span.started_at + late, free_at.get(span.slot, span.started_at))
        ended = None if span.ended_at is None else max(span.ended_at, launched) + tail
        free_at[span.slot] = launched if ended is None else ended
        actual[span.instance_id] = (launched, ended)
        machines[span.instance_id] = SeenMachine(
            instance_id=span.instance_id,
            slot=span.slot,
            instance_type="p5.48xlarge",
            launched_at=launched,
            ended_at=ended,
            alive_at=None,
            gone_at=ended,
        )
    return ledger, machines, actual


@settings(max_examples=100)
@given(life=lives(), written=st.sets(st.integers(min_value=0, max_value=20)))
def test_whatever_the_ledger_lacks_each_machine_is_paid_for_its_own_time_and_once(
    life: tuple[Ledger, dict[str, SeenMachine], dict[str, tuple[datetime, datetime | None]]], written: set[int]
) -> None:
    ledger, machines, actual = life
    alive = frozenset(id for id, (_, ended) in actual.items() if ended is None)
    spans = [span for number, span in enumerate(ledger.spans) if number in written]
    paid = reconcile(spans, Observed(machines=machines), alive=alive, deadline=DEADLINE, now=DEADLINE)
    own = [row for row in paid if row.instance_id is not None]
    assert {row.instance_id: (row.started_at, row.ended_at) for row in own} == actual
    assert len(own) == len(actual)
    for place in (row for row in paid if row.instance_id is None):
        for other in (row for row in own if row.slot == place.slot and is_of(spans, row.instance_id)):
            assert other.started_at >= (place.ended_at or DEADLINE) or (other.ended_at or DEADLINE) <= place.started_at


def is_of(spans: list[Span], id: str | None) -> bool:
    return id in {span.instance_id for span in spans}


@settings(max_examples=50)
@given(ledger=ledgers(), seconds=st.integers(min_value=0, max_value=12 * 3600))
def test_without_an_observation_every_span_is_what_the_ledger_says(ledger: Ledger, seconds: int) -> None:
    paid = reconcile(ledger.spans, Observed(), alive=None, deadline=DEADLINE, now=at(seconds / 3600))
    assert [(row.instance_id, row.started_at, row.ended_at) for row in paid] == [
        (span.instance_id, span.started_at, span.ended_at) for span in ledger.spans
    ]
    assert not any(row.is_start_seen or row.is_end_seen for row in paid)


@settings(max_examples=50)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["i-a", "i-b"]), st.integers(0, 9), st.booleans(), st.booleans()), min_size=1
    ),
    seed=st.integers(0, 99),
)
def test_looks_tell_the_same_in_any_order_and_however_often(rows: list[tuple[str, int, bool, bool]], seed: int) -> None:
    looks = [
        Sighting(
            instance_id=id,
            slot=0,
            instance_type="p5.48xlarge",
            launched_at=at(0),
            at=at(hour),
            is_alive=is_alive,
            ended_at=at(hour) if says and not is_alive else None,
        )
        for id, hour, is_alive, says in rows
    ]
    mixed = [*looks, *looks]
    random.Random(seed).shuffle(mixed)
    assert seen_machines(mixed) == seen_machines(looks)
