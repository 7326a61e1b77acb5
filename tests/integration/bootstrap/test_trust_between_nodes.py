"""Nodes reach each other by name and address without questions, and nobody else can pose as one of them."""

from __future__ import annotations

import pytest
from clusterctl_bootstrap.node.environment import DOMAIN

from tests.integration.bootstrap.bootstrapped import Bootstrapped, address

# What Open MPI's launcher runs for every other node of a hostfile: `ssh -x HOST orted …`, here with nobody to ask.
LAUNCH = "ssh -x -o BatchMode=yes -o StrictHostKeyChecking=yes"


def test_one_node_runs_commands_on_another_by_name_and_by_address(trio: Bootstrapped) -> None:
    for host in (trio.node(1), address(1), f"{trio.node(1)}.{DOMAIN}"):
        answer = trio.ssh(0, f"{LAUNCH} {host} hostname")
        assert (answer.out, answer.err) == (f"{trio.node(1)}\n", "")
    assert trio.output(2, f"{LAUNCH} {trio.node(0)} 'echo $NODE_RANK'") == "0\n"
    assert trio.output(0, "ls ~/.ssh") == "authorized_keys\nenvironment\n", "nothing had to be learned"


def test_root_of_one_node_uses_the_same_key(trio: Bootstrapped) -> None:
    assert trio.output(0, f"sudo {LAUNCH} ubuntu@{trio.node(1)} id -un") == "ubuntu\n"


def test_the_node_key_does_not_open_root_itself(trio: Bootstrapped) -> None:
    refused = trio.ssh(0, f"{LAUNCH} root@{trio.node(1)} id -un")
    assert refused.code == 255
    assert "Permission denied" in refused.err


def test_files_are_copied_between_nodes(trio: Bootstrapped) -> None:
    trio.output(0, f"echo weights >model && rsync -a model {trio.node(2)}:copied")
    assert trio.output(2, "cat copied") == "weights\n"


def test_a_machine_at_another_slots_address_is_refused(trio: Bootstrapped) -> None:
    """It has a certificate of the cluster's, but for another name."""
    trio.output(2, "sudo ip address add 10.0.8.9/20 dev host0")
    refused = trio.ssh(0, f"ssh -o BatchMode=yes -o HostKeyAlias={trio.node(1)} 10.0.8.9 hostname")
    assert refused.code == 255
    assert "name is not a listed principal" in refused.err
    assert "Host key verification failed" in refused.err


def test_a_foreign_key_is_refused_and_nobody_is_asked(trio: Bootstrapped) -> None:
    server = "sudo /usr/sbin/sshd -p 2222 -h $PWD/foreign -o HostCertificate=none"
    trio.output(2, f"ssh-keygen -q -t ed25519 -N '' -f foreign && {server}")
    refused = trio.ssh(0, f"ssh -o HostKeyAlias={trio.node(2)} -p 2222 {trio.node(2)} hostname")
    assert refused.code == 255
    assert "Host key verification failed" in refused.err


def test_from_elsewhere_the_node_key_opens_nothing(trio: Bootstrapped) -> None:
    """The key that is good between nodes is refused when it comes from an address that is none of theirs."""
    trio.output(0, "sudo ip address add 10.0.0.77/20 dev host0")
    refused = trio.ssh(0, f"{LAUNCH} -b 10.0.0.77 {trio.node(1)} hostname")
    assert refused.code == 255
    assert "Permission denied" in refused.err


@pytest.mark.parametrize("path", ["/etc/clusterctl/ssh_key", "/etc/clusterctl/barrier"])
def test_the_secrets_are_the_login_users_and_nobody_elses(trio: Bootstrapped, path: str) -> None:
    assert trio.output(1, f"stat -c '%U %a' {path}") == "ubuntu 600\n"
    assert trio.ssh(1, f"sudo -u nobody cat {path}").code == 1
