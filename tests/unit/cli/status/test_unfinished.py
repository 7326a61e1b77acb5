"""What the file of a run says to somebody who looks at the cluster."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from clusterctl.engine.run_file import new_record, write_record
from clusterctl.home import Home
from clusterctl.status.unfinished import Unfinished, unfinished


def test_a_run_is_under_way_as_long_as_its_process_lives(tmp_path: Path) -> None:
    home, record = Home(path=tmp_path), new_record("up", tokens=(), stack="/s/train")
    assert unfinished("train", home) is None
    write_record(home.run_file("train"), record)
    assert unfinished("train", home) == Unfinished(verb="up", pid=record.cli_pid)
    write_record(home.run_file("train"), dataclasses.replace(record, cli_ticks=record.cli_ticks - 1))
    assert unfinished("train", home) == Unfinished(verb="up", pid=None)
    write_record(home.run_file("train"), dataclasses.replace(record, boot="before"))
    assert unfinished("train", home) == Unfinished(verb="up", pid=None)
    write_record(home.run_file("train"), dataclasses.replace(record, host="elsewhere"))
    assert unfinished("train", home) is None
