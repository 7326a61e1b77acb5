"""What this computer knows of a cluster in the account, and how a reaped one is forgotten."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any  # fields of a record

import pytest
from clusterctl.engine.run_file import new_record
from clusterctl.home import Home
from clusterctl.reap.known_here import forgetting, known_of
from clusterctl_infra.outputs import inventory_to_json

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


@pytest.mark.parametrize("lost", [None, "Pulumi.yaml", ".", "the note of it"])
def test_down_forgets_a_reaped_cluster_as_long_as_its_stack_is_there(
    tmp_path: Path, make_inventory: MakeInventory, lost: str | None
) -> None:
    """Without the folder `down` refuses and names `reap`, which has nothing left to end."""
    home, folder = Home(path=tmp_path / "my home"), tmp_path / "train"
    folder.mkdir()
    (folder / "Pulumi.yaml").touch()
    (folder / "cluster.yaml").touch()
    noted = None if lost == "the note of it" else str(folder)
    file = home.inventory_file("train")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(inventory_to_json(make_inventory(stack_dir=noted))))
    if lost == ".":
        shutil.rmtree(folder)
    elif lost is not None:
        (folder / lost).unlink(missing_ok=True)
    wanted = "clusterctl down --cluster train" if lost is None else "clusterctl forget train"
    assert forgetting(home, "train") == wanted
    file.write_text("{")
    assert forgetting(home, "train") == f"rm '{file}'"


def test_a_cluster_that_is_down_on_purpose_is_known_as_one(make_inventory: MakeInventory) -> None:
    known = known_of(make_inventory(run_nodes_down=True), None)
    assert (known.cluster, known.is_down, known.changing) == ("train", True, None)


RUNS = {
    "it runs": ({}, True),
    "it was killed": ({"cli_ticks": 0}, False),
    "before this boot": ({"boot": "another"}, False),
}


@pytest.mark.parametrize(("changes", "is_under_way"), RUNS.values(), ids=RUNS.keys())
def test_a_cluster_is_being_changed_while_the_process_of_the_run_lives(
    make_inventory: MakeInventory, changes: dict[str, Any], is_under_way: bool
) -> None:
    record = replace(new_record("up", tokens=(), stack="/stacks/train"), **changes)
    changing = f"clusterctl up (pid {os.getpid()})" if is_under_way else None
    assert known_of(make_inventory(), record).changing == changing
