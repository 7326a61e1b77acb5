"""What was paid for: the account, put right by what AWS said; a table of cases, and what holds for all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from clusterctl.cost.cost_row import sums
from clusterctl.cost.estimate import EMPTY, IN_NO_ACCOUNT, LATE, NO_ACCOUNT, TAIL, cost_rows
from clusterctl.cost.reconcile import reconcile
from clusterctl.cost.reserved import SeenReservation
from clusterctl.cost.sighting import Observed, SeenMachine, Sighting, seen_machines
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.outputs import InventoryNode
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cli.test_cost import DEADLINE, REPLACED, a_span, accounts, an_inventory, at

P5 = 55.04
PRICES: dict[str, float | None] = {"p5.48xlarge": P5}
Shown = tuple[str | None, float, float | None, str | None]
"""Instance, hours of its start and end, note."""


def seen(
    id: str,
    slot: int | None,
    start_h: float,
    end_h: float | None = None,
    *,
    alive_h: float | None = None,
    gone_h: float | None = None,
) -> SeenMachine:
    """A machine that AWS showed; with an end it was found gone afterwards."""
    gone = end_h if gone_h is None else gone_h
    return SeenMachine(
        instance_id=id,
        slot=slot,
        instance_type="p5.48xlarge",
        launched_at=at(start_h),
        ended_at=None if end_h is None else at(end_h),
        alive_at=None if alive_h is None else at(alive_h),
        gone_at=None if gone is None else at(gone),
    )


def reserved(
    start_h: float,
    *,
    places: int = 1,
    cancelled_h: float | None = None,
    held_h: float | None = None,
    gone_h: float | None = None,
) -> SeenReservation:
    """A reservation up to the deadline; with `cancelled_h` AWS said yes to its end then."""
    gone = cancelled_h if gone_h is None else gone_h
    return SeenReservation(
        reservation_id="cr-1",
        instance_type="p5.48xlarge",
        created_at=at(start_h),
        places=((at(start_h), places),),
        ends_at=DEADLINE,
        held_at=None if held_h is None else at(held_h),
        gone_at=None if gone is None else at(gone),
        ended_at=None if cancelled_h is None else at(cancelled_h),
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    machines: tuple[SeenMachine, ...]
    shown: tuple[Shown, ...]
    account: Ledger | None = REPLACED
    alive: frozenset[str] | None = field(default_factory=lambda: frozenset({"i-a", "i-c"}))
    now_h: float = 3
    reservations: tuple[SeenReservation, ...] = ()
    is_reserved: bool | None = None


ONE = Ledger(spans=(a_span(0, "i-a"),))
NOBODY: frozenset[str] = frozenset()
CASES = (
    Case(
        name="nothing was observed: the account holds",
        machines=(),
        shown=(("i-a", 0, None, None), ("i-b", 0, 1, None), ("i-c", 1, None, None)),
    ),
    Case(
        name="a replacement: each its own time, and the place between them is paid for empty",
        machines=(seen("i-a", 0, 0.1), seen("i-b", 1, 0.1, 1.1), seen("i-c", 1, 1.3)),
        shown=(("i-a", 0.1, None, None), ("i-b", 0.1, 1.1, None), (None, 1.1, 1.3, EMPTY), ("i-c", 1.3, None, None)),
    ),
    Case(
        name="a second run after a down: between the runs nothing is reserved",
        account=Ledger(spans=(a_span(0, "i-a", 0, 2), a_span(0, "i-b", 5))),
        machines=(seen("i-a", 0, 0.1, 2.1), seen("i-b", 0, 5.2)),
        alive=frozenset({"i-b"}),
        now_h=6,
        shown=(("i-a", 0.1, 2.1, None), ("i-b", 5.2, None, None)),
    ),
    Case(
        name="an up that was cut off before any account: the machine that the next one ended",
        account=Ledger(spans=(a_span(0, "i-b", 1),)),
        machines=(seen("i-a", 0, 0.2, 0.9), seen("i-b", 0, 1.1)),
        alive=frozenset({"i-b"}),
        shown=(("i-a", 0.2, 0.9, IN_NO_ACCOUNT), ("i-b", 1.1, None, None)),
    ),
    Case(
        name="an up that was cut off and its machine lives",
        account=None,
        machines=(seen("i-a", 0, 0.2),),
        alive=frozenset({"i-a"}),
        shown=(("i-a", 0.2, None, IN_NO_ACCOUNT),),
    ),
    Case(
        name="ended behind our back, with AWS's instant: the place bills on, empty",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        alive=NOBODY,
        shown=(("i-a", 0.1, 2, None), (None, 2, None, EMPTY)),
    ),
    Case(
        name="gone without an instant: counted until it was missed",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=1, gone_h=2.5),),
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.5, None), (None, 2.5, None, EMPTY)),
    ),
    Case(
        name="gone without an instant, and the deadline lies between the looks: that was its end",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=11, gone_h=12.8),),
        alive=NOBODY,
        now_h=14,
        shown=(("i-a", 0.1, 12, None),),
    ),
    Case(
        name="gone without an instant, and alive after its deadline: counted until it was missed",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=12.5, gone_h=12.8),),
        alive=NOBODY,
        now_h=14,
        shown=(("i-a", 0.1, 12.8, None),),
    ),
    Case(
        name="its end was not seen and AWS shows it no more: its place counts to the deadline",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=1),),
        alive=NOBODY,
        shown=(("i-a", 0.1, None, EMPTY),),
    ),
    Case(
        name="the account closed it and nobody saw it go: it ran as long as it was seen",
        account=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.1, alive_h=2.2),),
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.2, None),),
    ),
    Case(
        name="the account closed it and it runs: it bills on",
        account=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.1, alive_h=3),),
        alive=frozenset({"i-a"}),
        shown=(("i-a", 0.1, None, None),),
    ),
    Case(
        name="in no account, gone from AWS's sight: counted until now, for nobody saw it end",
        machines=(seen("i-z", 1, 0.5, alive_h=1),),
        account=ONE,
        shown=(("i-a", 0, None, None), ("i-z", 0.5, 3, IN_NO_ACCOUNT)),
    ),
    Case(
        name="it runs on after the deadline",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=13),),
        alive=frozenset({"i-a"}),
        now_h=14,
        shown=(("i-a", 0.1, None, LATE),),
    ),
    Case(
        name="reserved before its first machine, and until it was given back",
        account=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.2, 2),),
        reservations=(reserved(0.1, cancelled_h=2.1),),
        is_reserved=False,
        alive=NOBODY,
        shown=((None, 0.1, 0.2, EMPTY), ("i-a", 0.2, 2, None), (None, 2, 2.1, EMPTY)),
    ),
    Case(
        name="machine and reservation were ended from outside: nothing bills from then on",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        reservations=(reserved(0.1, held_h=2, gone_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2, None), (None, 2, 2.5, EMPTY)),
    ),
    Case(
        name="the same, and nobody here ever saw the reservation: its place counts until somebody asked",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2, None), (None, 2, 3, EMPTY)),
    ),
    Case(
        name="gone from AWS's sight, both: the machine counts as long as its place was held",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=1),),
        reservations=(reserved(0.1, held_h=1, gone_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.5, None),),
    ),
    Case(
        name="gone from AWS's sight, and seen alive after its reservation had ended",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=2.8),),
        reservations=(reserved(0.1, cancelled_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.8, None),),
    ),
    Case(
        name="gone with its reservation, and only that of an earlier run was ever seen",
        account=Ledger(spans=(a_span(0, "i-a", 0, 1), a_span(0, "i-b", 2))),
        machines=(),
        reservations=(reserved(0, cancelled_h=1),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0, 1, None), ("i-b", 2, 3, None)),
    ),
    Case(
        name="the reservation ended at its end date, between two looks: within the hour after it nothing is in doubt",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, 11.9, gone_h=12.5),),
        reservations=(reserved(0.1, held_h=11, gone_h=12.5),),
        is_reserved=False,
        alive=NOBODY,
        now_h=12.6,
        shown=(("i-a", 0.1, 11.9, None), (None, 11.9, 12, EMPTY)),
    ),
    Case(
        name="AWS holds the reservation on after its end date: it bills on",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, 12),),
        reservations=(reserved(0.1, held_h=12.5),),
        is_reserved=True,
        alive=NOBODY,
        now_h=12.5,
        shown=(("i-a", 0.1, 12, TAIL), (None, 12, None, TAIL)),
    ),
    Case(
        name="an earlier run that nobody watched, then one whose reservation was seen",
        account=Ledger(spans=(a_span(0, "i-a", 0, 2), a_span(0, "i-b", 5))),
        machines=(seen("i-a", 0, 0.1, 1), seen("i-b", 0, 5.2)),
        reservations=(reserved(5.1, held_h=6),),
        is_reserved=True,
        alive=frozenset({"i-b"}),
        now_h=6,
        shown=(("i-a", 0.1, 1, None), (None, 1, 2, EMPTY), (None, 5.1, 5.2, EMPTY), ("i-b", 5.2, None, None)),
    ),
    Case(
        name="AWS does not answer: what it said before holds",
        account=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        alive=None,
        shown=(("i-a", 0.1, 2, None), (None, 2, None, EMPTY)),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_shown_of_each_machine(case: Case) -> None:
    nodes = (InventoryNode(slot=0, rank=0, name="train-0", private_ip="10.0.8.0", host_public_key="k"),)
    observed = Observed(
        machines={one.instance_id: one for one in case.machines},
        reservations={one.reservation_id: one for one in case.reservations},
        usd_per_hour=PRICES,
    )
    rows = cost_rows(
        an_inventory(nodes=nodes),
        case.account,
        alive=case.alive,
        now=at(case.now_h),
        observed=observed,
        is_reserved=case.is_reserved,
    )
    paid = [row for row in rows if row.kind in ("node", "empty")]
    assert {(row.instance_id, row.started_at, row.ended_at, row.note) for row in paid} == {
        (id, at(start_h), None if end_h is None else at(end_h), note) for id, start_h, end_h, note in case.shown
    }
    assert all((row.kind == "empty") == (row.instance_id is None) for row in paid)
    assert all(row.usd_per_hour == P5 for row in paid)


def test_a_row_says_which_of_its_times_aws_said() -> None:
    machines = {one.instance_id: one for one in (seen("i-b", 1, 0.1, 1.1), seen("i-c", 1, 1.3, gone_h=2))}
    paid = reconcile(
        REPLACED.spans, Observed(machines=machines), alive=frozenset({"i-a"}), deadline=DEADLINE, now=at(3)
    )
    said = {one.instance_id: (one.is_start_seen, one.is_end_seen) for one in paid if one.instance_id is not None}
    assert said == {"i-a": (False, False), "i-b": (True, True), "i-c": (True, False)}


def test_a_stray_of_a_type_without_a_price_makes_the_sum_unknown_and_not_0() -> None:
    observed = Observed(machines={"i-z": seen("i-z", None, 0.5)}, usd_per_hour={"p5.48xlarge": None})
    rows = cost_rows(an_inventory(), ONE, alive=frozenset({"i-a", "i-z"}), now=at(3), observed=observed)
    assert sums(rows).spent_usd is None


def test_without_an_account_a_machine_that_was_seen_counts_once() -> None:
    observed = Observed(machines={"i-a": seen("i-a", 0, 0.5)}, usd_per_hour=PRICES)
    rows = cost_rows(an_inventory(), None, alive=frozenset({"i-a"}), now=at(3), observed=observed)
    assert [row.note for row in rows if row.kind == "node"] == [IN_NO_ACCOUNT]
    assert NO_ACCOUNT in {row.note for row in cost_rows(an_inventory(), None, alive=None, now=at(3))}


MINUTES = st.integers(min_value=1, max_value=30)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Ledger, dict[str, SeenMachine], dict[str, tuple[datetime, datetime | None]]]:
    """An account, each machine as AWS saw it, and the truth: launched after it was planned, ended after that."""
    account = draw(accounts())
    machines, truth = {}, {}
    free_at: dict[int, datetime] = {}
    for span in account.spans:
        late, tail = timedelta(seconds=draw(MINUTES)), timedelta(seconds=draw(MINUTES))
        # A slot has one address, so one machine at a time.
        launched = max(span.started_at + late, free_at.get(span.slot, span.started_at))
        ended = None if span.ended_at is None else max(span.ended_at, launched) + tail
        free_at[span.slot] = launched if ended is None else ended
        truth[span.instance_id] = (launched, ended)
        machines[span.instance_id] = SeenMachine(
            instance_id=span.instance_id,
            slot=span.slot,
            instance_type="p5.48xlarge",
            launched_at=launched,
            ended_at=ended,
            alive_at=None,
            gone_at=ended,
        )
    return account, machines, truth


@settings(max_examples=100)
@given(life=lives(), written=st.sets(st.integers(min_value=0, max_value=20)))
def test_whatever_the_account_lacks_each_machine_is_paid_for_its_own_time_and_once(
    life: tuple[Ledger, dict[str, SeenMachine], dict[str, tuple[datetime, datetime | None]]], written: set[int]
) -> None:
    account, machines, truth = life
    alive = frozenset(id for id, (_, ended) in truth.items() if ended is None)
    spans = [span for number, span in enumerate(account.spans) if number in written]
    paid = reconcile(spans, Observed(machines=machines), alive=alive, deadline=DEADLINE, now=DEADLINE)
    own = [one for one in paid if one.instance_id is not None]
    assert {one.instance_id: (one.started_at, one.ended_at) for one in own} == truth
    assert len(own) == len(truth)
    for place in (one for one in paid if one.instance_id is None):
        for other in (one for one in own if one.slot == place.slot and is_of(spans, one.instance_id)):
            assert other.started_at >= (place.ended_at or DEADLINE) or (other.ended_at or DEADLINE) <= place.started_at


def is_of(spans: list[Span], id: str | None) -> bool:
    return id in {span.instance_id for span in spans}


@settings(max_examples=50)
@given(account=accounts(), seconds=st.integers(min_value=0, max_value=12 * 3600))
def test_without_an_observation_every_span_is_what_the_account_says(account: Ledger, seconds: int) -> None:
    paid = reconcile(account.spans, Observed(), alive=None, deadline=DEADLINE, now=at(seconds / 3600))
    assert [(one.instance_id, one.started_at, one.ended_at) for one in paid] == [
        (span.instance_id, span.started_at, span.ended_at) for span in account.spans
    ]
    assert not any(one.is_start_seen or one.is_end_seen for one in paid)


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
