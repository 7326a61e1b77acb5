"""`target: hosts` on booted machines that somebody else set up: from `up` to `down`, and what is left as it was."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.integration.hosts.foreign import ANSWER_S, BOTH, USER, Foreign, address
from tests.integration.jobs.container_image import MAKE_IMAGE
from tests.integration.rehearsed import wait_until

ENV = 'env: {GREETING: "it\'s me"}\ncaps: {runtime: 2h}\nprice_usd_per_hour: 12.5\n'


def test_hosts_become_nodes_run_a_job_and_are_as_before_after_down(net: Foreign, tmp_path: Path) -> None:
    before = [net.snapshot(number) for number in (1, 2)]
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH, more=ENV))
    planned = net.ok("plan", stack)
    assert "lab@hosts · 2 × host · $25.00/h · nothing ends these hosts" in planned
    assert "no deadline and no cap ends them" in planned
    assert "(caps.runtime, which is advice only)" in planned

    up = net.clusterctl("up", stack, "--yes")
    assert up.returncode == 0, up.stderr
    assert "(caps.runtime, which is advice only)" in up.stderr
    status = json.loads(net.ok("status", "--json"))
    assert [node["state"] for node in status["nodes"]] == ["ready", "ready"]
    assert (status["deadline"], status["generation"], status["cluster"]) == (None, 1, "lab@hosts")
    # By ssh's own environment, by name over the declared keys, and as the hosts' own user.
    output = net.ok("ssh", "--node", "all", 'echo "$GREETING $NODE_RANK $MASTER_ADDR"; ssh lab-1 id -un')
    assert sorted(output.splitlines()) == sorted(
        [f"[lab-{slot}] it's me {slot} {address(1)}" for slot in (0, 1)] + [f"[lab-{slot}] {USER}" for slot in (0, 1)]
    )
    assert "NODE_RANK='1'" in net.ok("env", "--node", "1")
    assert "GLOO_SOCKET_IFNAME='host0'" in net.ok("env", "--node", "1")
    # Whoever else is on the machine goes to the other one as before.
    goes_as = net.ssh(1, "sudo ssh -G lab-1 | grep '^user '; ssh -G lab-1 | grep '^user '").stdout
    assert goes_as == f"user root\nuser {USER}\n"
    assert "membership of generation 1: 2 nodes" in net.ok("logs", "--node", "0")
    job = net.ok("run", "--node", "all", "--yes", "--", "sh", "-c", "echo rank $NODE_RANK of $NNODES")
    assert "rank 0 of 2" in job
    assert "rank 1 of 2" in job
    assert net.ssh(1, KEEPS_SHARED_MEMORY).stdout == "b false\n"
    named = net.ok("run", "--node", "0", "--name", "kept", "--", "echo", "outlives its node")
    assert "outlives its node" in named
    for verb in (["extend", "1h"], ["replace", "--node", "0"], ["cost"]):
        refused = net.clusterctl(*verb, "--cluster", "lab")
        assert refused.returncode == 2, verb
        assert f"{verb[0]} is not for lab@hosts" in refused.stderr

    net.ok("up", stack, "--yes")
    assert json.loads(net.ok("status", "--json"))["generation"] == 1, "nothing is new, so no membership is pushed again"
    net.ok("cp", f"{stack}/cluster.yaml", "all:/tmp/")
    assert net.ok("ssh", "--node", "all", "head -n 1 /tmp/cluster.yaml").count("target: hosts") == 2
    net.ok("sync", f"{stack}/", "all:synced/")
    assert net.ok("ssh", "--node", "all", "head -n 1 synced/cluster.yaml").count("target: hosts") == 2
    assert net.ssh(1, "rm -r synced").returncode == net.ssh(2, "rm -r synced").returncode == 0
    net.ok("check")
    net.ok("top")
    done = net.clusterctl("down", "--cluster", "lab@hosts", "--yes")
    assert done.returncode == 0, done.stderr
    assert "kept here" not in done.stderr, "attached commands have brought all of it"
    assert [net.snapshot(number) for number in (1, 2)] == before
    assert (
        net.ssh(1, "systemctl list-unit-files 'clusterctl*' --no-legend; systemctl is-active ssh").stdout == "active\n"
    )
    assert net.ssh(1, KEEPS_SHARED_MEMORY).stdout == "b true\n", "logind is as before, and has read that"
    assert net.clusterctl("nodes").returncode == 3
    kept = net.ok("job", "logs", "kept", "--cluster", "lab", "--node", "lab-0")
    assert "outlives its node" in kept, "the output is kept here"


KEEPS_SHARED_MEMORY = (
    "sudo busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager RemoveIPC"
)
"""What logind does with the shared memory of a user who logs out."""
OWNERS = """
sudo cp -a /etc/ssh/sshd_config /root/sshd_config && sudo cp -a /etc/hosts /root/hosts
printf 'AuthorizedKeysFile /etc/ssh/keys/%%u\\nMatch User ada\\n    AuthorizedKeysFile .ssh/authorized_keys\\n' |
  sudo tee -a /etc/ssh/sshd_config
printf '127.0.1.1 lab-0.corp.example lab-0\\n10.9.9.9 storage\\n' | sudo tee -a /etc/hosts
sudo systemctl reload ssh && sudo systemd-run --unit clusterctl-reap sleep infinity
"""
BACK = """
sudo mv /root/sshd_config /etc/ssh/sshd_config; sudo mv /root/hosts /etc/hosts
sudo systemctl reload ssh; sudo systemctl stop clusterctl-reap
"""


def keys_of(net: Foreign, user: str, address_from: str) -> list[str]:
    """Where the first host's sshd finds the keys of a user who comes from an address."""
    spec = f"user={user},host=x,addr={address_from},laddr={address(1)},lport=22"
    return net.ssh(1, f"sudo sshd -T -C {spec} | grep -i ^authorizedkeysfile").stdout.split()[1:]


def test_what_the_owner_set_holds_for_everybody_else_and_is_there_after_down(net: Foreign, tmp_path: Path) -> None:
    """Settings of sshd for all and for one user, a name at a loopback address, a unit that is called like ours."""
    assert net.ssh(1, OWNERS).returncode == 0
    try:
        before = net.snapshot(1)
        stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
        for _ in range(2):
            net.ok("up", stack, "--yes")
            assert keys_of(net, USER, address(2)) == [".ssh/authorized_keys", "/etc/ssh/clusterctl/keys-%u"]
            assert keys_of(net, USER, "10.0.0.1") == [".ssh/authorized_keys"]
            assert keys_of(net, "root", address(2)) == ["/etc/ssh/keys/%u"]
        output = net.ok("ssh", "--node", "all", "getent hosts lab-0; ssh lab-0 id -un; ssh lab-1 id -un")
        assert sorted(set(output.split())) == sorted({"[lab-0]", "[lab-1]", address(1), "lab-0", USER})
        net.ok("down", stack, "--yes")
        assert net.snapshot(1) == before
        assert net.ssh(1, "systemctl is-active clusterctl-reap").stdout == "active\n"
    finally:
        net.ssh(1, BACK)


def test_a_remove_that_is_cut_short_is_known_and_done_again(net: Foreign, tmp_path: Path) -> None:
    before = net.snapshot(1)
    stack = str(net.write_stack(tmp_path / "lab", hosts=f"  - {address(1)}\n"))
    net.ok("up", stack, "--yes")
    busy = "/var/lib/clusterctl/zz"
    assert net.ssh(1, f"sudo mkdir {busy} && sudo mount -t tmpfs none {busy}").returncode == 0
    done = net.clusterctl("down", stack, "--yes")
    left = net.ssh(1, f"ls /var/lib/clusterctl; sudo umount {busy}").stdout.split()
    assert left == ["birth.json", "host.json", "zz"]
    assert done.returncode == 4, done.stderr
    assert f"1 host could not be cleaned: {address(1)}" in done.stderr
    net.ok("down", stack, "--yes")
    assert net.snapshot(1) == before


def test_a_host_that_boots_again_is_a_node_again(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
    net.ok("up", stack, "--yes")
    booted = net.ssh(1, "cat /run/clusterctl/boot-id").stdout
    net.driver.reboot(net.name, "gpu-1")
    wait_until(
        lambda: net.ssh(1, "cat /run/clusterctl/boot-id").stdout not in ("", booted),
        what="another boot",
        timeout_s=ANSWER_S,
    )
    net.ok("up", stack, "--yes")
    status = json.loads(net.ok("status", "--json"))
    assert [(node["state"], node["membership"]) for node in status["nodes"]] == [("ready", None)] * 2
    net.ok("down", stack, "--yes")


def test_a_host_that_down_does_not_reach_stays_known_until_it_is_clean(net: Foreign, tmp_path: Path) -> None:
    before = [net.snapshot(number) for number in (1, 2)]
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
    net.ok("up", stack, "--yes")
    net.driver.unplug(net.name, "gpu-2")
    try:
        done = net.clusterctl("down", stack, "--yes")
    finally:
        net.driver.plug(net.name, "gpu-2")
    assert done.returncode == 4, done.stderr
    assert f"1 host could not be cleaned: {address(2)}; lab@hosts stays known" in done.stderr
    assert net.snapshot(1) == before[0]
    assert [row["public_ip"] for row in json.loads(net.ok("nodes", "--json"))["nodes"]] == [address(2)]
    net.ok("down", stack, "--yes")
    assert net.snapshot(2) == before[1]
    assert net.clusterctl("nodes").returncode == 3


def test_a_node_of_one_cluster_is_refused_to_another(net: Foreign, tmp_path: Path) -> None:
    stack = str(net.write_stack(tmp_path / "lab", hosts=BOTH))
    net.ok("up", stack, "--yes")
    other = net.write_stack(tmp_path / "other", hosts=f"  - {address(1)}\n")
    text = (other / "cluster.yaml").read_text()
    (other / "cluster.yaml").write_text(text.replace("name: lab", "name: other"))
    done = net.clusterctl("up", str(other), "--yes")
    assert done.returncode == 1
    assert "it is a node of another cluster" in done.stderr
    # One host fewer: the host that leaves is cleaned, the one that stays gets the new membership.
    net.write_stack(tmp_path / "lab", hosts=f"  - {address(1)}\n")
    net.ok("up", stack, "--yes")
    assert net.ok("ssh", "--cluster", "lab", "--node", "0", "echo $NNODES; cat /etc/clusterctl/hostfile") == (
        "1\nlab-0 slots=1\n"
    )
    assert net.ssh(2, "ls /etc/clusterctl").returncode == 2
    net.ok("down", stack, "--yes")


SECOND_USER = """
sudo useradd -m -s /bin/bash bob && sudo cp -a ~/.ssh ~bob/ && sudo chown -R bob ~bob/.ssh
echo 'bob ALL=(ALL) NOPASSWD:ALL' | sudo tee /etc/sudoers.d/bob; echo mine > ~/.ssh/mine
"""


def test_another_login_user_takes_over_and_the_one_before_has_what_was_theirs(net: Foreign, tmp_path: Path) -> None:
    assert net.ssh(1, SECOND_USER).returncode == 0
    try:
        before = net.snapshot(1)
        hosts = f"  - {address(1)}\n"
        stack = str(net.write_stack(tmp_path / "lab", hosts=hosts))
        net.ok("up", stack, "--yes")
        assert net.ssh(1, "ls ~/.ssh").stdout.split() == ["authorized_keys", "environment", "mine"]
        net.write_stack(tmp_path / "lab", hosts=hosts, user="bob")
        net.ok("up", stack, "--yes")
        assert net.ok("ssh", "--node", "0", "id -un; echo $NODE_RANK") == "bob\n0\n"
        assert net.ssh(1, "ls ~/.ssh; sudo ls ~bob/.ssh").stdout.split() == [
            *("authorized_keys", "mine"),
            *("authorized_keys", "environment"),
        ]
        net.ok("down", stack, "--yes")
        assert net.snapshot(1) == before
    finally:
        net.ssh(1, "sudo userdel -r bob; sudo rm /etc/sudoers.d/bob; rm ~/.ssh/mine")


def test_down_ends_a_job_s_containers_and_waits_for_whoever_changes_the_host(net: Foreign, tmp_path: Path) -> None:
    assert net.ssh(1, f"sudo sh -c {shlex.quote(MAKE_IMAGE)}").returncode == 0
    before = net.snapshot(1)
    stack = str(net.write_stack(tmp_path / "lab", hosts=f"  - {address(1)}\n"))
    net.ok("up", stack, "--yes")
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stays = f"{deaf}; print('running in', os.environ['container'], flush=True); time.sleep(98765)"
    options = ("--image", "test/python:1", "--launcher", "plain", "--name", "stays", "--detach")
    net.ok("run", *options, "--", "python3", "-c", stays)
    wait_until(
        lambda: net.ok("job", "logs", "stays").endswith(" running in podman\n"),
        what="the container runs",
        timeout_s=30,
    )
    # Somebody else's install has the host until the remove is there, which then waits its turn.
    assert net.ssh(1, HELD_UNTIL_ANOTHER_COMES).returncode == 0
    done = net.clusterctl("down", stack, "--yes")
    assert done.returncode == 0, done.stderr
    assert "the output of 1 job is kept here: clusterctl job logs stays" in done.stderr
    assert net.ssh(1, "cat /run/other-came; sudo rm /run/other-came").stdout == "waited\n"
    assert net.ssh(1, "sudo podman ps --all --quiet; pgrep -f 'sleep.9876[5]'").stdout == ""
    assert net.snapshot(1) == before
    assert net.ok("job", "logs", "stays").endswith(" running in podman\n")


HELD_UNTIL_ANOTHER_COMES = """
sudo systemd-run --quiet --collect --unit holder flock /run/clusterctl-host.lock sh -c '
  touch /run/holder-has; until pgrep -f "^/usr/bin/python3 -ISc"; do sleep 0.1; done; echo waited > /run/other-came'
until [ -e /run/holder-has ]; do sleep 0.1; done; sudo rm /run/holder-has
"""
"""A lock that is let go once the program that removes runs: no other has these flags."""
