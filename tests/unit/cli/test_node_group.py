"""Groups and connections for Python programs, without connecting to a node."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any  # what a program may pass

import clusterctl
import fabric
import paramiko
import pytest
from clusterctl.node_group.connection import ClusterAccess, SlotConnection
from clusterctl.node_group.options import run_options
from clusterctl.ssh.deadlines import Deadlines
from clusterctl_infra.errors import ClusterctlError, NothingMatched, UsageError
from clusterctl_infra.keys import host_key
from clusterctl_infra.outputs import Inventory, InventorySsh, inventory_to_json
from clusterctl_infra.private_home import make_private_folder

from tests.unit.cli.conftest import MakeInventory

KEY = "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(range(32))).decode()


def kept(inventory: Inventory, home: Path) -> None:
    """This computer knows the cluster, and has its key."""
    folder = home / "inventory"
    make_private_folder(folder)
    (folder / f"{inventory.cluster}.json").write_text(json.dumps(inventory_to_json(inventory)))


def connection(inventory: Inventory, slot: int) -> SlotConnection:
    return SlotConnection(ClusterAccess(inventory=inventory, deadlines=Deadlines()), inventory.nodes[slot])


def test_an_index_is_a_slot_and_a_slice_a_group(make_inventory: MakeInventory, own_home: Path) -> None:
    inventory = make_inventory(size=6)
    kept(replace(inventory, nodes=inventory.nodes[2:]), own_home)
    group = clusterctl.nodes("train")
    assert isinstance(group, fabric.Group)
    assert [each.node.slot for each in group] == [2, 3, 4, 5]
    assert group[3].node.name == "train-3"
    assert [each.node.slot for each in group[0:4]] == [2, 3]
    assert isinstance(group[0:4], clusterctl.NodeGroup)
    assert [each.node.slot for each in clusterctl.nodes("train", node="4-5,2")] == [2, 4, 5]
    for absent in (0, 6, -1):
        with pytest.raises(IndexError, match=f"no slot {absent} in this group: it has 2-5"):
            group[absent]
    with pytest.raises(NothingMatched, match="no node 0: train has nodes 2-5"):
        clusterctl.nodes("train", node="0")
    with pytest.raises(NothingMatched, match="no such cluster"):
        clusterctl.nodes("trian")


def test_a_home_that_others_can_write_is_refused_and_one_that_they_can_read_is_closed(
    make_inventory: MakeInventory, own_home: Path
) -> None:
    kept(make_inventory(), own_home)
    own_home.chmod(0o777)
    with pytest.raises(UsageError, match="can be written by other users"):
        clusterctl.nodes("train")
    own_home.chmod(0o755)
    with pytest.warns(UserWarning, match="could be read by other users"):
        clusterctl.nodes("train")
    assert own_home.stat().st_mode & 0o777 == 0o700


def test_only_the_same_slot_of_the_same_cluster_is_equal(make_inventory: MakeInventory) -> None:
    train = make_inventory()
    other = make_inventory(cluster="other", cluster_id="ba9876543210")
    assert connection(train, 1) == connection(train, 1)
    assert hash(connection(train, 1)) == hash(connection(train, 1))
    assert connection(train, 1).host == connection(other, 1).host
    assert connection(train, 1) != connection(other, 1)
    assert connection(train, 1) != fabric.Connection("10.0.8.1", user="ubuntu", config=fabric.Config(lazy=True))
    assert connection(train, 1) < connection(train, 2)


def test_a_connection_is_told_all_by_the_inventory(
    make_inventory: MakeInventory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  User nobody\n  ProxyJump elsewhere\n  ForwardAgent yes\n")
    (tmp_path / ".fabric.json").write_text(json.dumps({"user": "nobody", "gateway": "elsewhere"}))
    ssh = InventorySsh(user="ubuntu", key_file="k", proxy_command=("ssh", "-W", "{host}:{port}", "bastion"), port=2222)
    inventory = make_inventory(ssh=ssh)
    inventory = replace(inventory, nodes=tuple(replace(node, host_public_key=KEY) for node in inventory.nodes))
    node = connection(inventory, 3)
    assert (node.host, node.user, node.port, node.forward_agent) == ("10.0.8.3", "ubuntu", 2222, False)
    assert node.gateway == "ssh -W 10.0.8.3:2222 bastion"
    assert repr(node) == "<SlotConnection train-3 ubuntu@10.0.8.3:2222>"
    keys = node.client.get_host_keys()
    assert [(host, list(keys[host])) for host in keys] == [("[10.0.8.3]:2222", ["ssh-ed25519"])]
    assert isinstance(vars(node.client)["_policy"], paramiko.RejectPolicy)


def test_a_node_without_an_address_says_so_when_it_is_opened(make_inventory: MakeInventory, own_home: Path) -> None:
    make_private_folder(own_home / "keys")
    (own_home / "keys" / "k").write_text(host_key(bytes(32), 1).private_pem)
    inventory = make_inventory(ssh=InventorySsh(user="ubuntu", key_file="k", proxy_command=None, address="public"))
    node = connection(inventory, 0)
    with pytest.raises(ClusterctlError, match="train-0 has no public address yet"):
        node.open()


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        ("run", {"pty": True}, "run(pty=True) on a group of nodes: several nodes cannot share a terminal"),
        ("run", {"watchers": [object]}, "nobody answers prompts on several nodes"),
        ("run", {"asynchronous": True}, "a group waits for all its nodes"),
        ("run", {"disown": True}, "what a group starts ends with it"),
        ("run", {"dry": True}, "a connection alone has it, nodes(…)[0].run(…)"),
        ("run", {"echo_stdin": True}, "a connection alone has it"),
        ("run", {"shell": "/bin/zsh"}, "the login user's shell on the node runs the command"),
        ("run", {"replace_env": False}, "never gets the variables of this program"),
        ("run", {"fallback": False}, "no terminal to fall back from"),
        ("run", {"env": {"A B": "x"}}, "env has 'A B', which is not a valid variable name"),
        ("run", {"timeout": 0}, "timeout=0: a time in seconds is more than nothing"),
        ("sudo", {"user": "postgres"}, "sudo(user='postgres') on a group of nodes: a group's sudo is for root"),
        ("sudo", {"password": "secret"}, "sudo on the nodes asks for no password"),
    ],
)
def test_what_a_group_cannot_do_is_refused_by_name_before_anything_is_sent(
    verb: str, options: dict[str, Any], message: str, make_inventory: MakeInventory, own_home: Path
) -> None:
    kept(make_inventory(), own_home)
    with pytest.raises(UsageError) as caught:
        getattr(clusterctl.nodes("train"), verb)("true", **options)
    assert message in caught.value.message


def test_the_password_that_is_refused_is_not_repeated(make_inventory: MakeInventory, own_home: Path) -> None:
    kept(make_inventory(), own_home)
    with pytest.raises(UsageError) as caught:
        clusterctl.nodes("train").sudo("true", password="secret")
    assert "secret" not in caught.value.message


def test_an_option_that_invoke_does_not_know_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="run\\(\\) got an unexpected keyword argument 'warm'"):
        run_options("true", {"warm": True}, verb="run")
    with pytest.raises(TypeError, match="unexpected keyword argument 'user'"):
        run_options("true", {"user": "root"}, verb="run")


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({}, "hidden", ()),
        ({"hide": True}, "hidden", ("stdout", "stderr")),
        ({"hide": "err"}, "hidden", ("stderr",)),
        ({"hide": "both", "out_stream": io.StringIO()}, "hidden", ("stderr",)),
        ({"pty": False, "watchers": [], "replace_env": True, "shell": None}, "warn", False),
        ({"warn": None}, "warn", False),
        ({"echo": True, "echo_format": "$ {command}"}, "echo_line", "$ uptime"),
        ({"echo": True, "hide": True}, "echo_line", None),
        ({"env": {"RANKS": 4}}, "environment", {"RANKS": "4"}),
        ({"in_stream": False}, "in_stream", None),
        ({"timeout": 2}, "timeout_s", 2),
    ],
)
def test_options_mean_what_they_mean_to_invoke(given: dict[str, Any], name: str, value: object) -> None:
    assert getattr(run_options("uptime", given, verb="run"), name) == value


def test_a_group_is_of_one_cluster_and_runs_its_own_words_alone(make_inventory: MakeInventory, own_home: Path) -> None:
    kept(make_inventory(), own_home)
    group = clusterctl.nodes("train")
    with group[1].cd("/scratch"), pytest.raises(UsageError, match=r"cd\(\) or prefix\(\) of <SlotConnection train-1"):
        group.run("ls")
    group.append(connection(make_inventory(cluster="other"), 0))
    with pytest.raises(UsageError, match="is no node of the cluster that this group is of"):
        group.run("ls")
    with pytest.raises(UsageError, match=r"preserve_mode=False\) on a group"):
        group.put("a", preserve_mode=False)
    assert clusterctl.NodeGroup().run("ls") == {}


def test_a_file_object_needs_a_place_and_cannot_take_several_files(
    make_inventory: MakeInventory, own_home: Path
) -> None:
    kept(make_inventory(), own_home)
    group = clusterctl.nodes("train")
    with pytest.raises(ValueError, match="needs the path of a file on the nodes"):
        group.put(io.BytesIO(b"x"))
    with pytest.raises(UsageError, match="would take the files of all nodes as one"):
        group.get("a", local=io.BytesIO())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a file on the nodes is needed"):
        group.get("folder/")


def test_the_package_has_nothing_else_that_it_loads_on_use() -> None:
    with pytest.raises(AttributeError, match="module 'clusterctl' has no attribute 'node'"):
        _ = clusterctl.node  # type: ignore[attr-defined]
