"""A part of a line, left by a full disk or a kill, spoils no line after it."""

from __future__ import annotations

import stat
from pathlib import Path

from clusterctl_rehearsal.appended_lines import append_line, appended_lines
from clusterctl_rehearsal.region.journal import Journal
from clusterctl_rehearsal.states.ended_executions import ExecutionRow, append_ended, read_ended

from tests.unit.rehearsal.small_region import SmallRegion

TORN = '{"arn": "torn'


def tear(path: Path) -> None:
    """Leaves a part of a line at the end of the file."""
    with path.open("a") as file:
        file.write(TORN)


def test_lines_come_back_in_their_order_and_their_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    assert appended_lines(path) == []
    for line in ("one", "two"):
        append_line(path, line)
    assert path.read_text() == "one\ntwo\n"
    assert appended_lines(path) == ["one", "two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_after_a_torn_one_stands_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_line(path, "one")
    tear(path)
    append_line(path, "two")
    assert appended_lines(path) == ["one", TORN, "two"]


def test_an_execution_that_ends_after_a_torn_line_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "executions.jsonl"
    rows = [ExecutionRow(arn=name, machine_arn="m", started_at=1.0, given="{}", ended_at=2.0) for name in ("a", "b")]
    append_ended(path, rows[0])
    tear(path)
    append_ended(path, rows[1])
    assert list(read_ended(path)) == rows


def test_a_machine_that_ends_after_a_torn_line_is_on_the_bill(world: SmallRegion) -> None:
    node = world.node()
    journal = world.store.journal
    tear(journal.path)
    world.store.forget(node)
    ((row),) = Journal(journal.path).rows()
    assert (row["id"], row["what"]) == (node.id, "ended")
