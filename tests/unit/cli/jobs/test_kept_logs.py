"""Output of jobs that is kept here, read when their nodes are gone; and what nodes pack of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.home import Home
from clusterctl.jobs.events import event_json, event_row, merged_events
from clusterctl.jobs.inside import slot_of_rank
from clusterctl.jobs.kept_logs import kept_folder, kept_job, kept_lines
from clusterctl.jobs.shown_job import LinesWanted, show_kept
from clusterctl.on_node.job import judge
from clusterctl.on_node.job.events import note_event, read_events
from clusterctl.on_node.job.kept_files import log_rows
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.pack import work_rows
from clusterctl.on_node.job.shared_storage import folder_argv, shared_mount
from clusterctl.output import Output
from clusterctl_infra.errors import NothingMatched, UsageError

from tests.unit.cli.jobs.job_specs import spec

ODD_LINES = "nan 0 x\n1e99 0 x\n4.0 ² x\n-1 0 x\n"
"""Lines without a valid time or rank, as a hostile node may write them."""


def state(name: str, **more: Any) -> dict[str, Any]:
    return {"state": name, "since_s": 5.0, **more}


def keep(home: Home, cluster: str, states: dict[str, Any], *, kept_s: float = 10.0) -> Path:
    folder = kept_folder(home, cluster) / "first"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"spec": spec(), "states": states, "kept_s": kept_s}))
    return folder


def test_a_kept_job_tells_how_it_ended_and_its_lines_by_time(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    ended = state(judge.SUCCEEDED, outcome=judge.outcome(judge.SUCCEEDED, "", ()))
    folder = keep(home, "train@rehearsal", {"1": ended, "3": ended})
    for slot, lines in (("1", f"1.0 0 a\n3.0 0 c\ntorn\n{ODD_LINES}"), ("3", "2.0 4 b\n")):
        (folder / f"node-{slot}/attempt-1").mkdir(parents=True)
        (folder / f"node-{slot}/attempt-1/output.000001").write_text(lines)
    kept = kept_job(home, "train", "first")
    assert kept is not None
    assert kept.state.exit_code == 0
    found = list(kept_lines(kept, slots=(1, 3), attempt=1))
    assert [(line.slot, line.rank, line.text) for line in found] == [(1, "0", "a"), (3, "4", "b"), (1, "0", "c")]


def test_the_kept_output_of_one_attempt_is_shown_alone(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    folder = keep(home, "train", {})
    (folder / "job.json").write_text(json.dumps({"spec": spec(attempt=2), "states": {}, "kept_s": 10.0}))
    for attempt, text in ((1, "first try"), (2, "second try")):
        (folder / f"node-1/attempt-{attempt}").mkdir(parents=True)
        (folder / f"node-1/attempt-{attempt}/output.000001").write_text(f"1.0 0 {text}\n")
    kept = kept_job(home, "train", "first")
    assert kept is not None
    for wanted, expected, other in ((1, "first try", "second"), (None, "second try", "first")):
        stdout = io.BytesIO()
        output = Output(stdout=stdout, stderr=io.BytesIO())
        show_kept(kept, "logs", output, LinesWanted(node="1", rank=None, attempt=wanted), as_json=False)
        shown = stdout.getvalue().decode()
        assert expected in shown
        assert other not in shown
    with pytest.raises(UsageError, match="attempts 1 to 2, no attempt 3"):
        show_kept(kept, "logs", output, LinesWanted(node="1", rank=None, attempt=3), as_json=False)


@pytest.mark.parametrize("cluster", ["train@rehearsal", "train@hosts"])
def test_a_kept_job_of_a_rehearsal_or_of_hosts_has_nodes_by_name(tmp_path: Path, cluster: str) -> None:
    home = Home(path=tmp_path)
    folder = keep(home, cluster, {})
    job = {"spec": {**spec(), "cluster": cluster}, "states": {}, "kept_s": 10.0}
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "node-1/attempt-1").mkdir(parents=True)
    (folder / "node-1/attempt-1/output.000001").write_text("1.0 0 up\n")
    kept, stdout = kept_job(home, "train", "first"), io.BytesIO()
    assert kept is not None
    wanted = LinesWanted(node="train-1", rank=None, attempt=None, has_names=True)
    show_kept(kept, "logs", Output(stdout=stdout, stderr=io.BytesIO()), wanted, as_json=False)
    assert stdout.getvalue().startswith(b"[train-1] [00:00:01] ")


def test_output_that_came_in_part_is_shown_as_a_part(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    folder = keep(home, "train", {})
    row = {"spec": spec(), "states": {}, "kept_s": 10.0, "whole": {"3": 5.0}}
    (folder / "job.json").write_text(json.dumps(row))
    for slot in (1, 3):
        (folder / f"node-{slot}/attempt-1").mkdir(parents=True)
    kept, stderr = kept_job(home, "train", "first"), io.BytesIO()
    assert kept is not None
    wanted = LinesWanted(node=None, rank=None, attempt=None)
    assert show_kept(kept, "logs", Output(stdout=io.BytesIO(), stderr=stderr), wanted, as_json=False) == 0
    assert stderr.getvalue() == b"first: Node 1: not all of the files are kept here\n"


@pytest.mark.parametrize(
    ("kept", "notes"),
    [({"whole": {}}, b"first: Nodes 1,3: not all of the files are kept here\n"), ({}, b""), ({"whole": None}, b"")],
    ids=["of none of its nodes", "by a program that did not say what came", "unknown"],
)
def test_one_line_says_of_which_nodes_a_part_came_and_none_where_that_is_unknown(
    tmp_path: Path, kept: dict[str, Any], notes: bytes
) -> None:
    home = Home(path=tmp_path)
    folder = keep(home, "train", {})
    (folder / "job.json").write_text(json.dumps({"spec": spec(), "states": {}, "kept_s": 10.0, **kept}))
    for slot in (1, 3):
        (folder / f"node-{slot}/attempt-1").mkdir(parents=True)
    found, stderr = kept_job(home, "train", "first"), io.BytesIO()
    assert found is not None
    wanted = LinesWanted(node=None, rank=None, attempt=None)
    show_kept(found, "logs", Output(stdout=io.BytesIO(), stderr=stderr), wanted, as_json=False)
    assert stderr.getvalue() == notes


def test_a_job_that_ran_when_it_was_kept_is_lost_with_its_cluster(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    keep(home, "train", {"1": state(judge.RUNNING), "3": state(judge.RUNNING)})
    kept = kept_job(home, None, "first")
    assert kept is not None
    assert kept.state.state == judge.LOST
    assert kept.state.outcome is not None
    assert "ended while it was running" in kept.state.outcome["cause"]


@pytest.mark.parametrize("name", ["../first", "second", "", "a/b"])
def test_only_a_name_finds_a_kept_job(tmp_path: Path, name: str) -> None:
    home = Home(path=tmp_path)
    keep(home, "train", {"1": state(judge.RUNNING)})
    assert kept_job(home, "train", name) is None
    assert kept_job(home, "other", "first") is None


def test_what_is_broken_in_the_folder_is_no_kept_job(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    (keep(home, "train", {}) / "job.json").write_text('{"spec": 3}')
    assert kept_job(home, "train", "first") is None


def test_ranks_own_logs_go_along_where_the_output_has_lost_its_beginning(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    ranks = layout.ranks("first", 1)
    ranks.mkdir(parents=True)
    for path in (ranks / "0.log", ranks / "0.json", ranks / "0.pid", layout.attempt("first", 1) / "output.000001"):
        path.write_text("x")
    names = [name for _, name in log_rows(layout, "first")]
    assert names == ["attempt-1/output.000001", "attempt-1/ranks/0.json"]
    (layout.attempt("first", 1) / "output.000001").rename(layout.attempt("first", 1) / "output.000002")
    assert "attempt-1/ranks/0.log" in [name for _, name in log_rows(layout, "first")]


def test_what_a_job_keeps_is_packed_from_its_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "work/runs/a").mkdir(parents=True)
    (tmp_path / "work/runs/a/x").write_text("x")
    work = tmp_path / "work"
    (work / "last").symlink_to("runs/a")
    assert [name for _, name in work_rows(work, ".")] == ["last", "runs/a/x"]
    assert [name for _, name in work_rows(work, "runs/a")] == ["a/x"]
    assert [name for _, name in work_rows(work, "runs/a/x")] == ["x"]
    for wrong in ("../work", "/etc", "runs/../../work", "none"):
        with pytest.raises(ValueError, match="JOB_DIR"):
            list(work_rows(work, wrong))


def test_events_are_told_by_time_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.folder("first").mkdir(parents=True)
    note_event(layout, "first", "running", attempt=1)
    note_event(layout, "first", "rank ended", attempt=1, rank=3, code=7, signal=None)
    with layout.events("first").open("a") as stream:
        stream.write("[" * 100_000 + '\n{"event": "x", "at_s": 1' + "0" * 400 + '}\n{"torn')
    events = merged_events(
        {1: read_events(layout.events("first")), 3: [None, {"at_s": "x"}, {"at_s": 1e99, "event": ""}]}
    )
    assert [event_row(event)[1:] for event in events] == [
        ("1", "1", "running"),
        ("1", "1", "rank 3 exited with code 7"),
    ]


def test_a_rank_s_node_is_known_from_the_job() -> None:
    assert [slot_of_rank(spec(), rank) for rank in (0, 3, 4, 5)] == [1, 1, 3, 3]
    with pytest.raises(NothingMatched, match="ranks 0 to 5, no rank 6"):
        slot_of_rank(spec(), 6)


def test_storage_counts_as_shared_where_it_is_mounted_and_takes_files(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("1 2 0:3 / /shared rw - nfs4 x rw\n1 2 0:3 / /data rw - fuse x rw\n")
    mounts = [
        {"kind": "s3", "path": "/data", "writable": True},
        {"kind": "efs", "path": "/away", "writable": True},
        {"kind": "efs", "path": "/shared", "writable": True},
    ]
    assert shared_mount(tmp_path, {"mounts": mounts}) == "/shared"
    assert shared_mount(tmp_path, {"mounts": mounts[:2]}) is None
    assert shared_mount(tmp_path, {"mounts": [{**mounts[2], "writable": False}]}) is None
    assert shared_mount(tmp_path, {}) is None


def test_a_job_s_folder_on_shared_storage_is_its_owner_s_alone() -> None:
    assert folder_argv("/shared/first") == ["mkdir", "-p", "-m", "700", "/shared/first", "/shared/first/work"]


def test_a_node_does_not_say_that_another_one_said_it() -> None:
    (event,) = merged_events({1: [{"at_s": 5.0, "event": "running", "slot": 0, "time": "never", "attempt": 1}]})
    assert event_json(event) == {"time": "1970-01-01T00:00:05+00:00", "slot": 1, "event": "running", "attempt": 1}
