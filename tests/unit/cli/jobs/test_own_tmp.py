"""A /tmp of a job's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from clusterctl.on_node.job.keep import clear_up
from clusterctl.on_node.job.keeper_service import with_own_tmp
from clusterctl.on_node.job.layout import Layout, write_json


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.folder("first").mkdir(parents=True)
    return layout


def test_a_job_that_wants_none_is_started_as_before(layout: Layout) -> None:
    write_json(layout.spec("first"), {})
    assert with_own_tmp(layout, "first") == []
    assert not layout.tmp("first").exists()


def test_a_folder_that_everybody_may_write_to_is_mounted_before_the_keeper_begins(layout: Layout) -> None:
    write_json(layout.spec("first"), {"has_own_tmp": True})
    argv = with_own_tmp(layout, "first")
    assert argv[0] == "unshare"
    assert ("--user" in argv) == (os.getuid() != 0)
    assert argv[-2:] == ['mount --bind "$0" /tmp && exec "$@"', str(layout.tmp("first"))]
    assert layout.tmp("first").stat().st_mode & 0o7777 == 0o1777


def test_what_lay_in_it_is_gone_once_the_job_has_ended(layout: Layout) -> None:
    write_json(layout.spec("first"), {"has_own_tmp": True})
    with_own_tmp(layout, "first")
    (layout.tmp("first") / "secret").write_text("s")
    clear_up(layout, "first")
    assert not layout.tmp("first").exists()
