"""Machines from a person's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl.copying.place import remote_place
from clusterctl.options import chosen_rows
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.target import target_of
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.outputs import Inventory, inventory_to_json

from tests.unit.cli.conftest import MakeInventory

NODE = {"name": "lab-a", "address": "10.0.0.1", "host_key": "ssh-ed25519 AAAA"}
OTHER = {**NODE, "name": "lab-b"}


def written(folder: Path, data: object) -> Path:
    path = folder / "lab.json"
    path.write_text(json.dumps(data))
    return path


def read(path: Path) -> Inventory:
    return read_any_inventory(path, ssh_config=path.with_name("ssh_config"))


def test_a_name_an_address_and_a_host_key_are_enough(tmp_path: Path) -> None:
    inventory = read(written(tmp_path, {"ssh": {"user": "me", "port": 2222}, "nodes": [NODE, OTHER]}))
    assert (inventory.cluster, [node.slot for node in inventory.nodes]) == ("lab", [0, 1])
    target = target_of(inventory, inventory.nodes[0])
    assert (target.user, target.place, target.host_key) == ("me", "10.0.0.1:2222", "AAAA")


def test_the_short_names_of_a_file_win_over_an_inventory_s_own(tmp_path: Path) -> None:
    """Somebody has added them to an inventory that clusterctl wrote: from here the node has another address."""
    both = {**NODE, "private_ip": "192.168.0.9", "host_public_key": "ssh-ed25519 BBBB"}
    inventory = read(written(tmp_path, {"nodes": [both]}))
    target = target_of(inventory, inventory.nodes[0])
    assert (target.host, target.host_key) == ("10.0.0.1", "AAAA")


def test_a_node_s_own_address_wins_in_a_public_cluster_too(tmp_path: Path) -> None:
    row = {**NODE, "private_ip": "192.168.0.9", "public_ip": "203.0.113.9"}
    inventory = read(written(tmp_path, {"ssh": {"address": "public"}, "nodes": [row]}))
    assert target_of(inventory, inventory.nodes[0]).host == "10.0.0.1"


def test_a_whole_inventory_is_read_as_it_is(tmp_path: Path, make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    assert read(written(tmp_path, inventory_to_json(inventory))) == inventory


def test_a_machine_is_chosen_by_its_own_name_whatever_number_is_in_it(tmp_path: Path) -> None:
    inventory = read(written(tmp_path, {"nodes": [{**NODE, "name": f"lab-0{number}"} for number in (1, 2, 3)]}))
    assert [node.name for node in chosen_rows(inventory, "lab-01,lab-[02-03]")] == ["lab-01", "lab-02", "lab-03"]
    assert [node.name for node in chosen_rows(inventory, "lab-02")] == ["lab-02"]
    place = remote_place("lab-01:/tmp/x", inventory)
    assert place is not None
    assert [node.name for node in place.nodes] == ["lab-01"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"nodes": [{**NODE, "name": ""}]}, "  nodes[0].name: missing"),
        ({"nodes": [NODE, {"name": "b", "address": "x"}]}, "  nodes[1].host_key: missing"),
        ({"nodes": ["lab-a"]}, "  nodes[0]: 'lab-a' is no node"),
        ({"nodes": [{**NODE, "slot": 1}, OTHER]}, "  nodes[1].slot: 1 is the slot of nodes[0], too"),
        ({"nodes": [NODE, {**OTHER, "slot": 0}]}, "  nodes[1].slot: 0 is the slot of nodes[0], too"),
        ({"nodes": [NODE, OTHER, {**NODE, "address": "x"}]}, "  nodes[2].name: 'lab-a' is the name of nodes[0], too"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_place(tmp_path: Path, data: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(written(tmp_path, data))
    assert caught.value.problems == (problem,)


@pytest.mark.parametrize("text", ["", "[]", '{"nodes": 3}', '{"nodes": []}'])
def test_a_file_that_is_no_inventory_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(ConfigError, match=r"--inventory .*lab\.json"):
        read(tmp_path / "lab.json")


CONFIG = """
Host lab-a
  HostName 10.9.9.9
  User ada
  Port 2201
  IdentityFile /keys/a
  ProxyJump one,two
Host *
  User everybody
  ProxyCommand nc -x proxy %h %p
"""


def test_what_the_file_leaves_open_the_ssh_configuration_says(tmp_path: Path) -> None:
    (tmp_path / "ssh_config").write_text(CONFIG)
    rows = [{"name": name, "host_key": "ssh-ed25519 AAAA"} for name in ("lab-a", "lab-b")]
    inventory = read(written(tmp_path, {"nodes": rows}))
    first, second = (target_of(inventory, node) for node in inventory.nodes)
    assert (first.host, first.user, first.port) == ("10.9.9.9", "ada", 2201)
    assert first.proxy_argv == ("ssh", "-J", "one", "-o", "BatchMode=yes", "-W", "[10.9.9.9]:2201", "two")
    assert (second.host, second.user, second.port) == ("lab-b", "everybody", 22)
    assert second.proxy_argv == ("sh", "-c", "exec nc -x proxy lab-b 22")
    assert [getattr(node, "identity_files", None) for node in inventory.nodes] == [("/keys/a",), ()]


@pytest.mark.parametrize("port", ["no-such-service", "0", "70000", "-1", "9" * 5000], ids=lambda port: port[:20])
def test_a_port_of_the_ssh_configuration_that_is_none_is_named_with_its_host(tmp_path: Path, port: str) -> None:
    (tmp_path / "ssh_config").write_text(f"Host lab-a\n  Port {port}\n")
    with pytest.raises(ConfigError, match=rf"^~/\.ssh/config, host lab-a: '{port[:50]}.* is no port") as refused:
        read(written(tmp_path, {"nodes": [{"name": "lab-a", "host_key": "ssh-ed25519 AAAA"}]}))
    assert refused.value.hint == "ssh -G lab-a"


def test_what_the_file_says_itself_wins(tmp_path: Path) -> None:
    (tmp_path / "ssh_config").write_text(CONFIG)
    ssh = {"user": "me", "port": 22, "proxy_command": ["nc", "{host}", "{port}"], "key_file": "/keys/mine"}
    inventory = read(written(tmp_path, {"ssh": ssh, "nodes": [NODE]}))
    target = target_of(inventory, inventory.nodes[0])
    assert (target.host, target.user, target.port) == ("10.0.0.1", "me", 22)
    assert target.proxy_argv == ("nc", "10.0.0.1", "22")
