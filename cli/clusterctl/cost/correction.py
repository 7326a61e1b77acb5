"""Corrects a ledger by what AWS said, where a command that was cut off left too little in it. Pure.

The ledger is written after machines are made, and before machines are ended. If the engine is killed before the first
of these writes, or after the second, machines run that no span counts, until the next command, perhaps hours later. A
budget would ignore them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from clusterctl_infra.ledger import Ledger, Span
from clusterctl_infra.ledger_correction import corrected

from clusterctl.cost.sighting import SeenMachine

SHORT_S = 60.0
"""Shorter differences are not corrected: a change acts a little after the instant that it was planned for, and the
ledger has that instant."""
NEVER = datetime.max.replace(tzinfo=UTC)


PriceOf = Callable[[SeenMachine], float | None]
"""US dollars per hour of a machine that no ledger has; None is unknown."""


def as_the_last(machine: SeenMachine) -> None:
    """A `PriceOf` that knows no price: a machine then costs what the last one in the ledger did."""


def corrections(
    ledger: Ledger,
    machines: Mapping[str, SeenMachine],
    *,
    ends_by: datetime | None = None,
    price_of: PriceOf = as_the_last,
) -> tuple[Span, ...]:
    """The spans that should replace spans of the ledger, or be added to it.

    A slot's time is paid once, whichever machine was in it: time that another span of the slot counts is not missing.
    A ledger without spans counts from the start of its run, which is before all machines, and needs no correction.
    `ends_by`: the deadline that the ledger's machines had. `price_of`: prices of machines that no span has; they may be
    of another type than the ledger's, or on demand where those are spot machines.
    """
    if not ledger.spans:
        return ()
    found: list[Span] = []
    for machine in sorted(machines.values(), key=lambda machine: (machine.launched_at, machine.instance_id)):
        if machine.slot is None:
            continue
        so_far = corrected(ledger, found)
        if (span := _corrected_span(machine, machine.slot, so_far, ends_by=ends_by, price_of=price_of)) is not None:
            found.append(span)
    return tuple(found)


def _corrected_span(
    machine: SeenMachine, slot: int, ledger: Ledger, *, ends_by: datetime | None, price_of: PriceOf
) -> Span | None:
    """The machine's last span as it really was; None if the ledger has the same, or counts all of its time already."""
    of_slot = [span for span in ledger.spans if span.slot == slot]
    own = [span for span in of_slot if span.instance_id == machine.instance_id]
    others = [span for span in of_slot if span.instance_id != machine.instance_id]
    true_end = _true_end(machine, others, ends_by=ends_by)
    if not own:
        price = price_of(machine)
        stray = Span(
            slot=slot,
            instance_id=machine.instance_id,
            started_at=machine.launched_at,
            ended_at=true_end,
            price_usd_per_hour=ledger.spans[-1].price_usd_per_hour if price is None else price,
        )
        return stray if _uncounted_s(stray.started_at, stray.ended_at, others) > SHORT_S else None
    last = own[-1]
    start = last.started_at
    if len(own) == 1 and _uncounted_s(machine.launched_at, start, others) > SHORT_S:
        start = machine.launched_at
    end = last.ended_at
    if end is not None and _ran_after(machine, end):
        end = true_end if _uncounted_s(end, true_end, others) > SHORT_S else end
    if (start, end) == (last.started_at, last.ended_at):
        return None
    return Span(
        slot=slot,
        instance_id=machine.instance_id,
        started_at=start,
        ended_at=end,
        price_usd_per_hour=last.price_usd_per_hour,
    )


def _true_end(machine: SeenMachine, others: Iterable[Span], *, ends_by: datetime | None) -> datetime | None:
    """When the machine ended; None while it runs, as far as anybody knows.

    If it is gone and AWS named no instant: the earliest possible one of the deadline, the start of the next machine in
    its slot (which has its address), and the look that first missed it.
    """
    if machine.ended_at is not None or machine.gone_at is None:
        return machine.ended_at
    last = max(machine.launched_at, machine.alive_at or machine.launched_at)
    known = [max(last, span.started_at) for span in others if span.started_at > machine.launched_at]
    known += [ends_by] if ends_by is not None and ends_by >= last else []
    return min([*known, max(last, machine.gone_at)])


def _ran_after(machine: SeenMachine, instant: datetime) -> bool:
    """Whether AWS said that the machine ran after `instant`. If nobody looked since, it may be gone, and the ledger's
    end stands.
    """
    known = machine.ended_at or machine.alive_at
    return known is not None and known > instant


def _uncounted_s(start: datetime, end: datetime | None, spans: Iterable[Span]) -> float:
    """Seconds from `start` to `end` that none of `spans` counts; without an end, all time to come."""
    last, at, total = end or NEVER, start, 0.0
    for span in sorted(spans, key=lambda span: span.started_at):
        if at >= last:
            break
        total += max(0.0, (min(span.started_at, last) - at).total_seconds())
        at = max(at, span.ended_at or NEVER)
    return total + max(0.0, (last - at).total_seconds())
