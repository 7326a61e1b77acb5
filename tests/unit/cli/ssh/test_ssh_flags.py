"""Flags of `clusterctl ssh` that do not go together, and the line about the cluster's end at a login."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clusterctl.ssh.machines import chosen_machines
from clusterctl.ssh.request import end_line, refuse_beside_terminal, refuse_contradiction
from clusterctl_infra.errors import UsageError

from tests.unit.cli.conftest import MakeInventory


def test_there_is_one_way_to_show_and_one_set_of_machines() -> None:
    refuse_contradiction(gather=True, as_json=False)
    with pytest.raises(UsageError, match="--gather and --json"):
        refuse_contradiction(gather=True, as_json=True)
    with pytest.raises(UsageError, match=r"--cluster train and --inventory lab\.json: give only one"):
        chosen_machines("train", Path("lab.json"))


FLAGS = ("--gather", "--json", "--env", "--sudo", "--timeout", "--fail-fast")


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_for_commands_without_a_terminal_is_refused_by_its_name_beside_one(flag: str) -> None:
    nothing: dict[str, object] = dict.fromkeys(FLAGS)
    refuse_beside_terminal(nothing)
    with pytest.raises(UsageError, match=f"^{flag} beside a login or --tty: "):
        refuse_beside_terminal({**nothing, flag: True})


DEADLINE = datetime(2026, 11, 21, 17, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (timedelta(hours=4, minutes=31), "train ends 17:22 UTC, in 4 h 31 m"),
        (timedelta(minutes=12), "train ends 17:22 UTC, in 12 m; clusterctl extend 1h --cluster train moves that"),
        (timedelta(0), None),
    ],
    ids=["long before", "soon", "over"],
)
def test_a_login_is_told_when_the_cluster_ends(
    make_inventory: MakeInventory, before: timedelta, line: str | None
) -> None:
    inventory = make_inventory(deadline=DEADLINE.isoformat())
    assert end_line(inventory, DEADLINE - before) == line


def test_machines_of_a_persons_own_have_no_end(make_inventory: MakeInventory) -> None:
    assert end_line(make_inventory(cluster_id="", deadline=""), DEADLINE) is None
