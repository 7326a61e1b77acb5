"""Which cluster of those that this computer knows a command means, and what is said where it knows none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.engine.known_clusters import find_cluster, matching_cluster
from clusterctl.engine.run_file import new_record, write_record
from clusterctl.home import Home
from clusterctl.system.processes import boot_id
from clusterctl_infra.errors import NothingMatched
from clusterctl_infra.outputs import InventoryUnreadable, inventory_to_json

STACKS = Path(__file__).parents[4] / "stacks"
CLUSTERCTL = "plugins:\n  providers:\n    - {name: clusterctl, path: ../../infra/plugin}\n"

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def keep(home: Home, make_inventory: MakeInventory, *clusters: str) -> None:
    home.inventory_dir.mkdir(parents=True)
    for cluster in clusters:
        text = json.dumps(inventory_to_json(make_inventory(cluster=cluster)))
        home.inventory_file(cluster).write_text(text)


def test_the_only_cluster_needs_no_name(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path)
    keep(home, make_inventory, "train@rehearsal")
    assert find_cluster(home, name=None, environ={}).cluster == "train@rehearsal"


def test_the_flag_goes_before_the_variable(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path)
    keep(home, make_inventory, "a", "b")
    environ = {"CLUSTERCTL_CLUSTER": "b"}
    assert find_cluster(home, name=None, environ=environ).cluster == "b"
    assert find_cluster(home, name="a", environ=environ).cluster == "a"


def test_several_clusters_are_named_when_none_is_chosen(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path)
    keep(home, make_inventory, "a", "b")
    with pytest.raises(
        NothingMatched, match="2 clusters here: a, b; name one with --cluster, or choose one for this shell"
    ) as caught:
        find_cluster(home, name=None, environ={})
    assert caught.value.hint == "export CLUSTERCTL_CLUSTER=a"


@pytest.mark.parametrize("name", [None, "train"])
def test_no_cluster_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NothingMatched) as caught:
        find_cluster(Home(path=tmp_path), name=name, environ={})
    assert caught.value.hint == "clusterctl up STACK  (STACK: a folder with Pulumi.yaml and cluster.yaml)"
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", [None, "train"])
def test_of_the_stacks_near_a_rehearsed_one_is_offered_and_of_others_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    """People type what follows `next:`, and none of these has said that a stack for AWS is meant."""
    monkeypatch.chdir(tmp_path)
    stacks = {"b c": CLUSTERCTL, "d": CLUSTERCTL, "aws": f"name: aws\n{CLUSTERCTL}"}
    for stack, text in stacks.items():
        (tmp_path / "stacks" / stack).mkdir(parents=True)
        (tmp_path / "stacks" / stack / "Pulumi.yaml").write_text(text)
        (tmp_path / "stacks" / stack / "cluster.yaml").touch()
    assert offered(tmp_path, name) == "clusterctl plan stacks/aws"
    (tmp_path / "stacks/d/Pulumi.yaml").write_text((STACKS / "rehearsal/Pulumi.yaml").read_text())
    assert offered(tmp_path, name) == "clusterctl up stacks/d"


def offered(home: Path, name: str | None) -> str | None:
    with pytest.raises(NothingMatched) as caught:
        find_cluster(Home(path=home), name=name, environ={})
    return caught.value.hint


@pytest.mark.parametrize(
    ("wanted", "known", "found"),
    [
        ("train", ["train"], "train"),
        ("train", ["train@rehearsal"], "train@rehearsal"),
        ("train", ["train", "train@rehearsal"], "train"),
        ("train@rehearsal", ["train", "train@rehearsal"], "train@rehearsal"),
    ],
)
def test_a_bare_name_means_the_rehearsal_when_no_other_is_called_so(wanted: str, known: list[str], found: str) -> None:
    assert matching_cluster(wanted, known, source="--cluster") == found


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(NothingMatched, match=r"--cluster trian: no such cluster \(did you mean train\?\)"):
        matching_cluster("trian", ["train@rehearsal"], source="--cluster")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"version": 99}', b"\xff\xfe"])
def test_a_broken_inventory_is_named_by_its_file(tmp_path: Path, content: bytes) -> None:
    home = Home(path=tmp_path)
    home.inventory_dir.mkdir()
    home.inventory_file("train").write_bytes(content)
    with pytest.raises(InventoryUnreadable, match=r"train\.json"):
        find_cluster(home, name=None, environ={})


@pytest.mark.parametrize(
    ("cluster", "content", "again"),
    [
        ("train", '{"name": "train", "stack_dir": "/my stacks/tr\\u00e4in", "nod', "'/my stacks/träin'"),
        ("train@rehearsal", '{"stack_dir":"/s/train"', "/s/train --rehearse"),
        ("train", '{"stack_dir": null}', "STACK  (STACK: the folder)"),
        ("train", "", "STACK  (STACK: the folder)"),
        ("train@rehearsal", "", "STACK --rehearse  (STACK: the folder)"),
    ],
)
def test_a_broken_inventory_is_read_again_from_the_folder_that_it_still_names(
    tmp_path: Path, cluster: str, content: str, again: str
) -> None:
    home = Home(path=tmp_path)
    home.inventory_dir.mkdir()
    path = home.inventory_file(cluster)
    path.write_text(content)
    with pytest.raises(InventoryUnreadable) as refused:
        find_cluster(home, name=None, environ={})
    assert refused.value.hint == f"rm {path} && clusterctl nodes --stack {again}"


def test_a_broken_inventory_of_another_cluster_is_no_obstacle(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path)
    keep(home, make_inventory, "train")
    home.inventory_file("broken").write_text("{")
    assert find_cluster(home, name="train", environ={}).cluster == "train"


@pytest.mark.parametrize("name", ["train@rehearsal", "train", None])
def test_a_cluster_that_only_a_cut_off_run_tells_of_is_named_with_its_way_out(tmp_path: Path, name: str | None) -> None:
    home = Home(path=tmp_path)
    home.runs_dir.mkdir(parents=True)
    home.run_file("train@rehearsal").write_text("{}")
    with pytest.raises(NothingMatched, match="train@rehearsal: `up` was interrupted, so nothing is known") as refused:
        find_cluster(home, name=name, environ={})
    assert refused.value.hint == "clusterctl up STACK"
    home.run_file("train@rehearsal").write_text('{"stack": "/s/train --rehearse"}')
    with pytest.raises(NothingMatched) as named:
        find_cluster(home, name=name, environ={})
    assert named.value.hint == "clusterctl up /s/train --rehearse"
    assert "`clusterctl down /s/train --rehearse` ends it" in named.value.message


def test_an_up_that_lives_is_not_said_to_have_been_cut_off(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    home.runs_dir.mkdir(parents=True)
    write_record(home.run_file("train"), new_record("up", tokens=(), stack="/s/train"))
    with pytest.raises(NothingMatched, match=rf"up is changing it now \(pid {os.getpid()}\)") as refused:
        find_cluster(home, name=None, environ={})
    assert refused.value.hint is None


def test_a_run_of_a_cluster_that_is_known_hides_nothing(tmp_path: Path, make_inventory: MakeInventory) -> None:
    home = Home(path=tmp_path)
    keep(home, make_inventory, "train@rehearsal")
    home.runs_dir.mkdir(parents=True)
    home.run_file("train@rehearsal").write_text("{}")
    home.run_file("other").write_text("{}")
    assert find_cluster(home, name=None, environ={}).cluster == "train@rehearsal"
    assert find_cluster(home, name="train", environ={}).cluster == "train@rehearsal"


@pytest.mark.parametrize(
    "strange", ['{"boot": "BOOT", "verb": "up"}', '{"boot": "BOOT", "cli_pid": "1", "cli_ticks": 1}']
)
def test_a_strange_file_of_a_run_is_taken_for_one_that_was_cut_off(tmp_path: Path, strange: str) -> None:
    home = Home(path=tmp_path)
    home.runs_dir.mkdir(parents=True)
    home.run_file("train").write_text(strange.replace("BOOT", boot_id()))
    with pytest.raises(NothingMatched, match="train: `up` was interrupted"):
        find_cluster(home, name="train", environ={})
