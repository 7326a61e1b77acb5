"""What AWS said of a reservation is written down once; from these rows follows from when until when it was held."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clusterctl.cloud.reservations import ReservationState
from clusterctl.cost.reserved import NOTED_EVERY, SeenReservation
from clusterctl.cost.sighting_file import note_reservations, read_reserved, read_seen
from clusterctl.engine.events import Step
from clusterctl.engine.state import RESERVATION_TYPE
from clusterctl.lifecycle.change import note_step

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
END_DATE = MADE + timedelta(hours=12)


def a_reservation(state: str = "active", *, places: int = 2, ends_at: datetime = END_DATE) -> ReservationState:
    return ReservationState(
        reservation_id="cr-1",
        instance_type="p5.48xlarge",
        places=places,
        state=state,
        created_at=MADE,
        ends_at=ends_at,
    )


def after(**spans: float) -> datetime:
    return MADE + timedelta(**spans)


def a_step(op: str, *, stage: str = "done", places: int = 2) -> Step:
    return Step(
        stage=stage,  # type: ignore[arg-type]  # a word of the table
        op=op,
        urn="urn:1",
        type=RESERVATION_TYPE,
        id="cr-1",
        inputs={"instanceCount": float(places)},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "observed" / "0123456789ab.jsonl"


def seen(path: Path) -> SeenReservation:
    return read_reserved(path)["cr-1"]


def test_only_what_is_new_is_written_and_one_that_is_held_on_now_and_then(path: Path) -> None:
    for at, found, lines in (
        (after(seconds=5), [a_reservation()], 1),
        (after(seconds=9), [a_reservation()], 1),
        (after(seconds=20), [a_reservation(places=3)], 2),
        (after(seconds=30), [a_reservation(places=3, ends_at=after(hours=13))], 3),
        (after(seconds=30) + NOTED_EVERY, [a_reservation(places=3, ends_at=after(hours=13))], 4),
        (after(hours=2), [], 5),
        (after(hours=3), [], 5),
    ):
        note_reservations(path, found, at=at)
        assert len(path.read_text().splitlines()) == lines
    reservation = seen(path)
    assert reservation.places == ((MADE, 2), (after(seconds=20), 3))
    assert (reservation.ends_at, reservation.held_at, reservation.gone_at) == (
        after(hours=13),
        after(seconds=30) + NOTED_EVERY,
        after(hours=2),
    )
    assert read_seen(path) == {}


ENDS = {
    "cancelled by somebody: counted until it was missed": ("cancelled", 2.0, 2.0),
    "expired: its end date is AWS's own word": ("expired", 12.6, 12.0),
    "not shown any more, and its end date lies between the looks": (None, 12.6, 12.0),
    "not shown any more before its end date": (None, 3.0, 3.0),
}


@pytest.mark.parametrize(("state", "look_h", "end_h"), ENDS.values(), ids=ENDS.keys())
def test_its_end_is_what_the_looks_allow(path: Path, state: str | None, look_h: float, end_h: float) -> None:
    note_reservations(path, [a_reservation()], at=after(seconds=5))
    note_reservations(path, [] if state is None else [a_reservation(state)], at=after(hours=look_h))
    assert seen(path).end(planned=END_DATE) == after(hours=end_h)


def test_an_early_end_that_lies_between_the_looks_is_its_end(path: Path) -> None:
    note_reservations(path, [a_reservation()], at=after(seconds=5))
    note_reservations(path, [], at=after(hours=3))
    assert seen(path).end(planned=after(hours=2)) == after(hours=2)


def test_the_first_look_that_missed_it_counts_whoever_looked_later(path: Path) -> None:
    note_reservations(path, [a_reservation()], at=after(seconds=5))
    held = path.read_text()
    for hours in (3, 2):  # each on a computer that did not know of the other's look
        path.write_text(held)
        note_reservations(path, [], at=after(hours=hours))
        path.with_suffix(f".{hours}").write_text(path.read_text())
    path.write_text(path.with_suffix(".3").read_text() + path.with_suffix(".2").read_text())
    assert seen(path).end(planned=END_DATE) == after(hours=2)


@pytest.mark.parametrize("planned_h", [11, 13])
def test_of_two_ends_that_lie_between_the_looks_the_sooner_one_is_its_end(path: Path, planned_h: float) -> None:
    note_reservations(path, [a_reservation()], at=after(seconds=5))
    note_reservations(path, [], at=after(hours=14))
    assert seen(path).end(planned=after(hours=planned_h)) == min(END_DATE, after(hours=planned_h))


def test_a_look_that_missed_it_for_a_moment_is_no_end(path: Path) -> None:
    note_reservations(path, [a_reservation()], at=after(seconds=5))
    note_reservations(path, [], at=after(seconds=6))
    note_reservations(path, [a_reservation()], at=after(seconds=7) + NOTED_EVERY)
    assert seen(path).end(planned=END_DATE) is None


def test_what_the_engine_did_counts_from_the_instant_that_it_was_done(path: Path) -> None:
    note_reservations(path, [a_reservation()], at=after(seconds=5))
    note_step(path, a_step("update", places=4), at=after(minutes=1))
    note_step(path, a_step("delete", stage="began"), at=after(minutes=2))
    note_step(path, a_step("delete"), at=after(minutes=3))
    note_reservations(path, [], at=after(minutes=9))
    reservation = seen(path)
    assert reservation.places == ((MADE, 2), (after(minutes=1), 4))
    assert (reservation.ended_at, reservation.end(planned=END_DATE)) == (after(minutes=3), after(minutes=3))


def test_a_step_of_a_reservation_that_nobody_saw_says_nothing(path: Path) -> None:
    note_step(path, a_step("delete"), at=after(minutes=3))
    assert read_reserved(path) == {}
