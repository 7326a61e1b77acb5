"""URLs of workflows, and the buckets that a cluster mounts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from clusterctl.on_node.workflow import task
from clusterctl.on_node.workflow.inputs import NoInput, link_inputs
from clusterctl.on_node.workflow.outputs import keep_output
from clusterctl.on_node.workflow.upload import NotUploaded, file_filter, upload
from clusterctl.workflows.buckets import BucketMount, mounted_path, unmounted, url_problem
from clusterctl.workflows.placement import capacities_of, place
from clusterctl.workflows.task_job import Run, needs_share, staged, values_of

from tests.unit.cli.workflows.workflow_files import inventory, read

EVERY = file_filter("")
MOUNTS = (
    BucketMount(path="/data", bucket="words", prefix="", is_writable=False),
    BucketMount(path="/out", bucket="words", prefix="out/", is_writable=True),
    BucketMount(path="/models", bucket="models", prefix="", is_writable=True),
)
WORKFLOW = """\
workflow:
  name: w
  tasks:
  - name: only
    image: i
    command: [cat, "{{input:0}}/a"]
    inputs: [{url: s3://words/in/}]
    outputs: [{url: "s3://models/{{workflow_id}}/"}]
    checkpoint: [{path: /tmp/ck, url: "s3://models/ck", frequency: 5m}]
    exitActions: {RESTART: 75, FAIL: 3}
"""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("s3://words", None),
        ("s3://words/in/a.txt", None),
        ("s3://words/{{workflow_id}}/", None),
        ("gs://words/in", "gs:// is not built yet; write s3://BUCKET/PATH"),
        ("swift://host/account/container", "swift:// is not built yet"),
        ("azure://account/container", "azure:// is not built yet"),
        ("words/in", "other addresses are not built yet"),
        ("s3://{{uuid}}/in", "the bucket's name without tokens"),
        ("s3://words/../../etc", "a path without . and .. and empty parts"),
        ("s3://words//in", "a path without . and .. and empty parts"),
        ("s3://words/a\x1b[2J", "a path without"),
    ],
)
def test_what_cannot_be_a_mounted_bucket_is_refused_by_name(url: str, problem: str | None) -> None:
    found = url_problem(url)
    assert found is None if problem is None else problem in str(found)


@pytest.mark.parametrize(
    ("url", "is_written", "path"),
    [
        ("s3://words", False, "/data"),
        ("s3://words/in/a.txt", False, "/data/in/a.txt"),
        ("s3://words/in/", True, None),
        ("s3://words/out/x/", True, "/out/x"),
        ("s3://words/out", True, "/out"),
        ("s3://words/outer", True, None),
        ("s3://words/out/x", False, "/out/x"),
        ("s3://words/o{{uuid}}/x", True, None),
        ("s3://words/out/{{uuid}}", True, "/out/{{uuid}}"),
        ("s3://word/in", False, None),
    ],
)
def test_a_url_is_a_path_below_the_mount_that_is_nearest_to_it(url: str, is_written: bool, path: str | None) -> None:
    assert mounted_path(url, MOUNTS, is_written=is_written) == path


def test_a_url_that_no_mount_has_or_none_that_may_be_written_is_named() -> None:
    workflow = read(WORKFLOW).workflow
    assert list(unmounted(workflow, MOUNTS)) == []
    problems = ["task only: s3://models/{{workflow_id}}/ is not mounted", "task only: s3://models/ck is not mounted"]
    assert list(unmounted(workflow, MOUNTS[:1])) == problems
    read_only = read(WORKFLOW.replace("s3://models/{{", "s3://words/{{")).workflow
    assert list(unmounted(read_only, MOUNTS)) == ["task only: s3://words/{{workflow_id}}/ is mounted read-only"]


def test_urls_need_no_shared_storage_and_reach_the_task_as_paths() -> None:
    run = Run(
        id="w-1a2b",
        uuid="u",
        loaded=read(WORKFLOW),
        inventory=inventory(1),
        share=None,
        plans=(),
        buckets=MOUNTS,
        has_containers=False,
        by="ada",
    )
    workflow = run.loaded.workflow
    placed = place(workflow.all_groups()[0].tasks, workflow.resources, capacities_of(run.inventory, None))
    values = values_of(run, placed, placed[0], "w-1a2b-0")
    with staged(run, placed[0], "w-1a2b-0", values, None) as snapshot:
        words = json.loads((snapshot.folder / task.FOLDER / task.WORDS).read_text())
    assert needs_share(run.loaded) == []
    link = {"link": "/tmp/clusterctl-input/0", "path": "/data/in", "url": "s3://words/in/", "regex": ""}
    assert words["inputs"] == [link]
    assert words["outputs"] == [{"url": "s3://models/w-1a2b/", "folder": "/models/w-1a2b", "regex": ""}]
    assert words["again"] == [[75, 75]]


def test_an_input_is_a_link_to_the_folder_or_a_folder_with_a_link_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "bucket" / "in").mkdir(parents=True)
    (tmp_path / "bucket" / "in" / "a.txt").write_text("a")
    rows = [("0", "in"), ("1", "in/a.txt")]
    link_inputs(
        [
            {"link": f"{tmp_path}/input/{index}", "path": f"{tmp_path}/bucket/{path}", "url": f"s3://b/{path}"}
            for index, path in rows
        ]
    )
    assert (tmp_path / "input" / "0" / "a.txt").read_text() == "a"
    assert (tmp_path / "input" / "1" / "a.txt").read_text() == "a"
    gone = {"link": f"{tmp_path}/input/2", "path": f"{tmp_path}/bucket/b", "url": "s3://b/b"}
    with pytest.raises(NoInput, match="input 2: s3://b/b is not there"):
        link_inputs([gone])


def test_an_upload_has_files_and_linked_files_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "out" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "deep" / "model").write_bytes(b"\0" * 9)
    (tmp_path / "out" / "newest").symlink_to("deep/model")
    (tmp_path / "out" / "folder").symlink_to("deep")
    (tmp_path / "out" / "gone").symlink_to("nowhere")
    assert upload(tmp_path / "out", tmp_path / "b", EVERY) == (2, ["folder", "gone"])
    assert (tmp_path / "b" / "newest").read_bytes() == (tmp_path / "b" / "deep" / "model").read_bytes() == b"\0" * 9
    assert not (tmp_path / "b" / "newest").is_symlink()


def test_nothing_in_a_bucket_is_overwritten_and_what_is_the_same_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("1")
    for _ in range(2):
        assert upload(tmp_path / "out", tmp_path / "b", EVERY) == (1, [])
    (tmp_path / "out" / "a").write_text("2")
    with pytest.raises(NotUploaded, match="is there already and is not the same"):
        upload(tmp_path / "out", tmp_path / "b", EVERY)
    for path in (tmp_path / "out" / "a", tmp_path / "b" / "a"):  # by their sizes and times they are the same
        os.utime(path, (0, 0))
    with pytest.raises(NotUploaded, match="is there already and is not the same"):
        upload(tmp_path / "out", tmp_path / "b", EVERY)
    assert (tmp_path / "b" / "a").read_text() == "1"


def test_a_task_that_begins_anew_leaves_the_bucket_to_its_next_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text("1")
    row = {"url": "s3://b/x", "folder": f"{tmp_path}/bucket"}
    assert not keep_output(tmp_path, row, {"begins_anew": True})
    assert not (tmp_path / "bucket").exists()
    assert "s3://b/x: left to the task's next start" in capsys.readouterr().out
    assert keep_output(tmp_path / "nothing", row, {"begins_anew": False})
    assert "an output was not kept: s3://b/x: " in capsys.readouterr().out
