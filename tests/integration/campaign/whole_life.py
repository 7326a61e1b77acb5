"""One life of a cluster from its first `up` to its end, reported as it goes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.integration.campaign.ending import end, forsake, outlive
from tests.integration.campaign.living import live, write
from tests.integration.campaign.mishap import Life, Mishap
from tests.integration.campaign.report import Report
from tests.integration.rehearsed import rehearsed

STORAGE = [{"mount": "/work", "efs": {}}]
SHOWN = {
    "forsaken": "forsaken until its deadline",
    "deadline": "left alone until its deadline",
    "down": "down --all",
}


def run_life(life: Life) -> Report:
    """What a life on a stack of its own came to."""
    began, report = time.monotonic(), Report()

    def tell(mishap: Mishap, result: str) -> None:
        at = f"step {mishap.after_steps}" if mishap.action != "job" else f"{mishap.after_s:.1f} s"
        what = f"kill {mishap.part}" if mishap.fault == "kill" else mishap.fault
        print(f"{time.monotonic() - began:>6.1f} s  {mishap.action:<7} {what:<12} {at:<9} {result}", flush=True)

    with (
        tempfile.TemporaryDirectory(prefix="campaign-") as folder,
        rehearsed(
            Path(folder),
            machines="process",
            nodes=2,
            capacity="spot" if life.is_spot else "on-demand",
            storage=STORAGE if life.has_storage else [],
        ) as cluster,
    ):
        cluster.keep_steps()
        write(cluster)
        is_forsaken = life.ending == "forsaken"
        live(cluster, life.mishaps[:-1] if is_forsaken else life.mishaps, report, tell)
        if is_forsaken:
            forsake(cluster, life, report, tell)
        elif life.ending == "deadline":
            outlive(cluster, life, report)
        else:
            end(cluster, report)
    print(f"{time.monotonic() - began:>6.1f} s  {SHOWN[life.ending]}: {'; '.join(report.wrong) or 'right'}", flush=True)
    return report
