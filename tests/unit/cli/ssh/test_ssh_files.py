"""What is handed to OpenSSH: argv, configuration, known_hosts. Pure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.home import Home
from clusterctl.ssh.command import command_line
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.openssh_files import known_hosts_text, write_known_hosts
from clusterctl.ssh.openssh_config import ssh_config_text
from clusterctl.ssh.shared_session.opening import MOST_PAUSE_S, candidates, failure, master_argv
from clusterctl.ssh.shared_session_argv import opening_s, own_session, with_opening
from clusterctl.ssh.single.system_ssh import login_argv, quoted_path
from clusterctl.ssh.target import target_of
from clusterctl.ssh.way_in import missing_programs
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import InventorySsh

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory

PROXY = ("py", "-I", "/a b/connect.py", "train", "{host}", "{port}", "100%")


def with_proxy() -> InventorySsh:
    return InventorySsh(user="ubuntu", key_file="train/id_ed25519", proxy_command=PROXY)


def by_session_manager() -> InventorySsh:
    command = ("aws", "--target", "{instance_id}", "portNumber={port}")
    return InventorySsh(user="ubuntu", key_file="train/id_ed25519", proxy_command=command)


@pytest.mark.parametrize(
    ("argv", "line", "expected"),
    [
        ((), None, None),
        (("nvidia-smi",), None, "nvidia-smi"),
        (("echo $HOME | wc",), None, "echo $HOME | wc"),
        (("echo", "$HOME", "a b"), None, "echo '$HOME' 'a b'"),
        ((), "a; b", "a; b"),
        (("",), None, ""),
    ],
)
def test_one_word_is_a_line_and_several_are_quoted(
    argv: tuple[str, ...], line: str | None, expected: str | None
) -> None:
    assert command_line(argv, line) == expected


@pytest.mark.parametrize(
    ("argv", "line", "message"),
    [(("a", "b c"), "d", "two commands: --command d, and a 'b c'"), ((), " ", "--command is empty")],
)
def test_two_commands_or_an_empty_one_are_refused(argv: tuple[str, ...], line: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        command_line(argv, line)


def test_the_proxy_command_gets_host_and_port_and_nothing_else(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(ssh=with_proxy())
    target = target_of(inventory, inventory.nodes[2])
    assert target.proxy_argv == ("py", "-I", "/a b/connect.py", "train", "10.0.8.2", "22", "100%")


def test_session_manager_gets_the_instance_and_waits_for_one(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(ssh=by_session_manager())
    target = target_of(inventory, inventory.nodes[2])
    assert target.proxy_argv is not None
    assert own_session(target.proxy_argv) == ("aws", "--target", "i-00000000000000002", "portNumber=22")
    with pytest.raises(NodeFailure, match="train-2 has no machine yet"):
        target_of(inventory, replace(inventory.nodes[2], instance_id=None))


def test_only_a_shared_session_gets_more_time_to_open(make_inventory: MakeInventory) -> None:
    for ssh, has_more in ((by_session_manager(), True), (with_proxy(), False)):
        inventory = make_inventory(ssh=ssh)
        argv = target_of(inventory, inventory.nodes[2]).proxy_argv
        assert (opening_s(argv) > 0) is has_more
        assert (with_opening(Deadlines(), argv).total_s > Deadlines().total_s) is has_more


def test_the_shared_session_goes_by_slot_0_and_one_other_that_has_a_machine_and_was_not_silent(
    make_inventory: MakeInventory,
) -> None:
    inventory = make_inventory(size=4)
    nodes = (*inventory.nodes[:2], replace(inventory.nodes[2], instance_id=None), inventory.nodes[3])
    inventory = replace(inventory, nodes=nodes[::-1])
    assert [node.slot for node in candidates(inventory, "")] == [0, 1]
    assert [node.slot for node in candidates(inventory, str(nodes[0].instance_id))] == [1, 3]


def test_the_node_that_leads_gets_nothing_of_this_computer(make_inventory: MakeInventory, tmp_path: Path) -> None:
    inventory = make_inventory(ssh=with_proxy())
    first = inventory.nodes[0]
    argv = master_argv(target_of(inventory, first), inventory, first, Home(path=tmp_path), "control-1")
    assert {"ForwardAgent=no", "StrictHostKeyChecking=yes", "HostKeyAlias=train-0", "BatchMode=yes"} <= set(argv)
    assert not set(argv) & {"-A", "-R", "-L", "-D", "-X", "-Y"}
    assert {"ServerAliveInterval=15", "ServerAliveCountMax=3"} <= set(argv), (
        "it waits as long as a login to any node does"
    )
    assert "-f" not in argv, "without its socket it must not go into the background"


def test_the_pause_doubles_while_the_same_machines_fail() -> None:
    pauses, failed = [], failure({}, ("i-0", "i-1"), "refused")
    for _ in range(7):
        pauses.append(failed["pause_s"])
        failed = failure(failed, ("i-0", "i-1"), "refused")
    assert pauses == [15, 30, 60, 120, 240, 480, MOST_PAUSE_S]
    assert failure(failed, ("i-0", "i-2"), "silent") == {
        "reason": "silent", "instances": ["i-0", "i-2"], "pause_s": 15
    }  # fmt: skip


def test_a_missing_program_that_the_way_in_needs_is_named_with_its_source() -> None:
    assert missing_programs(("aws", "ssm"), which=lambda program: f"/bin/{program}") is None
    message = missing_programs(("aws", "ssm"), which=lambda program: None)
    assert message is not None
    assert "aws: install the AWS CLI (apt-get install awscli)" in message
    assert "session-manager-plugin: install AWS's Session Manager plugin (https://docs.aws.amazon.com/" in message
    assert missing_programs(("nc", "{host}"), which=lambda program: None) is None


def test_a_public_cluster_is_dialled_at_its_public_address(make_inventory: MakeInventory) -> None:
    ssh = InventorySsh(user="ubuntu", key_file=None, proxy_command=None, address="public")
    inventory = make_inventory(ssh=ssh)
    with pytest.raises(NodeFailure, match="train-1 has no public address yet"):
        target_of(inventory, inventory.nodes[1])
    node = replace(inventory.nodes[1], public_ip="203.0.113.9")
    assert target_of(inventory, node).place == "203.0.113.9:22"


def test_a_login_believes_only_the_declared_key_and_reads_no_configuration(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(ssh=with_proxy())
    argv = login_argv(
        target_of(inventory, inventory.nodes[2]),
        key_file=Path("/home/a b/id_ed25519"),
        known_hosts=Path("/k/known_hosts"),
        command="htop",
        is_terminal_wanted=True,
    )
    assert argv[:3] == ["ssh", "-F", "none"]
    assert argv[-4:] == ["-t", "ubuntu@10.0.8.2", "--", "htop"]
    settings = argv[3:-6]
    assert settings[::2] == ["-o"] * (len(settings) // 2)
    assert set(settings[1::2]) >= {
        "StrictHostKeyChecking=yes",
        "UserKnownHostsFile=/k/known_hosts",
        "GlobalKnownHostsFile=/dev/null",
        "HostKeyAlias=train-2",
        'IdentityFile="/home/a b/id_ed25519"',
        "ProxyCommand=py -I '/a b/connect.py' train 10.0.8.2 22 100%%",
    }


def test_an_rsa_host_key_is_asked_for_by_its_signatures_and_any_other_by_its_name(
    make_inventory: MakeInventory,
) -> None:
    inventory = make_inventory(size=2)
    nodes = (replace(inventory.nodes[0], host_public_key="ssh-rsa QUFB"), inventory.nodes[1])
    inventory = replace(inventory, nodes=nodes)
    expected = ("rsa-sha2-512,rsa-sha2-256", "ssh-ed25519")
    text = ssh_config_text(inventory, key_file=None, known_hosts=Path("/k/kh"))
    for node, algorithms in zip(inventory.nodes, expected, strict=True):
        argv = login_argv(target_of(inventory, node), key_file=None, known_hosts=Path("/k/kh"))
        assert f"HostKeyAlgorithms={algorithms}" in argv
        assert f"HostKeyAlgorithms {algorithms}\n" in text


def test_a_percent_sign_in_a_path_is_no_expansion() -> None:
    assert quoted_path(Path("/a%b/c")) == "/a%%b/c"


def test_known_hosts_are_found_by_the_nodes_names(make_inventory: MakeInventory) -> None:
    assert known_hosts_text(make_inventory(size=2)) == "train-0 ssh-ed25519 QUFB0000\ntrain-1 ssh-ed25519 QUFB0001\n"


def test_known_hosts_follow_the_inventory(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path)
    path = write_known_hosts(make_inventory(size=2), home)
    assert path == tmp_path / "keys" / "train" / "known_hosts"
    write_known_hosts(make_inventory(size=3), home)
    assert len(path.read_text().splitlines()) == 3


def test_the_configuration_block_has_a_session_for_each_node(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=2, ssh=by_session_manager())
    inventory = replace(inventory, nodes=(inventory.nodes[0], replace(inventory.nodes[1], instance_id=None)))
    text = ssh_config_text(inventory, key_file=Path("/k/id"), known_hosts=Path("/k/kh"))
    assert " train 10.0.8.0 22 aws --target i-00000000000000000 portNumber=22\n" in text
    assert "# train-1 has no machine yet" in text
    assert text.count("ProxyCommand") == 1


def test_the_configuration_block_names_every_node(make_inventory: MakeInventory) -> None:
    text = ssh_config_text(make_inventory(size=2, ssh=with_proxy()), key_file=Path("/k/id"), known_hosts=Path("/k/kh"))
    assert "Host train-0\n    HostName 10.0.8.0\n    HostKeyAlias train-0" in text
    assert "Host train-0 train-1\n    User ubuntu" in text
    assert "ProxyCommand py -I '/a b/connect.py' train %h %p 100%%" in text
    assert "StrictHostKeyChecking yes" in text
