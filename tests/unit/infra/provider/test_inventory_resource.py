"""The Inventory resource: the files by which the command line knows a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any  # property values

import pytest
from clusterctl_infra.provider.inventory_resource import InventoryResource
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.property_values import UNKNOWN, has_unknown
from clusterctl_infra.provider.resource import Place

PLACE = Place(stack_name="dev")
PREVIEW = Place(stack_name="dev", preview=True)


def inventories(home: Path, **environ: str) -> InventoryResource:
    """The resource kind, run from a folder of that name."""
    return InventoryResource(home=LocalHome(root=home), environ=environ, working_dir=Path("/stacks/train"))


def inputs(*, rehearsal: bool = False, nodes: int = 2, **changes: Any) -> dict[str, Any]:
    """What the component hands over."""
    cluster = "train@rehearsal" if rehearsal else "train"
    inventory = {
        "version": 1,
        "name": "train",
        "cluster": cluster,
        "cluster_id": "0123456789ab",
        "run": 1,
        "rehearsal": rehearsal,
        "generation": 0,
        "deadline": "2026-03-02T12:00:00+00:00",
        "ssh": {"user": "ubuntu", "key_file": f"{cluster}/id_ed25519", "proxy_command": None},
        "nodes": [
            {"slot": slot, "name": f"train-{slot}", "instance_id": None, "public_ip": None} for slot in range(nodes)
        ],
        **changes,
    }
    return {"inventory": inventory, "login_key": "the key\n"}


def written(home: Path, cluster: str = "train") -> dict[str, Any]:
    """The inventory file."""
    rows = json.loads((home / "inventory" / f"{cluster}.json").read_text())
    assert isinstance(rows, dict)
    return rows


def test_files_are_for_their_owner_alone(own_home: Path) -> None:
    id, _ = inventories(own_home).create(inputs(), PLACE)
    key = own_home / "keys" / "train" / "id_ed25519"
    assert id == "train"
    assert key.read_text() == "the key\n"
    for file in (key, own_home / "inventory" / "train.json"):
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700


def test_the_file_says_where_the_stack_is_and_what_it_is_called(own_home: Path) -> None:
    inventories(own_home).create(inputs(), PLACE)
    assert (written(own_home)["stack_dir"], written(own_home)["stack_name"]) == ("/stacks/train", "dev")
    named = inventories(own_home, CLUSTERCTL_STACK_DIR="/elsewhere", CLUSTERCTL_STACK_NAME="prod")
    named.create(inputs(), PLACE)
    assert (written(own_home)["stack_dir"], written(own_home)["stack_name"]) == ("/elsewhere", "prod")


def test_a_rehearsed_node_is_reached_through_its_own_network(own_home: Path) -> None:
    inventories(own_home).create(inputs(rehearsal=True), PLACE)
    command = written(own_home, "train@rehearsal")["ssh"]["proxy_command"]
    assert command[:3] == [sys.executable, "-I", "-S"]
    assert command[3].endswith("clusterctl_rehearsal/machines/connect.py")
    assert command[4:] == [str(own_home / "rehearsal" / "machines"), "train", "{host}", "{port}"]


def test_a_real_node_is_reached_directly(own_home: Path) -> None:
    inventories(own_home).create(inputs(), PLACE)
    assert written(own_home)["ssh"]["proxy_command"] is None


def test_a_preview_writes_nothing_and_may_not_know_the_inventory(own_home: Path) -> None:
    _, outputs = inventories(own_home).create({"inventory": UNKNOWN, "login_key": UNKNOWN}, PREVIEW)
    assert has_unknown(outputs)
    inventories(own_home).create(inputs(), PREVIEW)
    assert not own_home.exists()


def test_instance_ids_stay_when_the_plan_changes(own_home: Path) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(), PLACE)
    file = own_home / "inventory" / "train.json"
    live = {**written(own_home), "generation": 3}
    live["nodes"][1] |= {"instance_id": "i-1", "public_ip": "198.51.100.1"}
    file.write_text(json.dumps(live))
    kind.update(state, inputs(nodes=3, deadline="2026-03-03T12:00:00+00:00"), PLACE)
    rows = written(own_home)
    assert (rows["generation"], rows["deadline"]) == (3, "2026-03-03T12:00:00+00:00")
    assert [node["instance_id"] for node in rows["nodes"]] == [None, "i-1", None]


@pytest.mark.parametrize("changes", [{"run": 2}, {"cluster_id": "ba9876543210"}])
def test_a_new_run_and_another_cluster_begin_without_instances(own_home: Path, changes: dict[str, Any]) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(generation=0), PLACE)
    file = own_home / "inventory" / "train.json"
    live = written(own_home)
    live["nodes"][0]["instance_id"] = "i-0"
    file.write_text(json.dumps(live))
    kind.update(state, inputs(**changes), PLACE)
    assert [node["instance_id"] for node in written(own_home)["nodes"]] == [None, None]


def test_an_unchanged_inventory_is_no_difference(own_home: Path) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(), PLACE)
    assert kind.difference(state, inputs(), inputs()).changed == ()


@pytest.mark.parametrize("lost", ["inventory/train.json", "keys/train/id_ed25519"])
def test_a_lost_file_is_written_again_by_the_next_up(own_home: Path, lost: str) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(), PLACE)
    (own_home / lost).unlink()
    assert kind.difference(state, inputs(), inputs()).changed == ("inventory",)
    kind.update(state, inputs(), PLACE)
    assert (own_home / lost).exists()


def test_an_unreadable_file_is_written_again(own_home: Path) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(), PLACE)
    (own_home / "inventory" / "train.json").write_text("{")
    assert kind.difference(state, inputs(), inputs()).changed == ("inventory",)


def test_another_cluster_name_is_another_file(own_home: Path) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(), PLACE)
    assert kind.difference(state, inputs(), inputs(cluster="other")).replaced == ("inventory",)


def test_the_end_removes_the_files_unless_they_are_another_cluster_s(own_home: Path) -> None:
    kind = inventories(own_home)
    _, state = kind.create(inputs(), PLACE)
    kind.create(inputs(cluster_id="ba9876543210"), PLACE)
    kind.delete(state, PLACE)
    assert written(own_home)["cluster_id"] == "ba9876543210"
    kind.delete({**state, "cluster_id": "ba9876543210"}, PLACE)
    kind.delete(state, PLACE)
    assert [path.name for path in own_home.rglob("*") if path.is_file()] == [".lock"]


@pytest.mark.parametrize("cluster", ["", "../train", ".hidden"])
def test_a_name_that_leads_out_of_the_folder_is_refused(own_home: Path, cluster: str) -> None:
    failures = inventories(own_home).check(inputs(cluster=cluster))
    assert "cannot be a file's name" in failures[0].reason


def test_a_missing_part_is_named(own_home: Path) -> None:
    broken = inputs()
    del broken["inventory"]["nodes"]
    assert inventories(own_home).check(broken)[0].reason == "inventory lacks nodes"
