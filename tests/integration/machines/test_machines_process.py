"""Process machines, by the present user and by one without any rights. Needs user namespaces."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import clusterctl_infra
import clusterctl_rehearsal
import pytest
from clusterctl_rehearsal.cleaning import clean
from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.machines import machine_processes, rootless_network
from clusterctl_rehearsal.machines import processes as own_processes
from clusterctl_rehearsal.machines.connect import NotReached, open_connection
from clusterctl_rehearsal.machines.driver import MachineError, MachineState
from clusterctl_rehearsal.machines.names import ROUTER_MAC, bridge_port
from clusterctl_rehearsal.machines.process import ProcessDriver

from tests.integration.machines.real_cluster import RealCluster, wait_until

CAN_PING = "python3 -c \"import socket; socket.create_connection(('{}', 22), 2)\""
SYSTEM_PYTHON = Path("/usr/bin/python3")


def traces(cluster: RealCluster) -> list[str]:
    found = [" ".join(argv) for _, argv in own_processes.running() if any(cluster.name in word for word in argv)]
    return found + [str(path) for path in cluster.root.glob(f"{cluster.name}*")]


def test_machines_have_their_own_names_addresses_and_files(processes: RealCluster) -> None:
    processes.boot(2)
    assert processes.ssh(0, "hostname; id -un; nvidia-smi; ls /sys/class/net").out.split() == [
        "n-0",
        "ubuntu",
        "simulated",
        "host0",
        "lo",
    ]
    assert processes.ssh(0, "touch /etc/mine /usr/bin/mine /var/lib/mine").code == 0
    assert processes.ssh(1, "ls /etc/mine").code == 2
    assert not Path("/etc/mine").exists()
    assert processes.ssh(0, CAN_PING.format("10.77.0.12")).code == 0
    processes.ssh(0, "echo seen >/mnt/shared/file")
    assert processes.ssh(1, "cat /mnt/shared/file").out == "seen\n"
    assert processes.found() == ["n-0", "n-1"]
    with pytest.raises(MachineError, match="already running"):
        processes.driver.boot(processes.spec(0))


def test_the_agent_runs_and_every_session_gets_the_environment_table(processes: RealCluster) -> None:
    processes.boot(1)
    assert processes.ssh(0, "echo $RANK; sudo -n id -un").out == "2\nubuntu\n"
    assert processes.ssh(0, "ls /run/test").code == 2  # the boothook and the script were not run


def test_a_machine_may_change_nothing_of_its_host(processes: RealCluster) -> None:
    processes.boot(1)
    for escape, why in (
        ("echo 1 >/proc/sys/vm/drop_caches", "Read-only file system"),
        ("ip link set host0 down", "Operation not permitted"),
        ("sudo -n mount -t tmpfs x /mnt", "must be superuser"),
    ):
        answer = processes.ssh(0, escape)
        assert answer.code not in (0, 255), escape
        assert why in answer.err
    assert processes.ssh(0, "ls /home").out == "ubuntu\n"
    assert processes.ssh(0, "cat /etc/shadow").out == ""


def test_faults_do_what_they_say(processes: RealCluster) -> None:
    processes.boot(3)
    driver, name = processes.driver, processes.name
    driver.freeze(name, "n-0")
    assert processes.state(0) is MachineState.FROZEN
    assert processes.ssh(0, "true").code == 255
    driver.thaw(name, "n-0")
    assert processes.ssh(0, "true").code == 0
    driver.unplug(name, "n-1")
    assert processes.ssh(1, "true").code == 255
    driver.plug(name, "n-1")
    assert processes.ssh(1, "true", timeout_s=10).code == 0
    driver.partition(name, "n-0", "n-1")
    assert processes.ssh(0, CAN_PING.format("10.77.0.12")).code == 1
    assert processes.ssh(0, CAN_PING.format("10.77.0.13")).code == 0
    driver.slow(name, "n-2", 100)
    driver.heal(name)
    # The kernel gives up on an address that was silent for some seconds, and asks again later.
    wait_until(lambda: processes.ssh(0, CAN_PING.format("10.77.0.12")).code == 0, "the partition did not heal")
    driver.freeze(name, "n-2")
    driver.kill(name, "n-2")
    assert processes.state(2) is MachineState.GONE
    assert processes.found() == ["n-0", "n-1"]


def test_the_way_to_a_node_ends_with_its_ssh_under_nohup_too(processes: RealCluster) -> None:
    """Else it holds its terminal's streams for as long as the node is silent."""
    processes.boot(1)
    processes.driver.freeze(processes.name, "n-0")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what nohup does, and children inherit
    try:
        refused = processes.ssh(0, "true")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert refused.code == 255


def test_the_router_keeps_its_address_whoever_comes_and_goes(processes: RealCluster) -> None:
    processes.boot(2)
    asked = CAN_PING.format("10.77.0.1")  # refused, but answered
    seen = f"{asked} 2>/dev/null; awk '$1 == \"10.77.0.1\" {{ print $4 }}' /proc/net/arp"
    before = processes.ssh(0, seen).out
    processes.driver.kill(processes.name, "n-1")
    assert (before, processes.ssh(0, seen).out) == (f"{ROUTER_MAC}\n", f"{ROUTER_MAC}\n")


def test_a_machine_starts_while_the_kernel_still_has_the_link_of_the_last_one_of_its_name(
    processes: RealCluster,
) -> None:
    processes.boot(1)
    left = f"link add {bridge_port('n-1')} type veth peer name left"
    rootless_network.batch(rootless_network.required_holder(processes.name), (left,))
    processes.driver.boot(processes.spec(1))
    assert processes.ssh(0, CAN_PING.format("10.77.0.12")).code == 0


def test_a_reboot_keeps_the_files(processes: RealCluster) -> None:
    processes.boot(1)
    before = machine_processes.first_process(processes.name, "n-0")
    processes.ssh(0, "touch mark")
    processes.driver.reboot(processes.name, "n-0")
    wait_until(
        lambda: machine_processes.first_process(processes.name, "n-0") not in (before, None),
        "the machine did not come back",
    )
    processes.wait_until_up(0)
    assert processes.ssh(0, "ls mark").code == 0


def test_a_machine_ends_at_its_deadline_with_nobody_watching(processes: RealCluster) -> None:
    processes.boot(2)
    processes.ssh(0, 'echo \'{"deadline": "2020-01-01T00:00:00Z"}\' >/etc/clusterctl/node.json')
    processes.wait_for(0, MachineState.GONE)
    wait_until((processes.root / processes.name / "n-0.ended").exists, "nobody recorded the end")
    assert processes.end(0)["how"] == "its deadline passed"
    assert "the deadline has passed" in processes.driver.console_tail(processes.name, "n-0", 5)
    wait_until(lambda: not (processes.root / processes.name / "n-0").exists(), "its files are still there")
    assert processes.found() == ["n-1"]


def test_a_listening_socket_lies_inside_the_cluster(processes: RealCluster) -> None:
    processes.boot(1)
    with processes.driver.listen(processes.name, "169.254.169.254", 80) as service:
        ask = "python3 -c \"import socket; socket.create_connection(('169.254.169.254', 80), 2).sendall(b'x')\""
        assert processes.ssh(0, ask).code == 0
        service.settimeout(5)
        connection, (peer, _) = service.accept()
        connection.close()
        assert peer == "10.77.0.11"


@pytest.mark.parametrize("victim", ["supervisor", "bwrap", "first process"])
def test_whatever_is_killed_nothing_is_left_behind(processes: RealCluster, victim: str) -> None:
    processes.boot(1)
    os.kill(victim_of(processes, victim), signal.SIGKILL)
    if victim == "supervisor":
        assert processes.ssh(0, "true").code == 0
        assert processes.found() == ["n-0"]
    else:
        wait_until((processes.root / processes.name / "n-0.ended").exists, "nobody recorded the end")
    processes.driver.clean(processes.name)
    wait_until(lambda: traces(processes) == [], f"left behind: {traces(processes)}", 30)
    with pytest.raises(NotReached, match="has been booted on this computer"):
        open_connection(str(processes.root), processes.name, "10.77.0.11", 22, 2)


def test_clean_ends_machines_also_where_none_can_be_made(
    processes: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.boot(1)
    home = RehearsalHome(root=processes.root.parent)
    assert home.machines == processes.root
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("PATH", "/nonexistent")
        assert processes.driver.unusable() is not None
        assert f"ended n-0 of {processes.name}" in clean(home, cluster=processes.name)
    assert traces(processes) == []


def test_clean_ends_a_machine_that_writes_on_before_it_removes_its_files(processes: RealCluster) -> None:
    processes.boot(1)
    writer = "while :; do for name in 0 1 2 3 4 5 6 7 8 9; do mkdir -p /var/lib/busy/$name/below; done; done"
    assert processes.ssh(0, f"mkdir /var/lib/busy; setsid sh -c '{writer}' >/dev/null 2>&1 </dev/null &").code == 0
    wait_until(lambda: processes.ssh(0, "test -e /var/lib/busy/9/below").code == 0, "nobody writes")
    clean(RehearsalHome(root=processes.root.parent), cluster=processes.name)
    assert traces(processes) == []


def test_the_network_outlives_nobody_but_its_holder(processes: RealCluster) -> None:
    processes.driver.create_network(processes.name, "10.77.0.0/24", "10.77.0.1")
    first = rootless_network.holder(processes.name)
    processes.driver.create_network(processes.name, "10.77.0.0/24", "10.77.0.1")
    assert rootless_network.holder(processes.name) == first
    processes.driver.delete_network(processes.name)
    assert rootless_network.holder(processes.name) is None
    processes.driver.delete_network(processes.name)


def test_a_user_without_rights_has_machines_too(processes: RealCluster, open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.fail("this test becomes another user, which only root can: run it as root")
    if not is_usable_by_all(SYSTEM_PYTHON):
        pytest.skip(f"{SYSTEM_PYTHON}, which every user may run, is of another version than the packages of .venv")
    package = open_folder / "packages"
    for module in (clusterctl_rehearsal, clusterctl_infra):
        shutil.copytree(Path(module.__path__[0]), package / module.__name__)
    shutil.copytree(Path(sysconfig.get_paths()["purelib"]) / "yaml", package / "yaml")
    root = open_folder / "machines"
    root.mkdir()
    shutil.chown(root, "nobody")
    share = open_folder / "share"
    share.mkdir()
    shutil.chown(share, "nobody")
    request = {"cluster": processes.name, "root": str(root), "share": str(share)}
    request |= {"login": processes.login.public, "private": processes.host.private, "public": processes.host.public}
    program = Path(__file__).with_name("plain_user.py")
    shutil.copy(program, open_folder)
    try:
        done = subprocess.run(
            [*as_nobody(), str(SYSTEM_PYTHON), str(open_folder / "plain_user.py"), json.dumps(request)],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
    finally:
        ProcessDriver(root=root).clean(processes.name)
    assert result["user"] != 0
    assert result["banner"].startswith("SSH-2.0")
    assert result["found"] == [[processes.name, "n-0"], [processes.name, "n-1"]]
    assert result["states"] == ["running", "frozen", "running", "gone"]
    assert result["left"] == []


def as_nobody() -> tuple[str, ...]:
    return ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")


def is_usable_by_all(python: Path) -> bool:
    if not python.exists():
        return False
    code = f"import sys; sys.exit(sys.version_info < {(3, 11)} or sys.version_info[:2] != {sys.version_info[:2]})"
    return subprocess.run([str(python), "-c", code], timeout=20).returncode == 0


def victim_of(cluster: RealCluster, victim: str) -> int:
    if victim == "supervisor":
        module = own_processes.PROCESS_SUPERVISOR_MODULE
        return next(found.process_id for found in own_processes.supervisors(module) if found.cluster == cluster.name)
    first = machine_processes.first_process(cluster.name, "n-0")
    assert first is not None
    if victim == "first process":
        return first
    return next(number for number in machine_processes.machines()[cluster.name, "n-0"] if number != first)
