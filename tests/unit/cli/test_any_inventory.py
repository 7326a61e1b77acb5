"""Machines from a person's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl.ssh.any_inventory import read_any_inventory
from clusterctl.ssh.target import target_of
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.conftest import MakeInventory

NODE = {"name": "lab-a", "address": "10.0.0.1", "host_key": "ssh-ed25519 AAAA"}


def written(folder: Path, data: object) -> Path:
    path = folder / "lab.json"
    path.write_text(json.dumps(data))
    return path


def test_a_name_an_address_and_a_host_key_are_enough(tmp_path: Path) -> None:
    inventory = read_any_inventory(written(tmp_path, {"ssh": {"user": "me", "port": 2222}, "nodes": [NODE, NODE]}))
    assert (inventory.cluster, [node.slot for node in inventory.nodes]) == ("lab", [0, 1])
    target = target_of(inventory, inventory.nodes[0])
    assert (target.user, target.place, target.host_key) == ("me", "10.0.0.1:2222", "AAAA")


def test_a_whole_inventory_is_read_as_it_is(tmp_path: Path, make_inventory: MakeInventory) -> None:
    inventory = make_inventory()
    assert read_any_inventory(written(tmp_path, inventory_to_json(inventory))) == inventory


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"nodes": [{**NODE, "address": ""}]}, "  nodes[0].address: missing"),
        ({"nodes": [NODE, {"name": "b", "address": "x"}]}, "  nodes[1].host_key: missing"),
        ({"nodes": ["lab-a"]}, "  nodes[0]: 'lab-a' is no node"),
    ],
)
def test_what_is_missing_is_named_with_its_place(tmp_path: Path, data: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_any_inventory(written(tmp_path, data))
    assert caught.value.problems == (said,)


@pytest.mark.parametrize("text", ["", "[]", '{"nodes": 3}'])
def test_a_file_that_is_no_inventory_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(ConfigError, match=r"--inventory .*lab\.json"):
        read_any_inventory(tmp_path / "lab.json")
