"""The error for a source on this computer that cannot be copied, raised before any node is asked."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.copying.copies import copy_all
from clusterctl.copying.place import transfers
from clusterctl.copying.trees import tree_syncs
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

MakeInventory = Callable[..., Inventory]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.pt", "missing.pt: there is no such file here"),
        ("folder", "folder is a folder, and cp without -r copies files"),
    ],
)
def test_cp_calls_a_source_that_is_no_file_here_a_wrong_word(
    name: str, message: str, tmp_path: Path, make_inventory: MakeInventory
) -> None:
    (tmp_path / "folder").mkdir()
    inventory = make_inventory()
    todo = transfers([str(tmp_path / name), "all:"], inventory)
    output = Output(stdout=io.BytesIO(), stderr=io.BytesIO(), stdout_is_terminal=False, stderr_is_terminal=False)
    with pytest.raises(UsageError, match=message) as raised:
        copy_all(todo, inventory, keys=LoginKeys(keys=(), described=""), deadlines=Deadlines(), output=output)
    assert raised.value.exit_code == 2


def test_sync_calls_a_missing_folder_a_wrong_word(tmp_path: Path, make_inventory: MakeInventory) -> None:
    with pytest.raises(UsageError, match="there is no such folder here") as raised:
        tree_syncs(str(tmp_path / "missing/"), "all:", make_inventory())
    assert raised.value.exit_code == 2
