"""Mishaps at random moments of a cluster's life, and what is left after them: prints a table; 1 when something is."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tests.integration.campaign.living import Report
from tests.integration.campaign.mishap import Life, lives
from tests.integration.campaign.whole_life import run_life


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
        "  not to the cent": str(sum(len(one.misbilled) for one in sums)),
        "  never seen": str(sum(len(one.unseen) for one in sums)),
        "leaks": str(sum(report.leaks for report in reports)),
        "wrong": str(sum(len(report.wrong) for report in reports)),
    }
    return [f"{name:<18} {value}" for name, value in rows.items()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
