"""A folder given to `cp`: the `sync` that means the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.copying.copies import copy_all
from clusterctl.copying.place import transfers
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl_infra.errors import ClusterctlError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory, Screen


@pytest.mark.parametrize(
    ("target", "cluster_id", "hint"),
    [
        ("0-2:/scratch/", "0123456789ab", "clusterctl cp -r {} 0-2:/scratch/ --cluster train"),
        ("train-1,3:", "0123456789ab", "clusterctl cp -r {} 1,3: --cluster train"),
        ("all:x y", "0123456789ab", "clusterctl cp -r {} '0-3:x y' --cluster train"),
        ("all:/scratch", "", "clusterctl cp --help"),
    ],
)
def test_a_folder_is_answered_with_the_command_that_copies_it(
    tmp_path: Path, make_inventory: MakeInventory, screen: Screen, target: str, cluster_id: str, hint: str
) -> None:
    inventory = make_inventory(cluster_id=cluster_id)
    with pytest.raises(ClusterctlError, match="is a folder, and cp without -r copies files") as refused:
        copy_all(
            transfers([str(tmp_path), target], inventory),
            inventory,
            keys=LoginKeys(keys=(), described=""),
            deadlines=Deadlines.within(1),
            output=screen.output,
        )
    assert refused.value.hint == hint.format(tmp_path)
