"""Machines and reservations as AWS showed them, beside a ledger, and what `cost` then shows of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterctl.cost.estimate import EMPTY, IN_NO_LEDGER, LATE, TAIL
from clusterctl.cost.reserved import SeenReservation
from clusterctl.cost.sighting import SeenMachine
from clusterctl_infra.ledger import Ledger

from tests.unit.cli.cost.paid_cluster import DEADLINE, REPLACED, a_span, at

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
    is_spot: bool = False,
) -> SeenMachine:
    """A machine that AWS showed; with `end_h` it was found gone at that hour, if `gone_h` names no other."""
    gone = end_h if gone_h is None else gone_h
    return SeenMachine(
        instance_id=id,
        slot=slot,
        instance_type="p5.48xlarge",
        launched_at=at(start_h),
        ended_at=None if end_h is None else at(end_h),
        alive_at=None if alive_h is None else at(alive_h),
        gone_at=None if gone is None else at(gone),
        is_spot=is_spot,
    )


def reserved(
    start_h: float,
    *,
    places: int = 1,
    cancelled_h: float | None = None,
    held_h: float | None = None,
    gone_h: float | None = None,
) -> SeenReservation:
    """A reservation up to the deadline; with `cancelled_h` AWS agreed to its end at that hour."""
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
    ledger: Ledger | None = REPLACED
    alive: frozenset[str] | None = field(default_factory=lambda: frozenset({"i-a", "i-c"}))
    now_h: float = 3
    reservations: tuple[SeenReservation, ...] = ()
    is_reserved: bool | None = None


ONE = Ledger(spans=(a_span(0, "i-a"),))
NOBODY: frozenset[str] = frozenset()
CASES = (
    Case(
        name="nothing was observed: the ledger holds",
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
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 2), a_span(0, "i-b", 5))),
        machines=(seen("i-a", 0, 0.1, 2.1), seen("i-b", 0, 5.2)),
        alive=frozenset({"i-b"}),
        now_h=6,
        shown=(("i-a", 0.1, 2.1, None), ("i-b", 5.2, None, None)),
    ),
    Case(
        name="an up that was cut off before any ledger: the machine that the next one ended",
        ledger=Ledger(spans=(a_span(0, "i-b", 1),)),
        machines=(seen("i-a", 0, 0.2, 0.9), seen("i-b", 0, 1.1)),
        alive=frozenset({"i-b"}),
        shown=(("i-a", 0.2, 0.9, IN_NO_LEDGER), ("i-b", 1.1, None, None)),
    ),
    Case(
        name="an up that was cut off and its machine lives",
        ledger=None,
        machines=(seen("i-a", 0, 0.2),),
        alive=frozenset({"i-a"}),
        shown=(("i-a", 0.2, None, IN_NO_LEDGER),),
    ),
    Case(
        name="ended from elsewhere, with AWS's instant: the place bills on, empty",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        alive=NOBODY,
        shown=(("i-a", 0.1, 2, None), (None, 2, None, EMPTY)),
    ),
    Case(
        name="gone without an instant: counted until it was missed",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=1, gone_h=2.5),),
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.5, None), (None, 2.5, None, EMPTY)),
    ),
    Case(
        name="gone without an instant, and the deadline lies between the looks: that was its end",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=11, gone_h=12.8),),
        alive=NOBODY,
        now_h=14,
        shown=(("i-a", 0.1, 12, None),),
    ),
    Case(
        name="gone without an instant, and alive after its deadline: counted until it was missed",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=12.5, gone_h=12.8),),
        alive=NOBODY,
        now_h=14,
        shown=(("i-a", 0.1, 12.8, None),),
    ),
    Case(
        name="its end was not seen and AWS shows it no more: its place counts to the deadline",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=1),),
        alive=NOBODY,
        shown=(("i-a", 0.1, None, EMPTY),),
    ),
    Case(
        name="the ledger closed it and nobody saw it go: it ran as long as it was seen",
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.1, alive_h=2.2),),
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.2, None),),
    ),
    Case(
        name="the ledger closed it, it ran on, and was missed after its deadline: that was its end",
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.1, alive_h=3, gone_h=20),),
        alive=NOBODY,
        now_h=21,
        shown=(("i-a", 0.1, 12, None),),
    ),
    Case(
        name="the ledger closed it and it runs: it bills on",
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.1, alive_h=3),),
        alive=frozenset({"i-a"}),
        shown=(("i-a", 0.1, None, None),),
    ),
    Case(
        name="in no ledger, gone from AWS's sight: counted until now, for nobody saw it end",
        machines=(seen("i-z", 1, 0.5, alive_h=1),),
        ledger=ONE,
        shown=(("i-a", 0, None, None), ("i-z", 0.5, 3, IN_NO_LEDGER)),
    ),
    Case(
        name="it runs on after the deadline",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=13),),
        alive=frozenset({"i-a"}),
        now_h=14,
        shown=(("i-a", 0.1, None, LATE),),
    ),
    Case(
        name="reserved before its first machine, and until it was given back",
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 2),)),
        machines=(seen("i-a", 0, 0.2, 2),),
        reservations=(reserved(0.1, cancelled_h=2.1),),
        is_reserved=False,
        alive=NOBODY,
        shown=((None, 0.1, 0.2, EMPTY), ("i-a", 0.2, 2, None), (None, 2, 2.1, EMPTY)),
    ),
    Case(
        name="machine and reservation were ended from outside: nothing bills from then on",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        reservations=(reserved(0.1, held_h=2, gone_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2, None), (None, 2, 2.5, EMPTY)),
    ),
    Case(
        name="the same, and nobody here ever saw the reservation: its place counts until somebody asked",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2, None), (None, 2, 3, EMPTY)),
    ),
    Case(
        name="gone from AWS's sight, both: the machine counts as long as its place was held",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=1),),
        reservations=(reserved(0.1, held_h=1, gone_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.5, None),),
    ),
    Case(
        name="gone from AWS's sight, and seen alive after its reservation had ended",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, alive_h=2.8),),
        reservations=(reserved(0.1, cancelled_h=2.5),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0.1, 2.8, None),),
    ),
    Case(
        name="gone with its reservation, and only that of an earlier run was ever seen",
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 1), a_span(0, "i-b", 2))),
        machines=(),
        reservations=(reserved(0, cancelled_h=1),),
        is_reserved=False,
        alive=NOBODY,
        shown=(("i-a", 0, 1, None), ("i-b", 2, 3, None)),
    ),
    Case(
        name="the reservation ended at its end date, between two looks: within the hour after it nothing is in doubt",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, 11.9, gone_h=12.5),),
        reservations=(reserved(0.1, held_h=11, gone_h=12.5),),
        is_reserved=False,
        alive=NOBODY,
        now_h=12.6,
        shown=(("i-a", 0.1, 11.9, None), (None, 11.9, 12, EMPTY)),
    ),
    Case(
        name="AWS holds the reservation on after its end date: it bills on",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, 12),),
        reservations=(reserved(0.1, held_h=12.5),),
        is_reserved=True,
        alive=NOBODY,
        now_h=12.5,
        shown=(("i-a", 0.1, 12, TAIL), (None, 12, None, TAIL)),
    ),
    Case(
        name="an earlier run that nobody watched, then one whose reservation was seen",
        ledger=Ledger(spans=(a_span(0, "i-a", 0, 2), a_span(0, "i-b", 5))),
        machines=(seen("i-a", 0, 0.1, 1), seen("i-b", 0, 5.2)),
        reservations=(reserved(5.1, held_h=6),),
        is_reserved=True,
        alive=frozenset({"i-b"}),
        now_h=6,
        shown=(("i-a", 0.1, 1, None), (None, 1, 2, EMPTY), (None, 5.1, 5.2, EMPTY), ("i-b", 5.2, None, None)),
    ),
    Case(
        name="AWS does not answer: what it said before holds",
        ledger=ONE,
        machines=(seen("i-a", 0, 0.1, 2, gone_h=2.5),),
        alive=None,
        shown=(("i-a", 0.1, 2, None), (None, 2, None, EMPTY)),
    ),
)
