"""Booted machines and what is left of them when callers, supervisors and folders are lost. Needs root on Linux."""

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
from clusterctl_rehearsal.machines.driver import MachineState
from clusterctl_rehearsal.machines.nspawn import NspawnDriver

from tests.integration.machines.real_cluster import RealCluster, own_supervisors, wait_until

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


def echo_after_the_end(service: socket.socket) -> None:
    connection, _ = service.accept()
    with connection:
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
        connection.sendall(received)
