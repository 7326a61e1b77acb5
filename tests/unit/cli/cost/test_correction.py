"""What AWS's answers add to a ledger that interrupted commands left incomplete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from clusterctl.cost.correction import SHORT_S, corrections
from clusterctl.cost.sighting import SeenMachine
from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.ledger_correction import corrected
from hypothesis import given
from hypothesis import strategies as st

BORN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PRICE = 55.04
DEADLINE_MIN = 600.0


def at(minutes: float) -> datetime:
    return BORN + timedelta(minutes=minutes)


def span(id: str, start: float, end: float | None, *, slot: int = 0) -> Span:
    """A span of the ledger; its times are minutes after the birth."""
    return Span(
        slot=slot,
        instance_id=id,
        started_at=at(start),
        ended_at=None if end is None else at(end),
        price_usd_per_hour=PRICE,
    )


def seen(
    id: str, launched: float, *, ended: float | None = None, alive: float | None = None, gone: float | None = None
) -> SeenMachine:
    """A machine of slot 0 as AWS showed it; its times are minutes after the birth."""
    return SeenMachine(
        instance_id=id,
        slot=0,
        instance_type="p5.48xlarge",
        launched_at=at(launched),
        ended_at=None if ended is None else at(ended),
        alive_at=None if alive is None else at(alive),
        gone_at=None if gone is None else at(gone),
    )


@pytest.mark.parametrize(
    ("written", "machine", "right"),
    [
        pytest.param([span("i-0", 0, None)], seen("i-0", 0.5, alive=60), [], id="a ledger errs early"),
        pytest.param([span("i-0", 1, None)], seen("i-0", 0.2, alive=60), [], id="less than a minute is no error"),
        pytest.param(
            [span("i-9", 0, 5), span("i-0", 90, None)],
            seen("i-0", 30, alive=95),
            [span("i-0", 30, None)],
            id="it ran before it was written down",
        ),
        pytest.param(
            [span("i-9", 0, 90), span("i-0", 90, None)],
            seen("i-0", 30, alive=95),
            [],
            id="the machine before it was counted until then",
        ),
        pytest.param(
            [span("i-0", 0, 20)],
            seen("i-0", 0.5, alive=90),
            [span("i-0", 0, None)],
            id="its end was written down, and it runs",
        ),
        pytest.param(
            [span("i-0", 0, 20)],
            seen("i-0", 0.5, alive=90, ended=92, gone=95),
            [span("i-0", 0, 92)],
            id="its end was written down, and it ran on for a time",
        ),
        pytest.param(
            [span("i-0", 0, 20)], seen("i-0", 0.5, alive=15, gone=95), [], id="nobody saw it after the written end"
        ),
        pytest.param(
            [span("i-0", 0, 20), span("i-1", 20, None)],
            seen("i-0", 0.5, alive=90, ended=92),
            [],
            id="its successor is counted since then",
        ),
        pytest.param(
            [span("i-9", 0, 20)],
            seen("i-0", 30, alive=90),
            [span("i-0", 30, None)],
            id="it is in no ledger and runs",
        ),
        pytest.param(
            [span("i-9", 0, 20)],
            seen("i-0", 30, ended=40, gone=90),
            [span("i-0", 30, 40)],
            id="it is in no ledger and is gone",
        ),
        pytest.param([], seen("i-0", 30, alive=90), [], id="a ledger that has not begun counts from its run"),
        pytest.param(
            [span("i-9", 0, 20)],
            seen("i-0", 30, alive=90, gone=900),
            [span("i-0", 30, DEADLINE_MIN)],
            id="nobody saw it end: it did at its deadline",
        ),
        pytest.param(
            [span("i-9", 0, 20)],
            seen("i-0", 30, alive=610, gone=900),
            [span("i-0", 30, 900)],
            id="it outlived its deadline, and nobody saw it end",
        ),
        pytest.param(
            [span("i-9", 0, 20), span("i-1", 120, None)],
            seen("i-0", 30, alive=90, gone=900),
            [span("i-0", 30, 120)],
            id="nobody saw it end: the next machine got its address",
        ),
        pytest.param(
            [span("i-0", 0, 20)],
            seen("i-0", 0.5, alive=90, gone=900),
            [span("i-0", 0, DEADLINE_MIN)],
            id="its end was written down, it ran on, and nobody saw it end",
        ),
    ],
)
def test_what_ran_and_was_not_counted_is(written: list[Span], machine: SeenMachine, right: list[Span]) -> None:
    ledger = Ledger(spans=tuple(written))
    assert corrections(ledger, {machine.instance_id: machine}, ends_by=at(DEADLINE_MIN)) == tuple(right)


def test_a_machine_of_no_slot_is_nobodys_place() -> None:
    stray = SeenMachine(
        instance_id="i-7",
        slot=None,
        instance_type=None,
        launched_at=at(1),
        ended_at=None,
        alive_at=at(90),
        gone_at=None,
    )
    assert corrections(Ledger(spans=(span("i-0", 0, 1),)), {"i-7": stray}) == ()


MINUTES = st.integers(min_value=0, max_value=600)


@st.composite
def spans(draw: st.DrawFn) -> tuple[Span, ...]:
    """One after another, as a slot's are; the last may be open."""
    marks = sorted(draw(st.lists(MINUTES, min_size=2, max_size=6, unique=True)))
    pairs = list(zip(marks[::2], marks[1::2], strict=False))
    rows = [span(f"i-{index}", start, end) for index, (start, end) in enumerate(pairs)]
    return (*rows, span("i-9", marks[-1], None)) if draw(st.booleans()) else tuple(rows)


@st.composite
def machines(draw: st.DrawFn) -> Mapping[str, SeenMachine]:
    found = {}
    for id in draw(st.lists(st.sampled_from(["i-0", "i-1", "i-9", "i-20", "i-21"]), unique=True)):
        launched, later = draw(MINUTES), draw(st.integers(min_value=1, max_value=300))
        runs = draw(st.booleans())
        found[id] = seen(id, launched, alive=launched + later, ended=None if runs else launched + later)
    return found


@given(spans(), machines())
def test_afterwards_every_minute_that_a_machine_was_seen_in_is_counted_and_nothing_is_left_to_correct(
    written: tuple[Span, ...], known: Mapping[str, SeenMachine]
) -> None:
    ledger = Ledger(spans=written)
    right = corrected(ledger, corrections(ledger, known))
    assert corrections(right, known) == ()
    for machine in known.values():
        last = machine.ended_at or machine.alive_at
        assert last is not None
        minutes = int((last - machine.launched_at).total_seconds() // 60)
        uncounted = [
            minute
            for minute in range(minutes)
            if not any(_counts(row, machine.launched_at + timedelta(minutes=minute + 0.5)) for row in right.spans)
        ]
        assert len(uncounted) * 60 <= 2 * SHORT_S, "a minute at its begin, and one at its end"


@given(spans(), machines())
def test_a_correction_takes_no_paid_time_away(written: tuple[Span, ...], known: Mapping[str, SeenMachine]) -> None:
    ledger = Ledger(spans=written)
    right = corrected(ledger, corrections(ledger, known))
    assert len(right.spans) >= len(ledger.spans)
    for before, after in zip(ledger.spans, right.spans, strict=False):  # what is added stands last
        assert after.started_at <= before.started_at
        assert after.ended_at is None or (before.ended_at is not None and after.ended_at >= before.ended_at)


def _counts(row: Span, instant: datetime) -> bool:
    return row.started_at <= instant and (row.ended_at is None or instant < row.ended_at)
