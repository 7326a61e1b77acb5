"""Versions in a mounted bucket, where nobody can take a number: datasets, outputs, checkpoints."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import warned
from clusterctl.on_node.workflow import bucket_versions
from clusterctl.on_node.workflow.bucket_versions import (
    MARKS,
    NoVersion,
    complete_versions,
    keep_version,
    version_folder,
)
from clusterctl.on_node.workflow.checkpoint import Checkpoint
from clusterctl.on_node.workflow.inputs import NoInput, link_inputs
from clusterctl.on_node.workflow.outputs import keep_output
from clusterctl.on_node.workflow.upload import NotUploaded, file_filter

EVERY = file_filter("")
LATE = datetime(2099, 1, 1, tzinfo=UTC).strftime(bucket_versions.STAMP)


def made(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_versions_are_numbered_in_the_order_in_which_they_were_complete(tmp_path: Path) -> None:
    data = tmp_path / "bucket" / "data"
    for job in ("z-1", "a-1", "m-1"):
        keep_version(made(tmp_path / "out", model=job), data, job, {"exit_code": 0}, EVERY)
    assert complete_versions(data) == ["z-1", "a-1", "m-1"]
    assert (version_folder(data, "") / "model").read_text() == "m-1"
    assert (version_folder(data, "1") / "model").read_text() == "z-1"
    assert version_folder(data, "a-1") == data / "a-1"
    marks = sorted((data / MARKS).iterdir())
    assert json.loads(marks[0].read_text()) == {"exit_code": 0, "files": 1}


def test_what_was_broken_off_is_no_version(tmp_path: Path) -> None:
    data = tmp_path / "bucket" / "data"
    made(tmp_path / "out", a="1", b="2")
    (data / "w-1").mkdir(parents=True)
    (data / "w-1" / "b").write_text("another")
    with pytest.raises(NotUploaded, match="is there already and is not the same"):
        keep_version(tmp_path / "out", data, "w-1", {}, EVERY)
    assert (data / "w-1" / "a").exists()
    with pytest.raises(NoVersion, match="no version of it is complete yet"):
        version_folder(data, "")
    assert complete_versions(data) == []


def test_numbers_that_were_given_stay_when_another_nodes_clock_is_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made(tmp_path / "out", model="m")
    (data / MARKS).mkdir(parents=True)
    (data / MARKS / f"{LATE}_ahead-0").write_text("{}")
    keep_version(tmp_path / "out", data, "now-0", {}, EVERY)
    assert complete_versions(data) == ["ahead-0", "now-0"]


@pytest.mark.parametrize(("version", "message"), [("3", "no version 3; there are 1 to 1"), ("w-9", "no version w-9")])
def test_a_version_that_is_not_there_is_named(tmp_path: Path, version: str, message: str) -> None:
    keep_version(made(tmp_path / "out", model="m"), tmp_path / "data", "w-1", {}, EVERY)
    row = {"link": str(tmp_path / "in" / "0"), "bucket": str(tmp_path / "data"), "version": version}
    with pytest.raises(NoInput, match=message):
        link_inputs([row])


def test_an_input_is_the_newest_version_also_where_it_has_no_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    keep_version(made(tmp_path / "out", model="m"), data, "w-1", {}, EVERY)
    link_inputs([{"link": str(tmp_path / "in" / "0"), "bucket": str(data), "version": ""}])
    assert (tmp_path / "in" / "0" / "model").read_text() == "m"
    keep_version(made(tmp_path / "nothing"), data, "w-2", {}, EVERY)
    link_inputs([{"link": str(tmp_path / "in" / "1"), "bucket": str(data), "version": ""}])
    assert list((tmp_path / "in" / "1").iterdir()) == []


def test_an_output_of_a_task_that_begins_anew_is_a_version_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "out", model="m")
    row = {"path": "", "bucket": str(tmp_path / "data"), "version": "w-1-0", "regex": "mod"}
    words = {"begins_anew": True, "exit_code": 143, "node_ends": warned.WHY[warned.AWS]}
    assert not keep_output(tmp_path / "out", row, words)
    assert f"{{{{output}}}} is kept as w-1-0 of {tmp_path}/data: 1 file" in capsys.readouterr().out
    mark = next((tmp_path / "data" / MARKS).iterdir())
    assert json.loads(mark.read_text()) == {**words, "files": 1}
    assert keep_output(tmp_path / "gone", {**row, "version": "w-2-0"}, words)


class Notes:
    """The lines that a checkpoint reports; `wait` returns once there are `count`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = threading.Condition()

    def __call__(self, text: str) -> None:
        with self._more:
            self.lines.append(text)
            self._more.notify_all()

    def wait(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.lines) >= count, timeout=30), self.lines


def words(tmp_path: Path, **more: Any) -> dict[str, Any]:
    row = {"path": str(tmp_path / "ck"), "url": "s3://b/ck", "folder": str(tmp_path / "bucket"), "version": "w-1-0"}
    return {**row, "frequency_s": 3600.0, "regex": "", **more}


def test_a_checkpoint_is_copied_now_and_then_and_what_has_not_changed_is_not(tmp_path: Path) -> None:
    notes = Notes()
    made(tmp_path / "ck", step="1", log="x")
    checkpoint = Checkpoint(words(tmp_path, frequency_s=0.001, regex="step"), notes)
    checkpoint.start()
    notes.wait(1)
    made(tmp_path / "ck", step="22")
    notes.wait(2)
    assert not checkpoint.finish()
    assert notes.lines[0] == f"checkpoint: {tmp_path}/ck is in s3://b/ck as w-1-0-0: 1 file"
    assert complete_versions(tmp_path / "bucket") == ["w-1-0-0", "w-1-0-1"]
    link_inputs([{"link": str(tmp_path / "0"), "path": str(tmp_path / "bucket"), "url": "s3://b/ck", "regex": ""}])
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["step"]
    assert (tmp_path / "0" / "step").read_text() == "22"


def test_a_checkpoint_is_copied_without_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    notes = Notes()
    (made(tmp_path / "ck", step="1") / "loop").symlink_to("loop")
    checkpoint = Checkpoint(words(tmp_path), notes)
    checkpoint.start()
    assert not checkpoint.finish(), notes.lines
    assert complete_versions(tmp_path / "bucket") == ["w-1-0-0"]


def test_the_last_checkpoint_is_copied_at_the_end_and_one_that_is_not_there_fails(tmp_path: Path) -> None:
    notes = Notes()
    checkpoint = Checkpoint(words(tmp_path), notes)
    checkpoint.start()
    made(tmp_path / "ck", step="1")
    assert not checkpoint.finish()
    assert complete_versions(tmp_path / "bucket") == ["w-1-0-0"]
    missing = Checkpoint(words(tmp_path, path=str(tmp_path / "no")), notes)
    missing.start()
    assert missing.finish()
    assert notes.lines[-1] == f"checkpoint: {tmp_path}/no is not there"


def test_a_checkpoint_that_cannot_be_copied_is_told_and_fails_the_task_at_its_end(tmp_path: Path) -> None:
    notes = Notes()
    made(tmp_path / "ck", step="1")
    (tmp_path / "bucket").write_text("a file where the folder should be")
    checkpoint = Checkpoint(words(tmp_path), notes)
    checkpoint.start()
    assert checkpoint.finish()
    assert notes.lines[0].startswith("a checkpoint was not copied: s3://b/ck: ")
