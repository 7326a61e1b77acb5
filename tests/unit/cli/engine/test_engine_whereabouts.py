"""Which cluster `down STACK` means, although its file is broken now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterctl.engine.run_file import new_record, write_record
from clusterctl.engine.stack import Stack
from clusterctl.engine.whereabouts import NamesInState, Whereabouts, find_whereabouts
from clusterctl.home import Home
from clusterctl_infra.errors import ConfigError, NothingMatched
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.conftest import MakeInventory

BROKEN = "nodes: 0\nplacemnt: cluster\n"


def nothing(stack: Stack, *, rehearse: bool) -> tuple[str, str] | None:
    """A state that holds no cluster."""
    return None


def train_in_ohio(stack: Stack, *, rehearse: bool) -> tuple[str, str] | None:
    """A state that holds `train`, in us-east-2."""
    return "train", "us-east-2"


def found(
    folder: Path,
    cluster_file: str,
    *,
    cluster: str | None = None,
    stack_name: str = "dev",
    rehearse: bool = False,
    in_state: NamesInState = nothing,
) -> Whereabouts:
    """What `down FOLDER` or `down --cluster NAME` means."""
    (folder / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (folder / "cluster.yaml").write_text(cluster_file)
    return find_whereabouts(
        None if cluster else folder,
        cluster,
        stack_name=stack_name,
        rehearse=rehearse,
        home=Home(path=folder / "home"),
        environ={},
        in_state=in_state,
    )


def test_a_cluster_that_nobody_knows_here_is_named_by_its_broken_file(tmp_path: Path) -> None:
    where = found(tmp_path, f"name: train\nregion: eu-west-1\n{BROKEN}")
    assert (where.name, where.region) == ("train", "eu-west-1")


@pytest.mark.parametrize(
    "names", ["name: train\n", "name: Train\nregion: eu-west-1\n", "name: train\nregoin: eu-west-1\n", "name: [\n"]
)
def test_without_a_name_or_a_region_its_problems_are_told(tmp_path: Path, names: str) -> None:
    with pytest.raises(ConfigError, match="nothing was changed"):
        found(tmp_path, names + BROKEN)


@pytest.mark.parametrize("file", ["", "name: [\n", "name: train\n", "name: Train\nregion: eu-west-1\n"])
def test_what_a_broken_file_does_not_say_the_state_says(tmp_path: Path, file: str) -> None:
    where = found(tmp_path, file, in_state=train_in_ohio)
    assert (where.name, where.region, where.shown) == ("train", "us-east-2", str(tmp_path))


@pytest.mark.parametrize(
    ("known", "stack_name", "rehearse", "is_meant"),
    [
        ({}, "dev", False, True),
        ({}, "dev", True, False),
        ({}, "other", False, False),
        ({"rehearsal": True, "cluster": "train@rehearsal"}, "dev", True, True),
        ({"rehearsal": True, "cluster": "train@rehearsal"}, "dev", False, False),
        ({"stack_name": "other"}, "dev", False, False),
        ({"stack_name": "other"}, "other", False, True),
    ],
)
def test_with_a_broken_file_only_the_known_cluster_of_just_that_stack_is_meant(
    tmp_path: Path,
    make_inventory: MakeInventory,
    known: dict[str, Any],
    stack_name: str,
    rehearse: bool,
    is_meant: bool,
) -> None:
    home = Home(path=tmp_path / "home")
    home.inventory_dir.mkdir(parents=True)
    inventory = make_inventory(stack_dir=str(tmp_path), **known)
    home.inventory_file(inventory.cluster).write_text(json.dumps(inventory_to_json(inventory)))
    if is_meant:
        where = found(tmp_path, BROKEN, stack_name=stack_name, rehearse=rehearse)
        assert (where.name, where.stack.name, where.rehearse) == ("train", stack_name, rehearse)
    else:
        with pytest.raises(ConfigError, match="nothing was changed"):
            found(tmp_path, BROKEN, stack_name=stack_name, rehearse=rehearse)


def test_a_cluster_of_which_only_a_cut_off_run_tells_is_ended_by_its_name(tmp_path: Path) -> None:
    run_file = Home(path=tmp_path / "home").run_file("train")
    write_record(run_file, new_record("down", tokens=(), stack=str(tmp_path)))
    where = found(tmp_path, "name: [\n", cluster="train", in_state=train_in_ohio)
    assert (where.name, where.stack.directory) == ("train", tmp_path)
    with pytest.raises(NothingMatched, match="no cluster is known"):
        found(tmp_path, "name: [\n", cluster="other", in_state=train_in_ohio)


def test_a_run_whose_stack_holds_another_cluster_by_now_is_not_taken_for_it(tmp_path: Path) -> None:
    run_file = Home(path=tmp_path / "home").run_file("old")
    write_record(run_file, replace(new_record("down", tokens=(), stack=str(tmp_path)), cli_ticks=0))
    with pytest.raises(NothingMatched, match="old: `down` was interrupted"):
        found(tmp_path, "name: [\n", cluster="old", in_state=train_in_ohio)
