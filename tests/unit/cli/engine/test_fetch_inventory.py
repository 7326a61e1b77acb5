"""An inventory that is made again from a stack's outputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.engine.fetch_inventory import with_way_in
from clusterctl.home import Home
from clusterctl_infra.outputs import InventorySsh

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def test_rehearsed_nodes_are_reached_by_the_network_of_this_computer(
    tmp_path: Path, make_inventory: MakeInventory
) -> None:
    made_again = with_way_in(make_inventory(cluster="train@rehearsal", rehearsal=True), Home(path=tmp_path))
    way = made_again.ssh.proxy_command
    assert way is not None
    assert way[3].endswith("clusterctl_rehearsal/machines/connect.py")
    assert way[4:] == (str(tmp_path / "rehearsal" / "machines"), "train", "{host}", "{port}")


@pytest.mark.parametrize("way", [None, ("aws", "ssm", "{instance}")])
def test_nodes_on_aws_are_reached_as_the_stack_says(
    tmp_path: Path, make_inventory: MakeInventory, way: tuple[str, ...] | None
) -> None:
    inventory = make_inventory(ssh=InventorySsh(user="ubuntu", key_file=None, proxy_command=way))
    assert with_way_in(inventory, Home(path=tmp_path)) is inventory
