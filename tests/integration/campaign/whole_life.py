"""One life of a cluster from its first `up` to its end, told as it goes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.integration.campaign.ending import abandon, end
from tests.integration.campaign.living import Report, live, write
from tests.integration.campaign.mishap import Life, Mishap
from tests.integration.rehearsed import rehearsed


def run_life(life: Life) -> Report:
    """What a life on a stack of its own came to."""
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
