"""What a task does on its node around its command: inputs, outputs as versions, files, mounts, the barrier's words."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from clusterctl.on_node.workflow import barrier
from clusterctl.on_node.workflow.inputs import NoInput, link_inputs, version_of
from clusterctl.on_node.workflow.outputs import NotKept, keep, numbered
from clusterctl.on_node.workflow.task import TaskFailed, put_files, refuse_missing
from clusterctl.on_node.workflow.upload import file_filter

EVERY = file_filter("")


def test_each_upload_is_a_new_version_and_nothing_half_made_is_left(tmp_path: Path) -> None:
    source = tmp_path / "out"
    source.mkdir()
    for number in (1, 2):
        (source / "model").write_text(str(number))
        assert keep(source, tmp_path / "data", EVERY) == tmp_path / "data" / str(number)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["1", "2"]
    assert (tmp_path / "data" / "1" / "model").read_text() == "1"


def test_a_task_that_is_killed_while_it_takes_a_number_leaves_no_empty_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").write_text("m")
    data = tmp_path / "data"
    keep(tmp_path / "model", data, EVERY)

    class Killed(BaseException):
        """In place of SIGKILL: nothing is done after it."""

    def killed(*arguments: object, **more: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        for name in ("rename", "rmdir"):
            patched.setattr(os, name, killed)
        with pytest.raises(Killed):
            keep(tmp_path / "model", data, EVERY)
    assert version_of(data, "").name == "1"
    monkeypatch.setenv("CLUSTERCTL_JOB", "the-next-one")
    kept = keep(tmp_path / "model", data, EVERY)
    assert version_of(data, "") == kept
    assert (kept / "model").read_text() == "m"


def test_a_version_without_files_is_not_replaced_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("m")
    nothing = keep(tmp_path / "model", tmp_path / "data", file_filter("other"))
    assert keep(tmp_path / "model", tmp_path / "data", EVERY) != nothing
    assert list(nothing.iterdir()) == []


def test_tasks_that_keep_an_output_at_once_get_a_version_each(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    versions: list[str] = []

    def keep_own(number: int) -> None:
        made = tmp_path / "data" / f".new-{number}"
        made.mkdir()
        if number % 2:  # the others keep an output without files
            (made / "made-by").write_text(str(number))
        versions.append(numbered(made, tmp_path / "data").name)

    tasks = [threading.Thread(target=keep_own, args=(number,)) for number in range(8)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert sorted(versions) == [str(number) for number in range(1, 9)]
    assert sorted(path.read_text() for path in (tmp_path / "data").glob("*/made-by")) == ["1", "3", "5", "7"]
    assert {path.name for path in (tmp_path / "data").iterdir()} == set(versions)


def test_a_version_that_another_node_made_meanwhile_costs_a_number_and_not_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, rename = tmp_path / "data", os.rename
    (tmp_path / "model").write_text("m")

    def renamed(source: Path, target: Path) -> None:
        if target.name != "3":
            target.mkdir()
            (target / "made-by").write_text("another node")
        (data / f".taken-{target.name}").rmdir()  # as the other node does, if both could make it
        rename(source, target)

    monkeypatch.setattr(os, "rename", renamed)
    assert keep(tmp_path / "model", data, EVERY) == data / "3"
    assert sorted(files_of(data)) == ["1/made-by", "2/made-by", "3/model"]


def test_a_file_system_that_is_full_is_not_taken_for_a_number_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").write_text("m")

    def renamed(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", renamed)
    with pytest.raises(OSError, match="No space left"):
        keep(tmp_path / "model", tmp_path / "data", EVERY)
    assert list((tmp_path / "data").iterdir()) == []


def test_a_single_file_is_kept_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("m")
    assert (keep(tmp_path / "model", tmp_path / "data", EVERY) / "model").read_text() == "m"


def test_an_output_that_is_not_there_fails_and_makes_no_version(tmp_path: Path) -> None:
    with pytest.raises(NotKept, match="is not there"):
        keep(tmp_path / "nothing", tmp_path / "data", EVERY)
    assert not (tmp_path / "data").exists()


def test_an_input_is_the_newest_version_or_the_one_that_is_named(tmp_path: Path) -> None:
    for name in ("2", "10", ".new-x-1", "notes"):
        (tmp_path / "data" / name).mkdir(parents=True)
    assert version_of(tmp_path / "data", "").name == "10"
    assert version_of(tmp_path / "data", "2").name == "2"
    link_inputs([{"link": str(tmp_path / "in" / "0"), "dataset": str(tmp_path / "data"), "version": ""}])
    assert (tmp_path / "in" / "0").resolve().name == "10"


@pytest.mark.parametrize("version", ["", "3"])
def test_an_input_that_is_not_there_is_named(tmp_path: Path, version: str) -> None:
    with pytest.raises(NoInput, match="data"):
        link_inputs([{"link": str(tmp_path / "0"), "dataset": str(tmp_path / "data"), "version": version}])


def test_a_file_is_put_where_the_task_wants_it(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "0").write_text("x")
    put_files([{"path": str(tmp_path / "deep" / "run.sh"), "source": "files/0"}], tmp_path)
    placed = tmp_path / "deep" / "run.sh"
    assert (placed.read_text(), placed.stat().st_mode & 0o777) == ("x", 0o755)


def test_an_expression_chooses_files_and_leaves_no_empty_folders(tmp_path: Path) -> None:
    for name in ("a.json", "deep/b.json", "deep/c.pt", "other/d.pt"):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(name)
    kept = keep(tmp_path / "out", tmp_path / "data", file_filter(r".*\.json"))
    assert files_of(kept) == ["a.json", "deep/b.json"]
    assert not (kept / "other").exists()
    link_inputs([{"link": str(tmp_path / "0"), "path": str(tmp_path / "out"), "regex": "deep/"}])
    assert files_of(tmp_path / "0") == ["deep/b.json", "deep/c.pt"], "from the beginning of the path, as OSMO's"
    assert (tmp_path / "0" / "deep" / "c.pt").read_text() == "deep/c.pt"


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_that_a_task_mounts_and_its_node_has_not_is_named(tmp_path: Path) -> None:
    refuse_missing([str(tmp_path)])
    with pytest.raises(TaskFailed, match="volumeMounts: /no/such is not on this node"):
        refuse_missing([str(tmp_path), "/no/such"])


def test_who_is_missing_at_a_barrier_is_named_where_the_names_are_known() -> None:
    assert barrier.missing(3, {1: None}, ["a", "b", "c"]) == "c (rank 2)"
    assert barrier.missing(3, {}, [""]) == "rank 1, rank 2"
    assert barrier.missing(30, {}, []).endswith("rank 20 and 9 more")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--num_nodes 2 --rank 2", "--rank is 0 to 1"),
        ("--num_nodes 2 --rank 1", "--connect says where rank 0 is"),
        ("--rank 0", "the following arguments are required: --num_nodes"),
    ],
)
def test_a_barrier_that_cannot_be_meant_so_is_a_usage_error(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        barrier.main(words.split())
    assert raised.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {message}\n")
