"""Empty places are counted as the simulated bill counts them: two computations, one sum."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from clusterctl.cost.places import Paid, empty_places
from clusterctl.cost.reserved import SeenReservation
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.region.bill import Billed, bill
from clusterctl_rehearsal.region.journal import INSTANCE, RESERVATION
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cli.cost.paid_cluster import BORN

CATALOG = load_catalog()
KIND, REGION, RATE = "p5.48xlarge", "us-west-2", 55.04
END_S = 3600
Life = tuple[int, int, int | None]
"""Slot, seconds of start and end."""


@st.composite
def lives(draw: st.DrawFn) -> list[Life]:
    """Machines that follow each other in up to four slots; the last of each may still run."""
    found: list[Life] = []
    for slot in range(draw(st.integers(min_value=1, max_value=4))):
        marks = sorted(draw(st.lists(st.integers(0, END_S - 1), max_size=6, unique=True)))
        pairs = list(zip(marks[::2], [*marks[1::2], None], strict=False))
        found += [(slot, start, stop) for start, stop in pairs]
    return found


@settings(max_examples=150)
@given(machines=lives(), sizes=st.lists(st.tuples(st.integers(1, END_S - 1), st.integers(1, 5)), max_size=3))
def test_places_cost_what_the_region_bills_whatever_ran_in_them(
    machines: list[Life], sizes: list[tuple[int, int]]
) -> None:
    counts = [(0, 4), *sorted(dict(sizes).items())]
    reservation = SeenReservation(
        reservation_id="cr-1",
        instance_type=KIND,
        created_at=BORN,
        places=tuple((BORN + timedelta(seconds=at), count) for at, count in counts),
        ends_at=None,
        held_at=None,
        gone_at=BORN + timedelta(seconds=END_S),
        ended_at=BORN + timedelta(seconds=END_S),
    )
    places = empty_places(
        reservation, [paid(*life) for life in machines], planned=BORN + timedelta(hours=9), price=RATE
    )
    billed = [thing(f"i-{number}", INSTANCE, start, stop) for number, (_, start, stop) in enumerate(machines)]
    rows = bill([*billed, thing("cr-1", RESERVATION, 0, END_S, counts=counts)], CATALOG, until=BORN.timestamp() + END_S)
    owed = next(row.usd for row in rows if row.id == "cr-1")
    ends = [place.ended_at or BORN + timedelta(seconds=END_S) for place in places]
    hours = [(end - place.started_at).total_seconds() / 3600 for end, place in zip(ends, places, strict=True)]
    assert owed is not None
    assert abs(sum(hours) * RATE - owed) < 1e-6
    for place in places:
        assert all(
            start >= second(place.ended_at) or (stop or END_S) <= second(place.started_at)
            for slot, start, stop in machines
            if slot == place.slot
        )


def second(at: object) -> float:
    return END_S if at is None else (at - BORN).total_seconds()  # type: ignore[operator]  # an instant of this test's


def paid(slot: int, start: int, stop: int | None) -> Paid:
    return Paid(
        slot=slot,
        instance_id=f"i-{slot}-{start}",
        started_at=BORN + timedelta(seconds=start),
        ended_at=None if stop is None else BORN + timedelta(seconds=stop),
        is_start_seen=True,
        is_end_seen=True,
        usd_per_hour=RATE,
        instance_type=KIND,
    )


def thing(id: str, token: str, start: int, stop: int | None, *, counts: list[tuple[int, int]] | None = None) -> Billed:
    began = BORN.timestamp()
    return Billed(
        id=id,
        token=token,
        region=REGION,
        cluster_id="0123456789ab",
        began_at=began + start,
        ended_at=None if stop is None else began + stop,
        instance_type=KIND,
        reservation="cr-1" if token == INSTANCE else None,
        counts=tuple((began + at, count) for at, count in counts or ()),
    )


def machine(start_s: int, stop_s: int | None, *, is_start_seen: bool, is_end_seen: bool) -> Paid:
    """In slot 0 of the reservation's kind; AWS named its start or its end, or nobody saw it."""
    found = paid(0, start_s, stop_s)
    return replace(found, is_start_seen=is_start_seen, is_end_seen=is_end_seen)


@pytest.mark.parametrize(
    ("seen", "is_ended", "expected"),
    [
        ((True, True), True, [(0, 600, True, True), (1200, 3600, True, True)]),
        ((False, True), True, [(0, 600, True, False), (1200, 3600, True, True)]),
        ((True, False), True, [(0, 600, True, True), (1200, 3600, False, True)]),
        ((True, True), False, [(0, 600, True, True), (1200, None, True, False)]),
    ],
)
def test_an_empty_place_says_which_of_its_ends_aws_has_named(
    seen: tuple[bool, bool], is_ended: bool, expected: list[tuple[int, int | None, bool, bool]]
) -> None:
    """A machine of ten minutes in a reservation of one place: what nobody saw is shown as assumed."""
    end = BORN + timedelta(seconds=END_S) if is_ended else None
    reservation = SeenReservation(
        reservation_id="cr-1",
        instance_type=KIND,
        created_at=BORN,
        places=((BORN, 1),),
        ends_at=None,
        held_at=None,
        gone_at=None,
        ended_at=end,
    )
    start_seen, end_seen = seen
    inside = machine(600, 1200, is_start_seen=start_seen, is_end_seen=end_seen)
    places = empty_places(reservation, [inside], planned=BORN + timedelta(hours=9), price=RATE)
    assert [
        (
            int((place.started_at - BORN).total_seconds()),
            None if place.ended_at is None else int((place.ended_at - BORN).total_seconds()),
            place.is_start_seen,
            place.is_end_seen,
        )
        for place in places
    ] == expected
    assert {place.usd_per_hour for place in places} == {RATE}
