"""Hosts by IPv6, at another port than 22, and behind a bastion."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path

from clusterctl_infra.keys import host_key

from tests.integration.hosts.foreign import SEED, USER, Foreign, address, address_6

PORTS = "/etc/ssh/sshd_config.d/10-ports.conf"
AT_BOTH_PORTS = f"printf 'Port 22\\nPort 2222\\n' | sudo tee {PORTS} && sudo systemctl restart ssh"
AT_ONE_PORT = f"sudo rm -f {PORTS}; sudo systemctl restart ssh"
GROUP = """
import clusterctl
lab = clusterctl.nodes("lab")
print(*sorted(each.stdout.strip() for each in lab.run("hostname", hide=True).values()))
print(lab[1].run("hostname", hide=True, in_stream=False).stdout.strip())
"""


def test_hosts_by_ipv6_and_at_another_port_work_as_others_do(net: Foreign, tmp_path: Path) -> None:
    """From here and from host to host; the second host's key is declared for its port."""
    for number in (1, 2):
        net.gain_ipv6(number)
    with (net.folder / "known_hosts").open("a") as file:
        file.write(f"{address_6(1)} {host_key(SEED, 1).public}\n[{address_6(2)}]:2222 {host_key(SEED, 2).public}\n")
    assert net.ssh(2, AT_BOTH_PORTS).returncode == 0
    try:
        before = [net.snapshot(number) for number in (1, 2)]
        hosts = f"  - '{address_6(1)}'\n  - {{address: '{address_6(2)}', port: 2222}}\n"
        stack = str(net.write_stack(tmp_path / "lab", hosts=hosts))
        net.ok("up", stack, "--yes")
        output = net.ok("ssh", "--node", "all", "echo $MASTER_ADDR $NCCL_SOCKET_FAMILY ${SSH_CONNECTION##* }")
        assert sorted(output.splitlines()) == [
            f"[lab-0] {address_6(1)} AF_INET6 22",
            f"[lab-1] {address_6(1)} AF_INET6 2222",
        ]
        there = net.ok("ssh", "--node", "0", "ssh lab-1 'echo ${SSH_CONNECTION}'").split()
        assert (there[0], there[2:]) == (address_6(1), [address_6(2), "2222"])
        net.ok("check")
        net.ok("cp", f"{stack}/cluster.yaml", "all:/tmp/")
        net.ok("sync", f"{stack}/", "all:synced/")
        assert net.ok("ssh", "--node", "all", "head -n 1 synced/cluster.yaml; rm -r synced").count("hosts") == 2
        assert "membership of generation 1: 2 nodes" in net.ok("logs", "--node", "1")
        met = net.ok("ssh", "--node", "all", "sudo -n clusterctl-node barrier met")
        assert met.count('{"barrier": "met"') == 2
        script = "echo rank $NODE_RANK of $NNODES by $JAX_COORDINATOR_ADDRESS"
        job = net.ok("run", "--node", "all", "--yes", "--", "sh", "-c", script)
        assert all(f"rank {rank} of 2 by [{address_6(1)}]:" in job for rank in (0, 1))
        assert net.python(GROUP).stdout == "gpu-1 gpu-2\ngpu-2\n"
        net.ok("down", stack, "--yes")
        assert [net.snapshot(number) for number in (1, 2)] == before
    finally:
        net.clean()
        net.ssh(2, AT_ONE_PORT)


def test_hosts_behind_a_bastion_are_reached_through_it_alone(net: Foreign, tmp_path: Path) -> None:
    """Only the bastion, with a real sshd, knows the hosts' names; this computer's ssh settings say how to reach it."""
    names = "".join(f"{address(number)} gpu-{number}.lab.internal\n" for number in (1, 2))
    assert net.ssh(4, f"printf %s {shlex.quote(names)} | sudo tee -a /etc/hosts").returncode == 0
    settings = tmp_path / "ssh_config"
    settings.write_text(
        f"Host door.example.com\n  HostName {address(4)}\n  HostKeyAlias {address(4)}\n  User {USER}\n"
        f"  IdentityFile {net.key_file}\n  UserKnownHostsFile {net.folder}/known_hosts\n"
        "  StrictHostKeyChecking yes\n"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {settings} "$@"\n')
    (tmp_path / "bin/ssh").chmod(0o755)
    inside = replace(net, environ=(("PATH", f"{tmp_path}/bin:{os.environ['PATH']}"),))
    keys = {number: " ".join(host_key(SEED, number).public.split()[:2]) for number in (1, 2)}
    hosts = "".join(
        f"  - {{address: gpu-{number}.lab.internal, private_ip: {address(number)}, host_key: {keys[number]}}}\n"
        for number in (1, 2)
    )
    before = [net.snapshot(number) for number in (1, 2)]
    stack = str(net.write_stack(tmp_path / "lab", hosts=hosts, bastion="door.example.com"))
    try:
        inside.ok("up", stack, "--yes")
        assert [row["state"] for row in json.loads(inside.ok("status", "--json"))["nodes"]] == ["ready", "ready"]
        output = inside.ok("ssh", "--node", "all", "echo $NODE_RANK; ssh lab-1 hostname")
        assert sorted(output.split()) == sorted(
            ["[lab-0]", "0", "[lab-0]", "gpu-2", "[lab-1]", "1", "[lab-1]", "gpu-2"]
        )
        inside.ok("cp", f"{stack}/cluster.yaml", "all:/tmp/")
        inside.ok("sync", f"{stack}/", "1:synced/")
        assert inside.ok("ssh", "--node", "1", "cat synced/cluster.yaml; rm -r synced").startswith("target: hosts")
        job = inside.ok("run", "--node", "all", "--yes", "--name", "far", "--", "sh", "-c", "echo rank $NODE_RANK")
        assert "rank 0" in job
        assert "rank 1" in job
        assert "generation 1" in inside.ok("logs", "--node", "0")
        inside.ok("down", stack, "--yes")
        assert [net.snapshot(number) for number in (1, 2)] == before
        assert "rank 1" in inside.ok("job", "logs", "far")
    finally:
        inside.clean()
        net.ssh(4, "sudo sed -i /lab.internal/d /etc/hosts")
