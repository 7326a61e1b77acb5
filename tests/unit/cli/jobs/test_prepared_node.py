"""What is put on a node for a job, and what is left of it when it breaks off."""

from __future__ import annotations

import io
import os
import pwd
import tarfile
import time
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job import launchers, lease
from clusterctl.on_node.job.layout import Layout, read_json, write_json
from clusterctl.on_node.job.prepare import discard, paths_to_give, receive, remove_old

from tests.unit.cli.jobs.job_specs import spec
from tests.unit.cli.jobs.leases import in_the_way, run_out

JOB = "first"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "etc/clusterctl").mkdir(parents=True)
    write_json(Layout(tmp_path).node_file, {"slot": 1})
    found = Layout(tmp_path)
    assert in_the_way(found, JOB, "ada") == []
    return found


def snapshot() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        row = tarfile.TarInfo("train.py")
        row.size = 2
        tar.addfile(row, io.BytesIO(b"1\n"))
    return packed.getvalue()


def header(snapshot_bytes: int) -> dict[str, Any]:
    me = pwd.getpwuid(os.getuid()).pw_name
    return {"spec": spec(user=me), "key": "00", "secrets": {"TOKEN": "s3"}, "snapshot_bytes": snapshot_bytes}


def put(layout: Layout) -> None:
    packed = snapshot()
    receive(layout, JOB, header(len(packed)), io.BytesIO(packed), Path("p.pyz"))


def left_of(layout: Layout) -> list[Path]:
    return [path for path in (layout.folder(JOB), layout.key(JOB), layout.secrets(JOB)) if path.exists()]


def test_a_preparation_that_took_long_still_has_its_node(layout: Layout) -> None:
    run_out(layout)
    put(layout)
    held = lease.holder(layout, "first")
    assert held is not None
    assert held["job"] == JOB
    assert (layout.code(JOB) / "train.py").read_text() == "1\n"
    assert layout.folder(JOB).stat().st_mode & 0o777 == 0o750
    assert (layout.secrets(JOB) / "TOKEN").stat().st_mode & 0o777 == 0o600


def test_what_a_job_is_told_and_its_state_are_written_down_before_it_is_started(layout: Layout) -> None:
    packed = snapshot()
    sent = {**header(len(packed)), "spec": {**header(0)["spec"], "launcher": "mpi"}}
    receive(layout, JOB, sent, io.BytesIO(packed), Path("p.pyz"))
    assert read_json(layout.spec(JOB)) == sent["spec"]
    assert read_json(layout.state(JOB))["state"] == "preparing"
    modes = {path.name: path.stat().st_mode & 0o777 for path in layout.folder(JOB).iterdir() if path.is_file()}
    assert modes[launchers.AGENT_FILE] == 0o755, "mpirun starts it"
    assert 0o755 not in {mode for name, mode in modes.items() if name != launchers.AGENT_FILE}


def test_a_preparation_whose_node_another_job_took_ends(layout: Layout) -> None:
    run_out(layout)
    assert in_the_way(layout, "second", "bob") == []
    with pytest.raises(ValueError, match="first has lost its lease on the node"):
        put(layout)
    assert left_of(layout) == []


@pytest.mark.parametrize("name", ["data/mine", "./data/below/mine", "data", "/mine", "../mine"])
def test_a_snapshot_writes_nothing_outside_its_folder(layout: Layout, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        link, file = tarfile.TarInfo("data"), tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, str(outside if name != "data" else outside / "mine")
        tar.addfile(link)
        tar.addfile(file, io.BytesIO(b""))
    content = packed.getvalue()
    with pytest.raises(ValueError, match="the snapshot holds"):
        receive(layout, JOB, header(len(content)), io.BytesIO(content), Path("p.pyz"))
    assert list(outside.iterdir()) == []
    assert left_of(layout) == []


@pytest.mark.parametrize("target", ["/nowhere/data", "../../../data", "train.py"])
def test_a_link_is_put_as_it_is_wherever_it_leads_and_whichever_python_the_node_has(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Python 3.14 refuses links that lead out of a folder unless it is told otherwise (PEP 706, read 2026-11-26)."""

    def refuse(member: tarfile.TarInfo, path: str) -> None:
        raise tarfile.TarError(f"{member.name} is refused")

    monkeypatch.setattr(tarfile.TarFile, "extraction_filter", staticmethod(refuse), raising=False)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        link = tarfile.TarInfo("data")
        link.type, link.linkname = tarfile.SYMTYPE, target
        tar.addfile(link)
    receive(layout, JOB, header(len(packed.getvalue())), io.BytesIO(packed.getvalue()), Path("p.pyz"))
    assert os.readlink(layout.code(JOB) / "data") == target


def test_a_preparation_that_breaks_off_leaves_nothing(layout: Layout) -> None:
    packed = snapshot()
    with pytest.raises(ValueError, match="too early"):
        receive(layout, JOB, header(len(packed) + 1), io.BytesIO(packed), Path("p.pyz"))
    assert left_of(layout) == []
    odd = {**header(len(packed)), "secrets": {"TOKEN": "s3", "../first/TOKEN": ""}}
    with pytest.raises(FileExistsError):
        receive(layout, JOB, odd, io.BytesIO(packed), Path("p.pyz"))
    assert left_of(layout) == []


def test_a_folder_that_is_there_already_stays(layout: Layout) -> None:
    layout.work(JOB).mkdir(parents=True)
    with pytest.raises(FileExistsError):
        put(layout)
    assert layout.work(JOB).is_dir()


def test_what_was_prepared_is_taken_back_also_after_the_lease_ran_out(layout: Layout) -> None:
    put(layout)
    run_out(layout)
    discard(layout, JOB)
    assert left_of(layout) == []
    assert in_the_way(layout, "second", "bob") == []


def test_a_job_that_was_started_is_not_taken_back(layout: Layout) -> None:
    put(layout)
    write_json(layout.state(JOB), {**read_json(layout.state(JOB)), "state": "succeeded"})
    discard(layout, JOB)
    assert layout.state(JOB).exists()
    assert lease.holder(layout, "first") is None


def test_folders_of_preparations_that_were_given_up_go_and_no_others(layout: Layout) -> None:
    for name in ("given-up", "just-begun", "ended", "programs", JOB):
        layout.folder(name).mkdir(parents=True)
    layout.secrets("given-up").mkdir(parents=True)
    write_json(layout.state("ended"), {"state": "succeeded", "since_s": time.time()})
    lease.release(layout, JOB)
    assert in_the_way(layout, "just-begun", "bob") == []
    remove_old(layout, but=JOB)
    assert {path.name for path in layout.jobs.iterdir()} == {"just-begun", "ended", "programs", JOB}
    assert not layout.secrets("given-up").exists()


def test_nothing_lies_in_a_folder_that_is_given_away_before_it(tmp_path: Path) -> None:
    (tmp_path / "code/a/b").mkdir(parents=True)
    (tmp_path / "code/a/b/file").touch()
    (tmp_path / "code/link").symlink_to(tmp_path)
    found = list(paths_to_give(tmp_path / "code"))
    assert found[-1] == str(tmp_path / "code")
    assert len(found) == len(set(found)) == 5
    for place, path in enumerate(found):
        assert str(Path(path).parent) not in found[:place]
