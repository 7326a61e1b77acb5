"""Mishaps at random moments of a cluster's life, and what is left after them: prints a table; 1 when something is."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.integration.campaign.ending import abandon, end
from tests.integration.campaign.living import Report, live, write
from tests.integration.campaign.mishap import Life, Mishap, lives
from tests.integration.rehearsed import rehearsed


def main(argv: Sequence[str]) -> int:
    """Runs a campaign and prints its table; 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="scripts/campaign", description=__doc__.partition(":")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=25, help="how many mishaps")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same mishaps")
    asked = parser.parse_args(argv)
    lived = lives(asked.seed, runs=asked.runs)
    reports = [run_life(life) for life in lived]
    wrong = [line for report in reports for line in report.wrong]
    print("\n".join([*table(lived, reports), *wrong]))
    return 1 if wrong else 0


def run_life(life: Life) -> Report:
    """One life on a stack of its own, told as it goes."""
    began = time.monotonic()

    def tell(mishap: Mishap, said: str) -> None:
        at = f"step {mishap.after_steps}" if mishap.action != "job" else f"{mishap.after_s:.1f} s"
        what = f"kill {mishap.part}" if mishap.fault == "kill" else mishap.fault
        print(f"{time.monotonic() - began:>6.1f} s  {mishap.action:<7} {what:<12} {at:<9} {said}", flush=True)

    with (
        tempfile.TemporaryDirectory(prefix="campaign-") as folder,
        rehearsed(Path(folder), machines="process", nodes=2) as cluster,
    ):
        write(cluster)
        report = live(cluster, life, tell)
        if life.is_abandoned:
            abandon(cluster, life, report)
        else:
            end(cluster, report)
    how = "left alone until its deadline" if life.is_abandoned else "down --all"
    print(f"{time.monotonic() - began:>6.1f} s  {how}: {'; '.join(report.wrong) or 'right'}", flush=True)
    return report


def table(lived: Sequence[Life], reports: Sequence[Report]) -> list[str]:
    """The lines of a campaign's result; all money is simulated."""
    mishaps = [mishap for life in lived for mishap in life.mishaps]
    faults = Counter(mishap.fault for mishap in mishaps)
    late = [report.late_s for report in reports if report.late_s is not None]
    sums = [report.money for report in reports if report.money is not None]
    bill, account = sum(one.bill_usd for one in sums), sum(one.account_usd for one in sums)
    uncounted, empty = sum(one.uncounted_usd for one in sums), sum(one.empty_usd for one in sums)
    begun = max((one.begun_late_s for one in sums), default=0.0)
    ended = max((one.ended_early_s for one in sums), default=0.0)
    rows = {
        "runs": f"{len(mishaps)} in {len(lived)} lives",
        **{f"  {fault}": str(faults[fault]) for fault in sorted(faults)},
        "deadlines": f"{len(late)}; the last machine gone {max(late, default=0.0):.1f} s after",
        "bill": f"${bill:.2f} for machines, of that ${uncounted:.2f} in no account; ${empty:.2f} for empty places",
        "account": f"${account:.2f}, {account - bill + uncounted:+.2f} against the machines in it",
        "  a machine": f"begins at most {begun:.1f} s late, ends at most {ended:.1f} s early",
        "leaks": str(sum(report.leaks for report in reports)),
        "wrong": str(sum(len(report.wrong) for report in reports)),
    }
    return [f"{name:<14} {value}" for name, value in rows.items()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
