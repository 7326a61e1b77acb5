"""The deadline without the nodes: their own timers are off or there are none, and nobody is left at a keyboard."""

from __future__ import annotations

import os
import signal
import time

from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.client import RegionClient, ensure_region, running_region
from clusterctl_rehearsal.region.types.network import INSTANCE

from tests.integration.rehearsed import Rehearsed, alive, wait_until

LATE_S = 15
"""Long enough after the deadline to see that the nodes' own timers are off: these take 5 s at most."""
PROMISED_S = 150
"""How long after its deadline a cluster is gone without any help of its nodes."""
WITHOUT_TIMERS = """\
systemctl stop clusterctl-deadline.timer clusterctl-deadline-clock.timer clusterctl-last-stage.service
! systemctl is-active clusterctl-deadline.timer clusterctl-deadline-clock.timer clusterctl-last-stage.service"""


def wait_for(moment: float) -> None:
    """Time itself is what is waited for."""
    time.sleep(max(0.0, moment - time.time()))


def test_nodes_without_timers_are_gone_after_the_deadline(booted: Rehearsed) -> None:
    booted.write(machines="nspawn", settings={"schedule_late_s": LATE_S}, caps={"runtime": "90s"})
    booted.up()
    booted.ok("ssh", "--node", "all", "--", "sudo", "sh", "-c", WITHOUT_TIMERS)
    deadline = booted.deadline().timestamp()
    wait_for(deadline + LATE_S - 5)
    assert alive(booted.name) == [f"{booted.name}-0", f"{booted.name}-1"]
    left_s = deadline + PROMISED_S - time.time()
    wait_until(lambda: alive(booted.name) == [], what="both nodes are gone", timeout_s=left_s)


def test_a_region_that_was_down_at_the_deadline_fires_the_schedule_when_it_is_back(recorded: Rehearsed) -> None:
    recorded.write(machines="none", settings={"schedule_late_s": 0}, caps={"runtime": "50s"})
    recorded.up()
    home = rehearsal_home(recorded.env)
    os.kill(ensure_region(home)["pid"], signal.SIGKILL)
    wait_until(lambda: running_region(home) is None, what="the region is dead", timeout_s=30)
    wait_for(recorded.deadline().timestamp() + 1)
    with RegionClient(home) as client:

        def instances() -> list[str]:
            return [row["id"] for row in client.ask("list", {})["resources"] if row["type"] == INSTANCE]

        wait_until(lambda: instances() == [], what="no instance is left", timeout_s=30)
    assert recorded.status()["alarms"] == [], "asked of the region, and none is on: the state machine did its work"
