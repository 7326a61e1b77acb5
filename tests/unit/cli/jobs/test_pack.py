"""What an archive of a job's own files holds, and what of it arrives."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from clusterctl.jobs.unpacking import unpack
from clusterctl.on_node.job.pack import work_rows, write_rows


def test_a_link_to_a_folder_arrives_as_a_link_and_what_is_behind_it_once(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for folder in ("ck-1", "ck-2"):
        (work / "runs" / folder).mkdir(parents=True)
        (work / "runs" / folder / "model").write_text(folder)
    (work / "runs" / "latest").symlink_to("ck-2")
    (work / "newest-model").symlink_to("runs/ck-2/model")
    (work / "gone").symlink_to("nowhere")
    packed = io.BytesIO()
    write_rows(work_rows(work, "."), packed)
    arrived = unpack(packed, tmp_path / "here")
    assert (arrived.files, arrived.error, arrived.left_out) == (5, None, ())
    assert (tmp_path / "here/runs/latest").readlink() == Path("ck-2")
    assert (tmp_path / "here/runs/latest/model").read_text() == "ck-2"
    assert (tmp_path / "here/newest-model").readlink() == Path("runs/ck-2/model")
    assert (tmp_path / "here/gone").is_symlink()


def test_a_link_that_leads_out_is_packed_as_a_link_and_nothing_behind_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "not-meant").write_text("x")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "data").symlink_to("../elsewhere")
    packed = io.BytesIO()
    write_rows(work_rows(tmp_path / "work", "."), packed)
    packed.seek(0)
    with tarfile.open(fileobj=packed, mode="r:gz") as tar:
        assert [(member.name, member.linkname) for member in tar] == [("data", "../elsewhere")]
    assert unpack(packed, tmp_path / "here").left_out == ("data",)


def test_a_link_that_is_asked_for_itself_is_packed_as_a_link(tmp_path: Path) -> None:
    (tmp_path / "ck-1").mkdir()
    (tmp_path / "latest").symlink_to("ck-1")
    assert list(work_rows(tmp_path, "latest")) == [(tmp_path / "latest", "latest")]
