"""What this computer knows of a cluster that was reaped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.home import Home
from clusterctl.reap.known_here import forgetting
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
    wanted = "clusterctl down --cluster train" if lost is None else f"rm '{file}'"
    assert forgetting(home, "train") == wanted
