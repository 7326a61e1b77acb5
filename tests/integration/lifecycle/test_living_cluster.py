"""What may happen to a living cluster: it goes on, or is whole again after one command. One cluster for all tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.integration.region_access import clients_of
from tests.integration.rehearsed import CLUSTERCTL, Done, Rehearsed, alive, cgroups_of, rehearsed, wait_until

CHANGE_HOST_KEY = (
    "rm /etc/ssh/ssh_host_*; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key; pkill -HUP -o sshd"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Two booted nodes, ready. Needs root."""
    if os.geteuid() != 0:
        pytest.fail("these tests boot systemd-nspawn machines: run them as root")
    with rehearsed(tmp_path_factory.mktemp("living"), machines="nspawn", nodes=2) as made:
        made.up()
        yield made


@pytest.fixture
def living(cluster: Rehearsed) -> Rehearsed:
    """The cluster, whole: made so if the test before left it otherwise."""
    if alive(cluster.name) != sorted(cluster.instance_ids()):
        cluster.up()
    return cluster


def test_up_again_touches_no_node(living: Rehearsed) -> None:
    ids, starts = living.instance_ids(), living.starts()
    assert living.pulumi("preview", "--expect-no-changes").exit_code == 0
    assert_shown_as_rehearsed(living.run("up", str(living.folder)))
    assert living.instance_ids() == ids
    assert living.starts() == starts


def test_screens_of_a_rehearsal_say_so(living: Rehearsed) -> None:
    for arguments in (("plan", str(living.folder)), ("status",), ("sweep",), ("top",)):
        assert_shown_as_rehearsed(living.run(*arguments))


def assert_shown_as_rehearsed(shown: Done) -> None:
    assert shown.exit_code == 0, shown.text
    assert "rehearsed" in shown.text, shown.text
    assert "simulated" in shown.text, shown.text


def test_a_plan_of_a_living_cluster_loads_what_reads_the_state_and_no_ssh(living: Rehearsed) -> None:
    shown = living.run("plan", str(living.folder), env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "clusterctl up would do this to the cluster that is there" in shown.stdout, shown.text
    loaded = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert "clusterctl.lifecycle.checks.table" in loaded
    assert not loaded & {"pulumi", "paramiko", "rich", "fabric", "clusterctl.node_group.group"}


def test_a_sweep_finds_a_gpu_that_is_simulated_as_sick(living: Rehearsed) -> None:
    living.ok("ssh", "--node", "1", "--", "sudo", "simulate-gpus", "hot", "5")
    sick = living.run("sweep", "--probe", "gpu")
    assert sick.exit_code == 4, sick.text
    assert "gpu 5: thermal slowdown" in sick.stdout
    living.ok("ssh", "--node", "1", "--", "sudo", "simulate-gpus", "well")
    living.ok("sweep", "--probe", "gpu")


def test_a_killed_machine_is_seen_and_its_slot_alone_remade(living: Rehearsed) -> None:
    ids, starts = living.instance_ids(), living.starts()
    victim, other = f"{living.name}-1", f"{living.name}-0"
    folder = cgroups_of(living.name)
    assert folder is not None
    (folder / victim / "cgroup.kill").write_text("1")
    wait_until(lambda: alive(living.name) == [other], what="the machine is gone", timeout_s=30)

    wait_until(lambda: living.nodes()[victim]["state"] != "ready", what="status shows it", timeout_s=30)
    assert living.nodes()[other]["state"] == "ready"

    living.up()
    assert living.instance_ids()[other] == ids[other]
    assert living.instance_ids()[victim] != ids[victim]
    assert living.starts()[other] == starts[other]
    assert {row["state"] for row in living.nodes().values()} == {"ready"}


def test_a_changed_host_key_is_refused_and_replace_remakes_the_slot_with_its_name_and_address(
    living: Rehearsed,
) -> None:
    living.run("ssh", "--node", "1", "sudo", "sh", "-c", CHANGE_HOST_KEY)
    wait_until(
        lambda: living.run("ssh", "--node", "1", "true").exit_code == 255, what="the new key is refused", timeout_s=20
    )
    refused = living.run("ssh", "--node", "1", "true")
    assert "host key" in refused.text.lower()
    assert living.run("ssh", "--node", "0", "true").exit_code == 0

    ids, public = living.instance_ids(), elastic_addresses(living)
    addresses = {name: row["private_ip"] for name, row in living.nodes().items()}
    assert sorted(public) == sorted(ids.values()), "each node has an elastic address"
    living.ok("replace", "--node", "1", "--yes")
    replaced = living.instance_ids()
    assert replaced[f"{living.name}-0"] == ids[f"{living.name}-0"]
    assert replaced[f"{living.name}-1"] != ids[f"{living.name}-1"]
    assert {name: row["private_ip"] for name, row in living.nodes().items()} == addresses
    followed = {name: elastic_addresses(living)[instance_id] for name, instance_id in replaced.items()}
    assert followed == {name: public[instance_id] for name, instance_id in ids.items()}
    assert living.ok("ssh", "--node", "1", "hostname") == f"{living.name}-1\n", "the new machine's key is known"


def test_a_node_that_never_answers_is_waited_for_in_bounds(living: Rehearsed) -> None:
    living.fault("freeze", f"{living.name}-1")
    try:
        living.fault("event", f"{living.name}-0", "system-reboot")
        nodes = living.nodes()
    finally:
        living.fault("thaw", f"{living.name}-1")
    assert nodes[f"{living.name}-0"]["state"] == "ready"
    assert "AWS reboots its host at " in nodes[f"{living.name}-0"]["note"], "what it plans in two weeks"
    assert nodes[f"{living.name}-1"]["state"] == "unreachable"
    assert "says nothing" in nodes[f"{living.name}-1"]["note"]


def test_a_command_as_root_has_the_nodes_variables_and_ends_with_its_caller(living: Rehearsed) -> None:
    output = living.ok("ssh", "--node", "1", "--sudo", "--env", "MINE=1", "--command", "id -u; echo $NODE_RANK $MINE")
    assert output == "0\n1 1\n"
    argv = [CLUSTERCTL, "ssh", "--node", "1", "--sudo", "--command", "trap '' TERM; echo $$; sleep 3000; sleep 3001"]
    with subprocess.Popen(argv, env=living.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        client.kill()
    is_there = ("ssh", "--node", "1", "--", "test", "-d", f"/proc/{pid}")
    wait_until(lambda: living.run(*is_there).exit_code == 1, what="root's command has ended", timeout_s=30)


def test_a_log_that_a_node_has_not_is_said_so(living: Rehearsed) -> None:
    kernel = living.run("logs", "--node", "1", "kernel")
    assert (kernel.exit_code, kernel.stdout) == (4, "")
    assert "no kernel log: this machine is a container" in kernel.stderr
    unit = living.run("logs", "--node", "1", "unit:nope", "unit:ssh")
    assert unit.exit_code == 4
    assert "no unit is called nope here" in unit.stderr
    assert "[unit:ssh]" in unit.stdout


def test_a_file_goes_from_one_node_to_another_by_the_nodes_own_trust(living: Rehearsed) -> None:
    living.ok("cp", "0:/etc/clusterctl/hostfile", "1:from-0")
    assert living.ok("ssh", "--node", "1", "cat", "from-0") == living.ok(
        "ssh", "--node", "0", "cat /etc/clusterctl/hostfile"
    )


def test_a_reboot_keeps_the_deadline(living: Rehearsed) -> None:
    node = f"{living.name}-1"
    asked = 'python3 -c \'import json; print(json.load(open("/etc/clusterctl/node.json"))["deadline"])\''
    before = living.ok("ssh", "--node", "1", "--command", asked)
    start = living.starts()[node]
    living.run("ssh", "--node", "1", "sudo", "reboot")

    def is_back() -> bool:
        answered = living.run("ssh", "--node", "1", "--connect-timeout", "3", "true").exit_code == 0
        return answered and living.starts()[node] != start and living.nodes()[node]["state"] == "ready"

    wait_until(is_back, what="the node is ready again", timeout_s=60)
    assert living.ok("ssh", "--node", "1", "--command", asked) == before


def elastic_addresses(cluster: Rehearsed) -> dict[str, str]:
    """Instance id → the elastic IP that AWS's API says is on it."""
    ec2 = clients_of(cluster.env).ec2
    rows = ec2.describe_addresses()["Addresses"]
    ec2.close()
    return {row["InstanceId"]: row["PublicIp"] for row in rows if "InstanceId" in row}
