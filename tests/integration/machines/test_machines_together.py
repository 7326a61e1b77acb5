"""Booted machines that tests share: real systemd, cloud-init and sshd, links between them, and each way to end.

Each test boots those that it needs and that do not run. Needs root on Linux.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines import network
from clusterctl_rehearsal.machines import processes as own_processes
from clusterctl_rehearsal.machines.cgroup import mounted_trees
from clusterctl_rehearsal.machines.connect import open_connection
from clusterctl_rehearsal.machines.driver import MachineError, MachineState
from clusterctl_rehearsal.machines.names import container_name

from tests.integration.machines.real_cluster import KeyPair, RealCluster, nspawn_cluster, own_supervisors, wait_until


@pytest.fixture(scope="module")
def booted(
    cache: Path, tmp_path_factory: pytest.TempPathFactory, login_key: KeyPair, host_key: KeyPair
) -> Iterator[RealCluster]:
    """A cluster in which nothing runs at first."""
    yield from nspawn_cluster(cache, tmp_path_factory.mktemp("shared"), login_key, host_key)


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
    assert booted.found()[:2] == ["n-0", "n-1"]
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


def test_a_cluster_whose_name_begins_like_another_is_left_alone(booted: RealCluster) -> None:
    booted.boot(1)
    booted.driver.clean(booted.name[:-1])
    booted.driver.clean(f"{booted.name}-n")
    assert booted.ssh(0, "true").code == 0


@pytest.mark.parametrize("from_inside", [True, False])
def test_a_machine_that_reboots_keeps_its_disk_and_runs_its_boothook_again(
    booted: RealCluster, from_inside: bool
) -> None:
    booted.boot(1)
    before = booted.ssh(0, f"touch mark-{from_inside}; cat /run/test/boothook").out
    if from_inside:
        booted.ssh(0, "sudo reboot")
    else:
        booted.driver.reboot(booted.name, "n-0")
    states: set[MachineState] = set()

    def is_back() -> bool:
        states.add(booted.state(0))
        answer = booted.ssh(0, f"ls mark-{from_inside} && cat /run/test/boothook")
        return answer.code == 0 and answer.out.split()[-1] != before.strip()

    wait_until(is_back, "the machine did not come back", 40)
    assert states == {MachineState.RUNNING}


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


def test_a_machine_that_powers_itself_off_leaves_only_the_record_of_its_end(booted: RealCluster) -> None:
    booted.boot(2)
    others = [node for node in booted.found() if node != "n-0"]
    booted.ssh(0, "sudo systemctl poweroff")
    booted.wait_for(0, MachineState.GONE)
    assert booted.end(0)["how"] == "powered off"
    assert "Power" in booted.driver.console_tail(booted.name, "n-0", 20)
    assert not (booted.root / booted.name / "n-0").exists()
    assert not (network.NAMESPACE_FOLDER / f"ccl-{booted.name}.n-0").exists()
    assert booted.found() == others


@pytest.mark.parametrize("victim", ["cgroup", "systemd-nspawn"])
def test_a_machine_killed_from_outside_is_tidied_up_without_anybody(booted: RealCluster, victim: str) -> None:
    booted.boot(1)
    if victim == "cgroup":
        (mounted_trees().unified / "clusterctl" / booted.name / "n-0/cgroup.kill").write_text("1")
    else:
        os.kill(nspawn_process(booted.name, "n-0"), signal.SIGKILL)
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
    (supervisor,) = (found for found in own_supervisors(booted.name) if found.node == "n-0")
    os.kill(supervisor.process_id, signal.SIGTERM)
    booted.wait_for(0, MachineState.GONE)
    assert booted.end(0)["how"] == "powered off"


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


def greet_everybody(service: socket.socket) -> None:
    while True:
        try:
            connection, (peer, _) = service.accept()
        except OSError:  # shut down at the end of the test
            return
        with connection:
            connection.sendall(f"hello {peer}\n".encode())


def nspawn_process(cluster: str, node: str) -> int:
    named = f"--machine={container_name(cluster, node)}"
    return next(number for number, argv in own_processes.running() if argv[0] == "systemd-nspawn" and named in argv)
