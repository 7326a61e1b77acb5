"""Mishaps at random moments of a cluster's life, and what is left after them: prints a table.

Exits with 1 when something was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.machine import describe_machine
from tests.integration.campaign.mishap import Life, drawn_by, lives
from tests.integration.campaign.report import ReportFile
from tests.integration.campaign.table import table
from tests.integration.campaign.whole_life import run_life


def main(argv: Sequence[str]) -> int:
    """Runs a campaign, or the next part of one, and prints its table; 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="scripts/campaign", description=__doc__.partition(":")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=25, help="how many mishaps")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same mishaps")
    parser.add_argument("--lives", type=int, help="how many clusters to live now, of those not in --keep yet")
    parser.add_argument(
        "--first", type=int, default=0, help="the number of the first of them: two may run side by side"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="the result of each life is kept there: the same command goes on after an interruption, and repeats none",
    )
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="campaign-kept-") as folder:
        lived, path = lives(asked.seed, runs=asked.runs), asked.keep or Path(folder) / "kept"
        kept = ReportFile(path, seed=asked.seed, runs=asked.runs, drawn=drawn_by(lived))
        return _campaign(kept, lived, seed=asked.seed, first=asked.first, at_most=asked.lives)


def _campaign(kept: ReportFile, lived: Sequence[Life], *, seed: int, first: int, at_most: int | None) -> int:
    try:
        done = kept.read()
    except ValueError as e:
        print(f"scripts/campaign: {e}", file=sys.stderr)
        return 2
    for life in [life for life in lived[first:] if life.number not in done][:at_most]:
        kept.add(life.number, run_life(life))
    reports = kept.read()
    print(f"\nSeed {seed}, {len(reports)} of {len(lived)} lives; {describe_machine()}\n")
    print("\n".join(table(lived, reports)))
    wrong = [line for _, report in sorted(reports.items()) for line in report.wrong]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
