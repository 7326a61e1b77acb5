"""The commands that are shown to be typed next are about this cluster, wherever they are typed."""

from __future__ import annotations

import shlex
from typing import Any  # what an inventory may say

import click
import pytest
from clusterctl.program import cli
from clusterctl.text.next_commands import (
    down_again,
    gpu_reset,
    nodes_again,
    on_slot,
    replace_again,
    replace_slot,
    stack_words,
    up_again,
)

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


def test_a_cluster_without_nodes_has_none_to_show_and_is_brought_up(make_inventory: MakeInventory) -> None:
    assert nodes_again(make_inventory()) == "clusterctl nodes --cluster train"
    assert nodes_again(make_inventory(size=0, stack_dir="/s/train")) == "clusterctl up /s/train"
    assert nodes_again(make_inventory(cluster_id="")) is None, "no verb knows a person's own file by a name"


def test_every_command_is_one_that_clusterctl_takes(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(cluster="train@rehearsal", stack_dir="/my stacks/train", stack_name="prod")
    words = stack_words("/my stacks/train", stack_name="prod", rehearse=True)
    shown = [
        *(f"clusterctl {verb} {words}" for verb in ("plan", "up", "down")),
        *(up_again(inventory), down_again(inventory), f"{down_again(inventory)} --all", str(nodes_again(inventory))),
        *(replace_slot("train", 3), replace_again("train", {3: "train-3"}), gpu_reset("train", 3, 2)),
        on_slot("train", 3, ["sudo", "apt-get", "install", "-y", "rsync"]),
    ]
    for command in shown:
        program, verb, *rest = shlex.split(command)
        assert program == "clusterctl"
        found = cli.commands.get(verb) or cli.get_command(click.Context(cli), verb)
        assert found is not None, command
        found.make_context(verb, rest)  # raises UsageError for what it does not take
