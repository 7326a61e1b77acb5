"""Booted machines: real systemd, cloud-init and sshd. Needs root on Linux."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import connect, network
from clusterctl_rehearsal.machines import processes as own_processes
from clusterctl_rehearsal.machines.cgroup import mounted_trees
from clusterctl_rehearsal.machines.connect import open_connection
from clusterctl_rehearsal.machines.driver import MachineError, MachineState
from clusterctl_rehearsal.machines.nspawn import NspawnDriver

from tests.integration.machines.real_cluster import RealCluster, wait_until

forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
"""A test worker has a thread that takes its orders; the fork only boots and is killed. (Python 3.12 and later warn.)"""


def traces(cluster: RealCluster) -> list[str]:
    """Everything of a cluster that is still on this computer."""
    trees = mounted_trees()
    folders = [tree / "clusterctl" / cluster.name for tree in (trees.unified, *trees.legacy)]
    found = [str(path) for path in folders if path.exists()]
    found += [str(path) for path in network.NAMESPACE_FOLDER.glob(f"ccl-{cluster.name}*")]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if cluster.name in line]
    found += [" ".join(argv) for _, argv in own_processes.running() if any(cluster.name in word for word in argv[-9:])]
    found += [str(path) for path in Path("/run/systemd/nspawn").glob(f"*/{cluster.name}*")]
    folder = cluster.root / cluster.name
    return found + ([str(folder)] if folder.exists() else [])


def test_user_data_is_executed_and_nodes_reach_each_other(booted: RealCluster) -> None:
    booted.boot(2)
    assert booted.cloud_init_errors(0) == []
    assert booted.ssh(0, "hostname; nvidia-smi; cat /proc/1/comm; id -un").out.split() == [
        "n-0",
        "simulated",
        "systemd",
        "ubuntu",
    ]
    assert booted.ssh(0, "cat /run/test/boothook /run/test/script").out.count("\n") == 2
    assert booted.ssh(0, "ping -c1 -W2 10.77.0.12").code == 0
    booted.ssh(0, "sudo sh -c 'echo seen >/mnt/shared/file'")
    assert booted.ssh(1, "cat /mnt/shared/file").out == "seen\n"
    assert booted.found() == ["n-0", "n-1"]
    with pytest.raises(MachineError, match="already running"):
        booted.driver.boot(booted.spec(0))


def test_only_root_in_a_machine_reaches_the_metadata_service(booted: RealCluster) -> None:
    booted.boot(1)
    with booted.driver.listen(booted.name, "169.254.169.254", 80) as service:
        threading.Thread(target=greet_everybody, args=(service,), daemon=True).start()
        ask = "exec 3<>/dev/tcp/169.254.169.254/80 && cat <&3"
        assert booted.ssh(0, f"bash -c '{ask}'").code != 0
        assert booted.ssh(0, f"sudo bash -c '{ask}'").out == "hello 10.77.0.11\n"
        service.shutdown(socket.SHUT_RDWR)


def test_a_machine_cannot_reach_its_host(booted: RealCluster) -> None:
    booted.boot(1)
    escapes = "echo b >/proc/sysrq-trigger; echo 1 >/proc/sys/vm/drop_caches; mknod /tmp/disk b 254 0 && cat /tmp/disk"
    for escape in escapes.split("; "):
        assert booted.ssh(0, f"sudo sh -c '{escape}'").code != 0, escape
    assert booted.ssh(0, "ip -o link show | wc -l").out.strip() == "2"


def test_a_frozen_machine_accepts_and_says_nothing(booted: RealCluster) -> None:
    booted.boot(1)
    booted.driver.freeze(booted.name, "n-0")
    assert booted.state(0) is MachineState.FROZEN
    with open_connection(str(booted.root), booted.name, booted.address(0), 22, 3) as connection:
        connection.settimeout(1)
        with pytest.raises(TimeoutError):
            connection.recv(100)
    booted.driver.thaw(booted.name, "n-0")
    assert booted.ssh(0, "hostname").out == "n-0\n"
    booted.driver.freeze(booted.name, "n-0")
    booted.driver.kill(booted.name, "n-0")
    assert booted.state(0) is MachineState.GONE


def test_links_are_cut_slowed_and_healed(booted: RealCluster) -> None:
    booted.boot(3)
    driver, name = booted.driver, booted.name
    driver.unplug(name, "n-1")
    assert booted.ssh(1, "true").code == 255
    driver.plug(name, "n-1")
    assert booted.ssh(1, "true", timeout_s=10).code == 0
    driver.partition(name, "n-0", "n-1")
    driver.partition(name, "n-0", "n-1")
    assert booted.ssh(0, "ping -c1 -W1 10.77.0.12").code != 0
    assert booted.ssh(0, "ping -c1 -W1 10.77.0.13").code == 0
    assert booted.ssh(1, "true").code == 0
    driver.heal(name)
    # The kernel asks for the neighbour's hardware address anew, some seconds after it had no answer.
    wait_until(lambda: booted.ssh(0, "ping -c1 -W1 10.77.0.12").code == 0, "the link was not healed")
    driver.slow(name, "n-2", 8)
    begun = time.monotonic()
    assert booted.ssh(2, "head -c 3000000 /dev/zero").out.count("\0") == 3_000_000
    assert time.monotonic() - begun > 2
    driver.heal(name)


@pytest.mark.parametrize("from_inside", [True, False])
def test_a_machine_that_reboots_keeps_its_disk_and_runs_its_boothook_again(
    booted: RealCluster, from_inside: bool
) -> None:
    booted.boot(1)
    before = booted.ssh(0, "cat /proc/sys/kernel/random/boot_id >/dev/null; touch mark; cat /run/test/boothook").out
    if from_inside:
        booted.ssh(0, "sudo reboot")
    else:
        booted.driver.reboot(booted.name, "n-0")
    states: set[MachineState] = set()

    def is_back() -> bool:
        states.add(booted.state(0))
        answer = booted.ssh(0, "ls mark && cat /run/test/boothook")
        return answer.code == 0 and answer.out.split()[-1] != before.strip()

    wait_until(is_back, "the machine did not come back", 40)
    assert states == {MachineState.RUNNING}


def test_a_machine_that_powers_itself_off_leaves_only_the_record_of_its_end(booted: RealCluster) -> None:
    booted.boot(2)
    booted.ssh(0, "sudo systemctl poweroff")
    booted.wait_for(0, MachineState.GONE)
    assert booted.end(0)["how"] == "powered off"
    assert "Power" in booted.driver.console_tail(booted.name, "n-0", 20)
    assert not (booted.root / booted.name / "n-0").exists()
    assert not (network.NAMESPACE_FOLDER / f"ccl-{booted.name}.n-0").exists()
    assert booted.found() == ["n-1"]


@pytest.mark.parametrize("victim", ["cgroup", "systemd-nspawn"])
def test_a_machine_killed_from_outside_is_tidied_up_without_anybody(booted: RealCluster, victim: str) -> None:
    booted.boot(1)
    if victim == "cgroup":
        (mounted_trees().unified / "clusterctl" / booted.name / "n-0/cgroup.kill").write_text("1")
    else:
        os.kill(nspawn_process(booted.name), signal.SIGKILL)
    wait_until((booted.root / booted.name / "n-0.ended").exists, "nobody recorded the end")
    booted.wait_for(0, MachineState.GONE)
    assert booted.end(0)["how"] == "killed by signal 9"
    assert not (booted.root / booted.name / "n-0").exists()


def test_a_killed_machine_is_gone_at_once_and_its_name_is_free(booted: RealCluster) -> None:
    booted.boot(2)
    assert booted.ssh(0, "touch mark && ls mark").code == 0
    booted.driver.kill(booted.name, "n-0")
    assert booted.state(0) is MachineState.GONE
    assert booted.ssh(1, "ping -c1 -W1 10.77.0.11").code != 0
    booted.driver.boot(booted.spec(0))
    booted.wait_until_up(0)
    assert booted.ssh(0, "ls mark").code != 0
    assert booted.ssh(1, "ping -c1 -W1 10.77.0.11").code == 0


def test_a_stopped_supervisor_powers_its_machine_off(booted: RealCluster) -> None:
    booted.boot(1)
    (supervisor,) = own_supervisors(booted.name)
    os.kill(supervisor.process_id, signal.SIGTERM)
    booted.wait_for(0, MachineState.GONE)
    assert booted.end(0)["how"] == "powered off"


def test_killed_supervisors_and_a_lost_folder_leave_nothing_behind(booted: RealCluster, tmp_path: Path) -> None:
    booted.boot(2)
    for supervisor in own_supervisors(booted.name):
        os.kill(supervisor.process_id, signal.SIGKILL)
    assert booted.state(0) is MachineState.RUNNING
    booted.ssh(1, "sudo poweroff -f")
    booted.wait_for(1, MachineState.GONE)
    assert booted.found() == ["n-0"]
    assert not (mounted_trees().unified / "clusterctl" / booted.name / "n-1").exists()
    (booted.root / booted.name).rename(tmp_path / "lost")
    NspawnDriver(root=booted.root, cache=tmp_path).clean(booted.name)
    wait_until(lambda: traces(booted) == [], "something of the machine is left behind", 30)


@forks
def test_machines_outlive_the_process_that_booted_them(booted: RealCluster) -> None:
    booted.driver.create_network(booted.name, "10.77.0.0/24", "10.77.0.1")
    assert isinstance(booted.driver, NspawnDriver)
    process_id = os.fork()
    if process_id == 0:
        booted.driver.boot(booted.spec(0))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process_id, 0)
    booted.wait_until_up(0)
    booted.driver.clean(booted.name)
    assert traces(booted) == []


@forks
@pytest.mark.parametrize("after_s", [0.02, 0.046, 0.048, 0.05, 0.06, 0.1, 0.15])
def test_a_caller_killed_while_it_boots_leaves_nothing_once_the_network_is_deleted(
    booted: RealCluster, after_s: float
) -> None:
    booted.driver.create_network(booted.name, "10.77.0.0/24", "10.77.0.1")
    process_id = os.fork()
    if process_id == 0:
        booted.driver.boot(booted.spec(0))
        signal.pause()
    time.sleep(after_s)
    os.kill(process_id, signal.SIGKILL)
    os.waitpid(process_id, 0)
    booted.driver.delete_network(booted.name)
    wait_until(lambda: traces(booted) == [], "something of the machine is left behind", 30)


def test_a_namespace_that_a_killed_caller_s_command_is_about_to_make_is_removed_too(booted: RealCluster) -> None:
    booted.driver.create_network(booted.name, "10.77.0.0/24", "10.77.0.1")
    late = ["sh", "-c", 'sleep 0.5; ip netns add "$2"', "netns", "add", f"ccl-{booted.name}.n-9"]
    with subprocess.Popen(late) as orphan:
        booted.driver.delete_network(booted.name)
        assert orphan.wait(timeout=30) == 0
    assert traces(booted) == []


@forks
def test_a_machine_whose_caller_was_killed_while_it_started_is_still_looked_after(booted: RealCluster) -> None:
    booted.driver.create_network(booted.name, "10.77.0.0/24", "10.77.0.1")
    process_id = os.fork()
    if process_id == 0:
        booted.driver.boot(booted.spec(0))
        signal.pause()
    wait_until(lambda: own_supervisors(booted.name) != [], "no supervisor was started")
    os.kill(process_id, signal.SIGKILL)
    os.waitpid(process_id, 0)
    booted.wait_until_up(0)
    booted.ssh(0, "sudo poweroff")
    booted.wait_for(0, MachineState.GONE)
    assert booted.end(0)["how"] == "powered off"


def test_a_cluster_whose_name_begins_like_another_is_left_alone(booted: RealCluster) -> None:
    booted.boot(1)
    booted.driver.clean(booted.name[:-1])
    booted.driver.clean(f"{booted.name}-n")
    assert booted.ssh(0, "true").code == 0


def test_a_connection_says_what_is_missing(booted: RealCluster) -> None:
    argv = [sys.executable, "-I", "-S", connect.__file__, str(booted.root), booted.name, "10.77.0.11", "22"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (1, f"no machine of {booted.name} has been booted on this computer\n")
    booted.driver.create_network(booted.name, "10.77.0.0/24", "10.77.0.1")
    with booted.driver.listen(booted.name, "10.77.0.1", 7000):
        argv[-2:] = ["10.77.0.1", "7001"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stderr) == (1, "10.77.0.1:7001: Connection refused\n")


def test_a_relay_keeps_the_way_back_open_after_the_way_there_is_closed(booted: RealCluster) -> None:
    booted.driver.create_network(booted.name, "10.77.0.0/24", "10.77.0.1")
    with booted.driver.listen(booted.name, "10.77.0.1", 7000) as service:
        threading.Thread(target=echo_after_the_end, args=(service,), daemon=True).start()
        argv = [sys.executable, "-I", "-S", connect.__file__, str(booted.root), booted.name, "10.77.0.1", "7000"]
        sent = os.urandom(3_000_000)
        done = subprocess.run(argv, input=sent, capture_output=True, timeout=30)
    assert done.returncode == 0
    assert done.stdout == sent


def greet_everybody(service: socket.socket) -> None:
    while True:
        try:
            connection, (peer, _) = service.accept()
        except OSError:  # shut down at the end of the test
            return
        with connection:
            connection.sendall(f"hello {peer}\n".encode())


def echo_after_the_end(service: socket.socket) -> None:
    connection, _ = service.accept()
    with connection:
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
        connection.sendall(received)


def nspawn_process(cluster: str) -> int:
    return next(
        number for number, argv in own_processes.running() if argv[0] == "systemd-nspawn" and cluster in argv[4]
    )


def own_supervisors(cluster: str) -> list[own_processes.Supervisor]:
    return [found for found in own_processes.supervisors() if found.cluster == cluster]
