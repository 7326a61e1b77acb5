"""The time at which a job's coordinator expects its node to end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from clusterctl.on_node.job.coordinator import deadline_s
from clusterctl.on_node.job.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    for folder in ("proc", "run/clusterctl", "var/lib/clusterctl"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/uptime").write_text("5000.25 9000.0\n")
    (tmp_path / "var/lib/clusterctl/deadline").write_text("0123456789ab 1 1795255200\n")
    return Layout(tmp_path)


def test_a_clock_that_is_set_moves_no_deadline_since_the_guard_counts_by_the_uptime(layout: Layout) -> None:
    layout.last_stage.write_text("uptime 8690\n")
    end_s = deadline_s(layout)
    assert end_s is not None
    assert end_s - time.time() == pytest.approx(3600, abs=1)


@pytest.mark.parametrize("text", ["clock 1795255290\n", "uptime\n", "uptime soon\n", None])
def test_without_a_count_the_deadline_itself_holds(text: str | None, layout: Layout) -> None:
    if text is not None:
        layout.last_stage.write_text(text)
    assert deadline_s(layout) == 1795255200


def test_a_node_that_nobody_told_has_none(tmp_path: Path) -> None:
    assert deadline_s(Layout(tmp_path)) is None
