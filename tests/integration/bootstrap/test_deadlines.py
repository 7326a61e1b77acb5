"""Machines that end themselves: at the deadline, whatever runs in them, whatever clock is wrong, however often they boot.

All are booted side by side, each with a deadline of its own; every test waits for the end of one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from clusterctl_rehearsal.machines.driver import MachineFile

from tests.integration.bootstrap.bootstrapped import Bootstrapped, address, iso

PATIENT, STUBBORN, REBOOTED, PAST, AHEAD, SILENT, HUNG, PUSHED, UNGUARDED = range(9)
SECONDS_AFTER = 5
"""How much later than its deadline a machine may be gone."""
WITHOUT_NFT = {"/usr/sbin/nft": MachineFile(content=b"")}
"""Not executable: as if the package were not installed."""


@pytest.fixture(scope="module")
def machines(network: Bootstrapped) -> Iterator[Bootstrapped]:
    """Nine machines, none of them waited for."""
    network.metadata.shift_s[address(AHEAD)] = 3600
    network.metadata.silent.add(address(SILENT))
    left_s = {PAST: -5, STUBBORN: 40, REBOOTED: 50, AHEAD: 3600 + 35, SILENT: 35}
    for slot in range(9):
        plan = network.plan(slot, left_s=left_s.get(slot, 3600))
        network.boot(plan, WITHOUT_NFT if slot == UNGUARDED else None)
    yield network


def test_a_deadline_that_is_past_ends_the_machine_at_boot(machines: Bootstrapped) -> None:
    ended = machines.wait_until_gone(PAST, timeout_s=60)
    assert ended - machines.booted_at[PAST] < 45


def test_reboots_do_not_move_the_deadline(machines: Bootstrapped) -> None:
    first = machines.wait_until_settled(REBOOTED)
    machines.ssh(REBOOTED, "sudo systemctl reboot")
    second = machines.wait_until_another_boot(REBOOTED, first["boot_id"])
    assert second["deadline"] == first["deadline"]


def test_a_process_that_ignores_sigterm_does_not_hold_it(machines: Bootstrapped) -> None:
    machines.wait_until_settled(STUBBORN)
    stubborn = "setsid bash -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" >/dev/null 2>&1 </dev/null &"
    machines.output(STUBBORN, stubborn)
    assert_ended_in_time(machines, STUBBORN, machines.deadlines[STUBBORN])


def test_the_clock_of_the_metadata_service_beats_the_machines_own(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, AHEAD, machines.deadlines[AHEAD] - 3600)


def test_without_a_metadata_service_the_machines_own_clock_decides(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, SILENT, machines.deadlines[SILENT])


def test_a_rebooted_machine_ends_at_its_deadline(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, REBOOTED, machines.deadlines[REBOOTED])


def test_a_pushed_deadline_ends_the_machine(machines: Bootstrapped) -> None:
    machines.wait_until_settled(PUSHED)
    moment = int(time.time() + 6)
    assert machines.push(PUSHED, deadline=iso(moment)).json["ok"]
    assert_ended_in_time(machines, PUSHED, moment)


def test_a_pushed_deadline_that_is_past_ends_the_machine_at_once(machines: Bootstrapped) -> None:
    machines.wait_until_settled(PATIENT)
    moment = time.time()
    machines.push(PATIENT, deadline=iso(moment - 60))
    assert_ended_in_time(machines, PATIENT, moment)


def test_the_last_stage_ends_a_machine_whose_shutdown_hangs(machines: Bootstrapped) -> None:
    machines.wait_until_settled(HUNG)
    hang = "sudo sh -c 'echo \"uptime $(($(cut -d. -f1 /proc/uptime) + 3))\" >/run/clusterctl/last-stage-at; pkill -x sleep'"
    moment = time.time() + 3
    machines.output(HUNG, hang)
    assert_ended_in_time(machines, HUNG, moment)


def test_a_machine_without_nft_fails_and_says_why(machines: Bootstrapped) -> None:
    status = machines.wait_until_settled(UNGUARDED)
    assert status["phase"] == "failed"
    assert "nft" in status["error"]["message"]
    assert status["error"]["log"]


def assert_ended_in_time(machines: Bootstrapped, slot: int, deadline: float) -> None:
    ended = machines.wait_until_gone(slot, timeout_s=max(0, deadline - time.time()) + 30)
    assert -1.5 < ended - deadline < SECONDS_AFTER, f"{ended - deadline:+.1f} s from its deadline"
