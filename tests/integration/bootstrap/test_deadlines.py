"""Machines that end themselves: at the deadline, whatever runs in them, whatever clock is wrong, after any reboot.

Most of them are booted and set up side by side at the start, as some take minutes to end. Each has an end of its own;
every test waits for the end of one, and needs no other test.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from clusterctl_bootstrap.node.ending import LAST_STAGE_S
from clusterctl_rehearsal.machines import cgroup
from clusterctl_rehearsal.machines.driver import MachineFile

from tests.integration.bootstrap.bootstrapped import SLOTS, Answer, Bootstrapped, address, iso, wait_until

PAST, AHEAD, SILENT, REBOOTED, STUBBORN, HUNG, UNGUARDED, BEHIND = range(8, 16)
WEDGED = 7
HOUR_S = 3600
LEFT_S = {PAST: -5, AHEAD: HOUR_S + 40, SILENT: 40, BEHIND: 90 - HOUR_S}
"""By the clock of this computer, which is also the machines' own: AWS's is an hour ahead of it, or behind."""
SECONDS_AFTER = 5
"""How much later than its deadline a machine may be gone."""
SECONDS_AFTER_UNDER_LOAD = 20
"""How much later on a computer that has more work than processors, such as other tests."""
WITHOUT_NFT = {f"/usr/sbin/{name}": MachineFile(content=b"") for name in ("nft", "iptables")}
"""Not executable: as if the package were not installed."""

IGNORE_SIGTERM = "setsid bash -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" >/dev/null 2>&1 </dev/null &"
REGISTERED = """\
sh -c 'trap "date >>signalled" USR1; trap "" TERM HUP INT; touch /run/clusterctl/warn/$$; while :; do sleep 0.2; done' \
    >/dev/null 2>&1 </dev/null &
asked=/run/clusterctl/warn/$!
for _ in $(seq 100); do [ ! -e "$asked" ] || exit 0; sleep 0.1; done
exit 1
"""
"""A training that registers for the warning, and ignores every signal that asks it to end."""
ENDLESS_HOOK = """\
mkdir -p /etc/clusterctl/hooks
cat >/etc/clusterctl/hooks/pre-terminate <<'END'
#!/bin/sh
trap "" TERM HUP INT
echo "$CLUSTERCTL_ENDS_IN_S s left for slot $CLUSTERCTL_SLOT" >/run/hooked
while :; do sleep 1; done
END
chmod +x /etc/clusterctl/hooks/pre-terminate"""
HANG_A_MOUNT = """\
serve() { setsid bash -c 'exec -a "@$0" bindfs -f "$@"' "$@" >/dev/null 2>&1 </dev/null & }
wait_for() { until eval "$1"; do sleep 0.1; done; }
cd /mnt && mkdir real stopped hung
serve stopped /mnt/real /mnt/stopped
wait_for "mountpoint -q stopped"
serve hung /mnt/stopped /mnt/hung
wait_for "mountpoint -q hung"
pkill -STOP -f '^@stopped'
setsid ls /mnt/hung/file >/dev/null 2>&1 </dev/null &
wait_for "ps -o wchan:32= -C ls | grep -q request_wait_answer"
pkill -KILL -x ls
wait_for "ps -o stat= -C ls | grep -q ^D"
"""
"""One FUSE server waits for another that is stopped, and a process waits for both: no signal ends it. systemd's
shutdown spares the servers, as their names begin with @."""
STOP_AS_NOBODY = """\
for verb in stop mask disable; do
    for unit in clusterctl-deadline.timer clusterctl-deadline-clock.timer clusterctl-last-stage clusterctl-watch; do
        ! sudo -u nobody systemctl --no-ask-password $verb $unit 2>/dev/null || echo "$verb $unit was allowed"
    done
done
! sudo -u nobody pkill -KILL -f clusterctl-last-stage || echo "the last stage was killed"
! sudo -u nobody sh -c 'echo uptime 99999999 >/run/clusterctl/last-stage-at' 2>/dev/null || echo "it was moved"
systemctl is-active clusterctl-deadline.timer clusterctl-deadline-clock.timer clusterctl-last-stage"""
FILL_DISKS = """\
for folder in /var/lib/clusterctl /etc/clusterctl /var/log /tmp; do
    cp -a $folder /run/kept
    mount -t tmpfs -o size=1m full $folder
    cp -a /run/kept/. $folder
    rm -r /run/kept
    ! cat /dev/zero >$folder/full 2>/dev/null
done
tries=0
until mount -o remount,bind,ro / 2>/dev/null; do tries=$((tries + 1)); [ $tries -lt 60 ] || exit 1; sleep 0.5; done
! touch /etc/x 2>/dev/null"""
"""Everything a node writes to but /run, which is memory. The last stages of cloud-init may be writing still."""
HANG = """\
printf "[Manager]\\nDefaultTimeoutStopSec=90s\\n" >/run/systemd/system.conf.d/zz.conf
systemctl daemon-reload
echo "uptime $(($(cut -d. -f1 /proc/uptime) + 8))" >/run/clusterctl/last-stage-at
systemctl poweroff --force"""
"""A shutdown that waits 90 s for the process above, and a last stage that is due in 8 s."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """The machines that take long to end, and what they answered when that began."""

    machines: Bootstrapped
    wedged: Answer
    rebooted: Answer
    at_units: Answer
    with_full_disks: Answer


@pytest.fixture(scope="module")
def begun(network: Bootstrapped) -> Begun:
    """All that takes time, side by side; tests look at the answers, as one that is wrong is no other's failure."""
    network.metadata.shift_s[address(AHEAD)] = HOUR_S
    network.metadata.shift_s[address(BEHIND)] = -HOUR_S
    network.metadata.silent.add(address(SILENT))
    for slot in (WEDGED, PAST, AHEAD, SILENT, REBOOTED, BEHIND):
        network.boot(network.plan(slot, nodes=SLOTS, left_s=LEFT_S.get(slot, HOUR_S)))
    wedged = with_systemd_stopped(network)
    rebooted = with_a_reboot(network)
    at_units, with_full_disks = under_attack(network)
    return Begun(machines=network, wedged=wedged, rebooted=rebooted, at_units=at_units, with_full_disks=with_full_disks)


@pytest.fixture(scope="module")
def machines(begun: Begun) -> Bootstrapped:
    """The network with the machines that take long to end, none of them waited for."""
    return begun.machines


def with_systemd_stopped(network: Bootstrapped) -> Answer:
    """Stops WEDGED's first process shortly before the deadline."""
    network.wait_until_settled(WEDGED)
    # A busy machine takes some seconds to get the push and to be stopped.
    network.deadlines[WEDGED] = int(time.time() + 20)
    pushed = network.push(WEDGED, nodes=SLOTS, deadline=iso(network.deadlines[WEDGED]))
    first = cgroup.first_process(cgroup.mounted_trees(), network.name, network.node(WEDGED))
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    return pushed


def with_a_reboot(network: Bootstrapped) -> Answer:
    """Reboots REBOOTED when it has its deadline."""
    network.wait_until_settled(REBOOTED)
    network.deadlines[REBOOTED] = int(time.time() + 45)
    pushed = network.push(REBOOTED, nodes=SLOTS, deadline=iso(network.deadlines[REBOOTED]))
    network.ssh(REBOOTED, "sudo systemctl reboot")
    return pushed


def under_attack(network: Bootstrapped) -> tuple[Answer, Answer]:
    """BEHIND's answers to a user at its units, and to a push when its disks are full; then it has no network.

    By its own clock the deadline was an hour ago when it booted.
    """
    network.wait_until_settled(BEHIND)
    at_units = network.ssh(BEHIND, STOP_AS_NOBODY)
    network.deliver_modules(BEHIND)
    network.output(BEHIND, "sudo sh", stdin=FILL_DISKS)
    pushed = network.ssh(BEHIND, "sudo -n clusterctl-node apply", stdin=network.membership(nodes=SLOTS))
    network.driver.unplug(network.name, network.node(BEHIND))
    return at_units, pushed


def test_a_deadline_that_is_past_ends_the_machine_at_boot(machines: Bootstrapped) -> None:
    machines.wait_until_gone(PAST, timeout_s=180)


def test_who_uses_a_machine_is_warned_and_no_job_hook_or_mount_that_hangs_holds_the_end(machines: Bootstrapped) -> None:
    """On the terminal, in the journal and by signal."""
    machines.boot(machines.plan(STUBBORN, nodes=SLOTS, left_s=HOUR_S), shares={"/dev/fuse": "/dev/fuse"})
    machines.wait_until_settled(STUBBORN)
    assert machines.push(STUBBORN, nodes=SLOTS).json["ok"]
    machines.output(STUBBORN, "sudo sh", stdin=ENDLESS_HOOK)
    # The watch makes the folder before it opens it to everybody.
    wait_until(lambda: machines.ssh(STUBBORN, "test -w /run/clusterctl/warn").code == 0, lambda: "no watch", 20)
    machines.output(STUBBORN, REGISTERED)
    with a_terminal(machines, STUBBORN) as seen:
        assert machines.push(STUBBORN, nodes=SLOTS, generation=2, deadline=iso(time.time() + 903)).json["ok"]
        warning = f"{machines.node(STUBBORN)} ends in 15 minutes (its deadline): save what is to be kept"
        wait_until(lambda: warning in seen(), seen, 20)
    assert warning in machines.output(STUBBORN, "sudo journalctl -q -t clusterctl -p warning -o cat")
    assert_signalled(machines, STUBBORN, 1)
    assert machines.ssh(STUBBORN, "test -e /run/hooked").code == 1, "the hook is for the last five minutes"

    machines.output(STUBBORN, "sudo timeout 30 bash", stdin=HANG_A_MOUNT)
    moment = int(time.time() + 15)
    assert machines.push(STUBBORN, nodes=SLOTS, generation=3, deadline=iso(moment)).json["ok"]
    wait_until(lambda: machines.ssh(STUBBORN, "cat /run/hooked").code == 0, lambda: "the hook did not run", 10)
    assert re.fullmatch(rf"1\d s left for slot {STUBBORN}\n", machines.output(STUBBORN, "cat /run/hooked"))
    assert_signalled(machines, STUBBORN, 2)
    assert_ended_in_time(machines, STUBBORN, moment)


def test_the_last_stage_ends_a_machine_whose_shutdown_hangs(machines: Bootstrapped) -> None:
    machines.boot(machines.plan(HUNG, left_s=HOUR_S))
    machines.wait_until_settled(HUNG)
    machines.output(HUNG, IGNORE_SIGTERM)
    moment = time.time() + 8
    machines.ssh(HUNG, f"sudo sh -c '{HANG}'")
    assert_ended_in_time(machines, HUNG, moment)


def test_a_machine_without_nft_fails_with_the_reason_and_still_ends(machines: Bootstrapped) -> None:
    machines.boot(machines.plan(UNGUARDED, nodes=SLOTS, left_s=HOUR_S), WITHOUT_NFT)
    status = machines.wait_until_settled(UNGUARDED)
    assert status["phase"] == "failed"
    assert "nft" in status["error"]["message"]
    assert status["error"]["log"]
    moment = time.time()
    pushed = machines.push(UNGUARDED, nodes=SLOTS, deadline=iso(moment - 60))
    assert pushed.code != 1, pushed  # it may end before it has answered
    assert_ended_in_time(machines, UNGUARDED, moment)


def test_the_clock_of_the_metadata_service_beats_the_machines_own(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, AHEAD, machines.deadlines[AHEAD] - HOUR_S)


def test_without_a_metadata_service_the_machines_own_clock_decides(machines: Bootstrapped) -> None:
    assert_ended_in_time(machines, SILENT, machines.deadlines[SILENT])


def test_a_user_at_its_units_a_full_disk_and_no_network_change_nothing(begun: Begun) -> None:
    """The machine ends when AWS says so, an hour after its own clock."""
    assert (begun.at_units.code, begun.at_units.out.split()) == (0, ["active"] * 3), begun.at_units
    refused = begun.with_full_disks.json["error"]
    assert "No space left" in refused, "a node that cannot keep a deadline does not take it"
    assert_ended_in_time(begun.machines, BEHIND, begun.machines.deadlines[BEHIND] + HOUR_S)


def test_a_reboot_does_not_move_the_deadline(begun: Begun) -> None:
    assert begun.rebooted.json["ok"]
    assert_ended_in_time(begun.machines, REBOOTED, begun.machines.deadlines[REBOOTED])


def test_a_machine_whose_systemd_hangs_is_ended_by_the_last_stage(begun: Begun) -> None:
    assert begun.wedged.json["ok"]
    assert_ended_in_time(begun.machines, WEDGED, begun.machines.deadlines[WEDGED] + LAST_STAGE_S)


def assert_signalled(machines: Bootstrapped, slot: int, times: int) -> None:
    """A shell heeds a signal when its `sleep` is over."""
    wait_until(lambda: machines.ssh(slot, "wc -l <signalled").out == f"{times}\n", lambda: f"not {times} times", 30)


@contextlib.contextmanager
def a_terminal(machines: Bootstrapped, slot: int) -> Iterator[Callable[[], str]]:
    """Somebody is logged in; what the terminal has shown so far."""
    with tempfile.TemporaryFile() as shown:
        argv = [*machines.ssh_argv(slot), "-tt", "sleep 61"]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=shown, stderr=subprocess.STDOUT) as session:
            has_terminal = "ps -eo tty=,args= | grep '^pts.* sleep 61$'"
            wait_until(lambda: machines.ssh(slot, has_terminal).code == 0, lambda: "no terminal", 20)
            try:
                yield lambda: os.pread(shown.fileno(), 1 << 16, 0).decode(errors="replace")
            finally:
                session.kill()


def assert_ended_in_time(machines: Bootstrapped, slot: int, deadline: float) -> None:
    ended = machines.wait_until_gone(slot, timeout_s=max(0, deadline - time.time()) + 60)
    is_busy = "PYTEST_XDIST_WORKER" in os.environ or os.getloadavg()[0] > (os.cpu_count() or 1)
    allowed = SECONDS_AFTER_UNDER_LOAD if is_busy else SECONDS_AFTER
    assert -1.5 < ended - deadline < allowed, f"{ended - deadline:+.1f} s from its deadline"
