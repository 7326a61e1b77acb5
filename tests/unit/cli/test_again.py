"""The commands that are shown to be typed next are about this cluster, wherever they are typed."""

from __future__ import annotations

from typing import Any  # what an inventory may say

import pytest
from clusterctl.views.again import down_again, up_again

from tests.unit.cli.conftest import MakeInventory


@pytest.mark.parametrize(
    ("changed", "command"),
    [
        ({"stack_dir": None}, "clusterctl up STACK"),
        ({"stack_dir": "/s/train"}, "clusterctl up /s/train"),
        ({"stack_dir": "/my stacks/train"}, "clusterctl up '/my stacks/train'"),
        ({"stack_dir": "/s/train", "rehearsal": True}, "clusterctl up /s/train --rehearse"),
        ({"stack_dir": "/s/train", "stack_name": "prod"}, "clusterctl up /s/train --stack-name prod"),
    ],
)
def test_up_names_the_folder_and_how_it_was_run(
    make_inventory: MakeInventory, changed: dict[str, Any], command: str
) -> None:
    assert up_again(make_inventory(**changed)) == command


def test_down_names_the_cluster(make_inventory: MakeInventory) -> None:
    assert down_again(make_inventory(cluster="train@rehearsal")) == "clusterctl down --cluster train@rehearsal"
