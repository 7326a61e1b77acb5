"""How the ranks of one node have ended, from what their parents wrote down."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.node_ranks import NodeRanks

from tests.unit.cli.jobs.job_specs import RANK_END, spec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder in which the parents of the first attempt's ranks write."""
    found = Layout(tmp_path).ranks("first", 1)
    found.mkdir(parents=True)
    return found


def ranks_of(root: Path, **changes: Any) -> NodeRanks:
    """The ranks 0 to 3, which run here."""
    me = pwd.getpwuid(os.getuid()).pw_name
    return NodeRanks(Layout(root), spec(user=me, **changes), 0, root / "program")


def test_every_rank_that_wrote_how_it_ended_is_told_of(folder: Path, tmp_path: Path) -> None:
    for rank, code in ((0, 0), (1, 7)):
        (folder / f"{rank}.json").write_text(json.dumps({**RANK_END, "rank": rank, "code": code}))
    assert [(end["rank"], end["code"]) for end in ranks_of(tmp_path).ended()] == [(0, 0), (1, 7)]


def test_what_is_no_word_of_a_parent_hides_no_other(folder: Path, tmp_path: Path) -> None:
    """The job's own user may write there, too."""
    (folder / "0.json").write_text("[[[")
    (folder / "1.json").symlink_to("/etc/passwd")
    (folder / "2.json").write_text(json.dumps({**RANK_END, "rank": 2}))
    assert [end["rank"] for end in ranks_of(tmp_path).ended()] == [2]


def test_a_launcher_that_ended_before_its_ranks_is_a_failure_also_with_code_0(folder: Path, tmp_path: Path) -> None:
    failure = ranks_of(tmp_path).launcher_failure()
    assert (failure["rank"], failure["code"], failure["signal"]) == (None, 1, None)
    assert failure["lines"] == ["the launcher ended with code 0 before its ranks did"]


def test_where_nothing_was_started_the_launcher_is_over_but_for_mpirun_s_other_nodes(
    folder: Path, tmp_path: Path
) -> None:
    assert ranks_of(tmp_path).has_launcher_ended()
    me = pwd.getpwuid(os.getuid()).pw_name
    elsewhere = NodeRanks(Layout(tmp_path), spec(user=me, launcher="mpi"), 1, tmp_path / "program")
    assert not elsewhere.has_launcher_ended(), "mpirun's own node says when it is over"
