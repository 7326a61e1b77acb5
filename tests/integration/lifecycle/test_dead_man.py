"""`caps.dead_man` on a whole cluster: who lost the others saves and ends, and the others live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import machine_processes

from tests.integration.rehearsed import Rehearsed, rehearsed, wait_until

ALLOWED_S = 10
IN_TIME_S = 40
HOOK = """\
mkdir -p /etc/clusterctl/hooks
cat >/etc/clusterctl/hooks/pre-terminate <<'END'
#!/bin/sh
echo "$CLUSTERCTL_END_REASON"
while [ ! -e /run/saved ]; do sleep 0.2; done
END
chmod +x /etc/clusterctl/hooks/pre-terminate"""
"""Saves until the test says that it is done."""


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Rehearsed]:
    """Three process machines, up."""
    caps = {"runtime": "1h", "dead_man": f"{ALLOWED_S}s"}
    with rehearsed(tmp_path, machines="process", nodes=3, caps=caps) as cluster:
        cluster.up()
        yield cluster


def says(cluster: Rehearsed, slot: int, file: str, text: str) -> Callable[[], bool]:
    """Whether the text is in a file of a node."""
    return lambda: text in cluster.on_disk(f"{cluster.name}-{slot}", file)


def is_gone(cluster: Rehearsed, slot: int) -> Callable[[], bool]:
    return lambda: machine_processes.first_process(cluster.name, f"{cluster.name}-{slot}") is None


def test_who_is_cut_off_saves_and_ends_and_so_does_slot_0_without_a_majority(trio: Rehearsed) -> None:
    trio.ok("ssh", "--node", "2", "--", "sudo", "sh", "-c", HOOK)
    trio.fault("partition", f"{trio.name}-0", f"{trio.name}-2")
    reason = "dead man: no slot 0 seen for 1"
    hooked = says(trio, 2, "/var/log/clusterctl/pre-terminate.log", reason)
    wait_until(hooked, what="slot 2 saves", timeout_s=IN_TIME_S)

    trio.fault("plug", f"{trio.name}-2")
    goes_on = says(trio, 2, "/var/log/clusterctl.log", "goes on")
    wait_until(goes_on, what="slot 2 sees slot 0 again and goes on", timeout_s=IN_TIME_S)

    trio.ok("ssh", "--node", "2", "--", "touch", "/run/saved")
    trio.fault("partition", f"{trio.name}-0", f"{trio.name}-2")
    wait_until(is_gone(trio, 2), what="slot 2 has ended", timeout_s=IN_TIME_S)
    assert trio.run("ssh", "--node", "0,1", "--", "true").exit_code == 0, "two of three are a majority"

    trio.fault("kill", f"{trio.name}-1")
    wait_until(is_gone(trio, 0), what="slot 0 has ended", timeout_s=IN_TIME_S)
    wait_until(status_says(trio, "without a majority of its nodes since"), what="status says why", timeout_s=IN_TIME_S)


def test_a_majority_that_lost_slot_0_has_aws_end_the_cluster(trio: Rehearsed) -> None:
    trio.fault("kill", f"{trio.name}-0")
    for slot in (1, 2):
        wait_until(is_gone(trio, slot), what=f"slot {slot} has ended", timeout_s=IN_TIME_S)
    wait_until(status_says(trio, "without slot 0 since"), what="status says why", timeout_s=IN_TIME_S)


def test_one_that_is_left_of_three_has_aws_look_for_slot_0_and_end_the_cluster(trio: Rehearsed) -> None:
    for slot in (0, 1):
        trio.fault("kill", f"{trio.name}-{slot}")
    wait_until(is_gone(trio, 2), what="slot 2 has ended", timeout_s=IN_TIME_S)
    wait_until(status_says(trio, "without slot 0 since"), what="status says why", timeout_s=IN_TIME_S)


def status_says(cluster: Rehearsed, reason: str) -> Callable[[], bool]:
    """Whether `status` names this end."""
    return lambda: str(cluster.status()["deadline_reason"]).startswith(reason)
