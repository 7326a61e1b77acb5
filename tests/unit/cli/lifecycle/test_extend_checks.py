"""What an `extend` says of the run before it, before it asks."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from clusterctl.engine.run_file import RunRecord, new_record
from clusterctl.lifecycle.extend_checks import half_done_before

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def killed(verb: str) -> RunRecord:
    record = new_record(verb, tokens=(), stack="/s/train")
    return dataclasses.replace(record, cli_ticks=record.cli_ticks - 1)


@pytest.mark.parametrize(
    ("verb", "next_command"), [("down", "clusterctl down --cluster train"), ("up", "clusterctl up /s/train")]
)
def test_a_run_that_was_cut_off_is_told_with_what_goes_on_from_there(
    make_inventory: MakeInventory, verb: str, next_command: str
) -> None:
    message = half_done_before(killed(verb), make_inventory(stack_dir="/s/train"))
    assert message == f"the last {verb} was interrupted; next: {next_command}"


def test_nothing_is_said_where_nothing_is_half_done_or_this_extend_finishes_it(make_inventory: MakeInventory) -> None:
    elsewhere = dataclasses.replace(killed("down"), host="elsewhere")
    assert half_done_before(None, make_inventory()) is None
    assert half_done_before(killed("extend"), make_inventory()) is None
    assert half_done_before(elsewhere, make_inventory()) is None
