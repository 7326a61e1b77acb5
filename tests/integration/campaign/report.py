"""What the lives of a campaign came to, and the file that keeps it, so that a campaign can be run in parts."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any  # parsed JSON

from tests.integration.campaign.cost_check import CostCheck
from tests.integration.campaign.ledger_and_bill import LedgerAndBill


@dataclass(frozen=True, kw_only=True)
class Met:
    """One mishap, and whether it met its command."""

    action: str
    fault: str
    is_met: bool
    """False: the command was over before, or there was nothing that it could befall."""
    exit_code: int | None
    took_s: float
    output: str
    """All that the command printed."""


@dataclass(kw_only=True)
class Report:
    """What a life came to; `wrong` is empty when all was right."""

    wrong: list[str] = field(default_factory=list)
    met: list[Met] = field(default_factory=list)
    looks: int = 0
    """How often what bills was compared with what `reap` lists."""
    things: int = 0
    """What billed, over all those looks."""
    leaks: int = 0
    late_s: float | None = None
    """The last machine of a life that nobody ended was gone this long after its deadline."""
    ledger_and_bill: LedgerAndBill | None = None
    costs: list[CostCheck] = field(default_factory=list)


class ReportFile:
    """A line for the campaign, then one for each life that was lived: one cut off is lived again, from its start."""

    def __init__(self, path: Path, *, seed: int, runs: int, drawn: str) -> None:
        """`drawn` tells these lives from those that another version of this script draws."""
        self._path = path
        self._head = {"seed": seed, "runs": runs, "lives": drawn}

    def read(self) -> dict[int, Report]:
        """Number of a life → its report. Raises ValueError for the file of another campaign, or an older one's."""
        try:
            head, *lines = _whole(self._path.read_bytes()).decode().splitlines()
        except (FileNotFoundError, ValueError):  # nothing was kept yet
            return {}
        if json.loads(head) != self._head:
            raise ValueError(f"{self._path} is of another campaign: {head}")
        try:
            return {row["life"]: report_from_json(row["report"]) for row in map(json.loads, lines)}
        except TypeError as e:
            raise ValueError(f"{self._path} was written by another version of this script: {e}") from e

    def add(self, life: int, report: Report) -> None:
        """Keeps what a life came to; two campaigns side by side may keep theirs in one file."""
        row = json.dumps({"life": life, "report": asdict(report)}) + "\n"
        with self._path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            whole = _whole(file.read())
            file.truncate(len(whole))
            file.write(b"" if whole else json.dumps(self._head).encode() + b"\n")
            file.write(row.encode())


def _whole(kept: bytes) -> bytes:
    """Without the line that a kill cut off."""
    return kept[: kept.rfind(b"\n") + 1]


def report_from_json(row: Mapping[str, Any]) -> Report:
    """The report that `asdict` gave; raises TypeError on other shapes."""
    compared = None if row["ledger_and_bill"] is None else LedgerAndBill(**_with_tuples(row["ledger_and_bill"]))
    costs = [CostCheck(**_with_tuples(cost)) for cost in row["costs"]]
    return Report(
        **{**row, "met": [Met(**mishap) for mishap in row["met"]], "ledger_and_bill": compared, "costs": costs}
    )


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
