"""Machines that end themselves: at the deadline, whatever runs in them, whatever clock is wrong, after any reboot.

Half of them are booted side by side at the start, each with an end of its own; every test waits for the end of one.
"""

from __future__ import annotations

import os
import time

import pytest
from clusterctl_rehearsal.machines.driver import MachineFile

from tests.integration.bootstrap.bootstrapped import SLOTS, Bootstrapped, address, iso

PAST, AHEAD, SILENT, REBOOTED, STUBBORN, HUNG, UNGUARDED = range(8, 15)
LEFT_S = {PAST: -5, AHEAD: 3600 + 40, SILENT: 40}
SECONDS_AFTER = 5
"""How much later than its deadline a machine may be gone."""
SECONDS_AFTER_UNDER_LOAD = 20
"""The same on a computer that has more to do than it has processors, such as other tests."""
WITHOUT_NFT = {"/usr/sbin/nft": MachineFile(content=b"")}
"""Not executable: as if the package were not installed."""

IGNORE_SIGTERM = "setsid bash -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" >/dev/null 2>&1 </dev/null &"
HANG = """\
printf "[Manager]\\nDefaultTimeoutStopSec=90s\\n" >/run/systemd/system.conf.d/zz.conf
systemctl daemon-reload
echo "uptime $(($(cut -d. -f1 /proc/uptime) + 8))" >/run/clusterctl/last-stage-at
systemctl poweroff --force"""
"""A shutdown that waits 90 s for the process above, and a last stage that is due in 8 s."""


@pytest.fixture(scope="module")
def machines(network: Bootstrapped) -> Bootstrapped:
    """The network with the machines that take long to end, none of them waited for."""
    network.metadata.shift_s[address(AHEAD)] = 3600
    network.metadata.silent.add(address(SILENT))
    for slot in (PAST, AHEAD, SILENT, REBOOTED):
        network.boot(network.plan(slot, nodes=SLOTS, left_s=LEFT_S.get(slot, 3600)))
    return network


def test_a_deadline_that_is_past_ends_the_machine_at_boot(machines: Bootstrapped) -> None:
    ended = machines.wait_until_gone(PAST, timeout_s=60)
    assert ended - machines.booted_at[PAST] < 45


def test_a_reboot_does_not_move_the_deadline(machines: Bootstrapped) -> None:
    """The end of this one is looked at last: it has to boot once more before."""
    machines.wait_until_settled(REBOOTED)
    machines.deadlines[REBOOTED] = int(time.time() + 45)
    assert machines.push(REBOOTED, nodes=SLOTS, deadline=iso(machines.deadlines[REBOOTED])).json["ok"]
    machines.ssh(REBOOTED, "sudo systemctl reboot")


def test_a_process_that_ignores_sigterm_does_not_hold_the_end(machines: Bootstrapped) -> None:
    machines.boot(machines.plan(STUBBORN, nodes=SLOTS, left_s=3600))
    machines.wait_until_settled(STUBBORN)
    machines.output(STUBBORN, IGNORE_SIGTERM)
    moment = int(time.time() + 6)
    pushed = machines.push(STUBBORN, nodes=SLOTS, deadline=iso(moment))
    assert pushed.json["ok"], pushed
    assert_ended_in_time(machines, STUBBORN, moment)


def test_the_last_stage_ends_a_machine_whose_shutdown_hangs(machines: Bootstrapped) -> None:
    machines.boot(machines.plan(HUNG, left_s=3600))
    machines.wait_until_settled(HUNG)
    machines.output(HUNG, IGNORE_SIGTERM)
    moment = time.time() + 8
    machines.ssh(HUNG, f"sudo sh -c '{HANG}'")
    assert_ended_in_time(machines, HUNG, moment)


def test_a_machine_without_nft_fails_with_the_reason_and_still_ends(machines: Bootstrapped) -> None:
    machines.boot(machines.plan(UNGUARDED, nodes=SLOTS, left_s=3600), WITHOUT_NFT)
    status = machines.wait_until_settled(UNGUARDED)
    assert status["phase"] == "failed"
    assert "nft" in status["error"]["message"]
    assert status["error"]["log"]
    moment = time.time()
    pushed = machines.push(UNGUARDED, nodes=SLOTS, deadline=iso(moment - 60))
    assert pushed.code != 1, pushed  # it may end before it has answered
    assert_ended_in_time(machines, UNGUARDED, moment)


def test_the_clock_of_the_metadata_service_beats_the_machines_own(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, AHEAD, machines.deadlines[AHEAD] - 3600)


def test_without_a_metadata_service_the_machines_own_clock_decides(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, SILENT, machines.deadlines[SILENT])


def test_a_rebooted_machine_ends_at_its_deadline(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, REBOOTED, machines.deadlines[REBOOTED])


def assert_ended_in_time(machines: Bootstrapped, slot: int, deadline: float) -> None:
    ended = machines.wait_until_gone(slot, timeout_s=max(0, deadline - time.time()) + 60)
    is_busy = "PYTEST_XDIST_WORKER" in os.environ or os.getloadavg()[0] > (os.cpu_count() or 1)
    allowed = SECONDS_AFTER_UNDER_LOAD if is_busy else SECONDS_AFTER
    assert -1.5 < ended - deadline < allowed, f"{ended - deadline:+.1f} s from its deadline"
