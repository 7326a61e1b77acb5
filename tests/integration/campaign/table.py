"""The table that a campaign ends with, in Markdown, so that a page can hold it as it is. Pure; money is simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.integration.campaign.mishap import Ending, Life
from tests.integration.campaign.report import Met, Report

Row = tuple[str, str, str]


def table(lived: Sequence[Life], reports: Mapping[int, Report]) -> list[str]:
    """The lines for the lives that have a report, by the number of the life."""
    written = list(reports.values())
    ended = [life for life in lived if life.number in reports]
    rows = [
        ("", "count", ""),
        ("---", "---", "---"),
        *_mishaps([mishap for report in written for mishap in report.met], lives=len(written)),
        ("clusters on spot machines", str(sum(life.is_spot for life in ended)), ""),
        ("clusters with a file system", str(sum(life.has_storage for life in ended)), ""),
        _left_alone("complete, and left alone until its deadline", "deadline", ended, reports),
        _left_alone("interrupted during `up`, and left alone until its deadline", "forsaken", ended, reports),
        (
            "checks of what bills",
            str(sum(report.looks for report in written)),
            f"{sum(report.things for report in written)} resources seen",
        ),
        ("leaks: resources that bill and that `reap` does not list", str(sum(report.leaks for report in written)), ""),
        *_money(written),
        ("any other error", str(sum(len(report.wrong) - report.leaks for report in written)), ""),
    ]
    return [f"| {' | '.join(row)} |" for row in rows]


def _mishaps(met: Sequence[Met], *, lives: int) -> list[Row]:
    faults = sorted({mishap.fault for mishap in met})
    return [
        (
            "runs",
            str(len(met)),
            f"happened while the command still ran: {sum(mishap.is_met for mishap in met)}; clusters: {lives}",
        ),
        *(_fault(fault, [mishap for mishap in met if mishap.fault == fault]) for fault in faults),
    ]


def _fault(fault: str, met: Sequence[Met]) -> Row:
    hit = Counter(mishap.action for mishap in met if mishap.is_met)
    return (
        fault,
        str(len(met)),
        "during: " + (", ".join(f"{count} {name}" for name, count in sorted(hit.items())) or "-"),
    )


def _left_alone(name: str, ending: Ending, ended: Sequence[Life], reports: Mapping[int, Report]) -> Row:
    of_it = [life for life in ended if life.ending == ending]
    late: dict[bool, float] = {}
    for life in of_it:
        by_aws = life.is_frozen_at_the_end and ending == "deadline"
        late[by_aws] = max(late.get(by_aws, 0.0), reports[life.number].late_s or 0.0)
    who = {False: "by the nodes alone", True: "by AWS's schedule, because a node was frozen"}
    notes = [f"gone {late_s:.1f} s after the deadline, {who[by_aws]}" for by_aws, late_s in sorted(late.items())]
    return name, str(len(of_it)), "; ".join(notes)


def _money(reports: Sequence[Report]) -> list[Row]:
    costs = [cost for report in reports for cost in report.costs]
    comparisons = [report.ledger_and_bill for report in reports if report.ledger_and_bill is not None]
    assumed, early_s = sum(cost.assumed for cost in costs), max((cost.early_s for cost in costs), default=0.0)
    seen, machines = (
        sum(compared.seen_to_their_end for compared in comparisons),
        sum(compared.machines for compared in comparisons),
    )
    uncounted, empty = (
        sum(compared.uncounted_usd for compared in comparisons),
        sum(compared.empty_usd for compared in comparisons),
    )
    off = sum(len(cost.wrong) for cost in costs) + sum(len(compared.misbilled) for compared in comparisons)
    return [
        (
            "simulated bill for machines",
            f"${sum(compared.bill_usd for compared in comparisons):.2f}",
            f"${empty:.2f} more for reserved places without a machine",
        ),
        (
            "part of the bill that is in no ledger",
            f"${uncounted:.2f}",
            "the `up` was interrupted; `cost` shows it all the same",
        ),
        ("machines whose `cost` equals the bill to the cent", str(sum(cost.to_the_cent for cost in costs)), ""),
        ("machines whose end `cost` had to assume", str(assumed), f"at most {early_s:.0f} s before the real end"),
        ("machines that were observed until their end", str(seen), f"of {machines}"),
        ("machines whose cost is wrong", str(off), ""),
    ]
