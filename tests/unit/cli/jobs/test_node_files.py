"""What jobs keep on a node: the lease, the output, the environment, and what is left of killed supervisors."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path

import pytest
from clusterctl.on_node.job import lease
from clusterctl.on_node.job.facts import ports_in_use, ports_of_jobs
from clusterctl.on_node.job.job_environment import read_environment
from clusterctl.on_node.job.keeper_service import service_argv
from clusterctl.on_node.job.layout import (
    Layout,
    is_cancelled,
    mark_cancelled,
    read_state,
    write_json,
    write_state,
)
from clusterctl.on_node.job.out_of_memory import OutOfMemory, out_of_memory_kills
from clusterctl.on_node.job.output_log import RESERVED_BYTES, SEGMENTS, LauncherOutput, OutputLog, read_from
from clusterctl.on_node.job.prepare import discard
from clusterctl.on_node.job.present_state import present_state
from clusterctl.on_node.job.processes import itself

from tests.unit.cli.jobs.leases import in_the_way


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "run/clusterctl").mkdir(parents=True)
    return Layout(tmp_path)


def set_holder(layout: Layout, **holder: object) -> None:
    layout.lease.mkdir(exist_ok=True)
    write_json(layout.lease / f"{holder['job']}.json", holder)


def test_of_two_jobs_one_gets_the_node_and_the_other_hears_which(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    assert in_the_way(layout, "second", "bob") == ["first"]
    lease.release(layout, "second")
    assert lease.holder(layout, "first") is not None
    lease.release(layout, "first")
    assert in_the_way(layout, "second", "bob") == []


def test_a_lease_whose_preparation_was_given_up_is_taken_over(layout: Layout) -> None:
    set_holder(layout, job="dead-before-start", by="ada", until_s=0.0)
    assert in_the_way(layout, "second", "bob") == []
    assert not lease.renew(layout, "dead-before-start")


@pytest.mark.parametrize(("start", "is_held"), [("this process", True), ("another process of its number", False)])
def test_a_lease_lives_as_long_as_its_keeper(layout: Layout, start: str, is_held: bool) -> None:
    keeper = itself() if start == "this process" else [os.getpid(), 1]
    set_holder(layout, job="kept-first", by="its keeper", keeper=keeper)
    assert lease.is_kept(layout, "kept-first") is is_held
    assert in_the_way(layout, "second", "bob") == (["kept-first"] if is_held else [])


def test_a_node_is_free_once_its_job_ended_whatever_that_made_among_its_secrets(layout: Layout) -> None:
    assert in_the_way(layout, "first", "ada") == []
    (layout.secrets("first") / "folder/in-it").mkdir(parents=True)
    layout.key("first").parent.mkdir()
    layout.key("first").touch()
    lease.forget(layout, "first")
    assert not layout.secrets("first").exists()
    assert not layout.key("first").exists()
    assert in_the_way(layout, "second", "bob") == []


def test_a_stale_lease_is_taken_over_whatever_its_job_made_among_its_secrets(layout: Layout) -> None:
    set_holder(layout, job="first", by="its keeper", keeper=[os.getpid(), 1])
    (layout.secrets("first") / "folder").mkdir(parents=True)
    assert in_the_way(layout, "second", "bob") == []
    assert not layout.secrets("first").exists()


def test_a_job_whose_keeper_is_gone_is_lost_and_one_that_has_ended_is_not(layout: Layout) -> None:
    layout.folder("first").mkdir(parents=True)
    state = {"job": "first", "attempt": 1, "slot": 2, "state": "running", "since_s": time.time(), "boot_id": ""}
    write_json(layout.state("first"), state)
    found = present_state(layout, "first")
    assert (found["state"], found["outcome"]["exit_code"]) == ("lost", 255)
    assert "Node 2 was lost: its supervisor is gone" in found["outcome"]["cause"]
    write_json(layout.state("first"), {**state, "state": "succeeded"})
    assert present_state(layout, "first")["state"] == "succeeded"


def test_a_job_is_being_prepared_as_long_as_its_lease_holds(layout: Layout) -> None:
    layout.folder("first").mkdir(parents=True)
    state = {"job": "first", "attempt": 1, "slot": 2, "state": "preparing", "since_s": time.time(), "boot_id": ""}
    write_json(layout.state("first"), state)
    assert in_the_way(layout, "first", "ada") == []
    assert present_state(layout, "first")["state"] == "preparing"
    lease.release(layout, "first")
    assert "ended before it was started" in present_state(layout, "first")["outcome"]["cause"]


def test_output_is_read_on_from_any_place_over_segments(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, segment_bytes=60)
    for number in range(5):
        log.write("0", b"line %d" % number)
    log.close()
    rows = list(read_from(tmp_path, (1, 0)))
    assert [line.split(" ", 2)[1:] for _, line in rows] == [["0", f"line {number}"] for number in range(5)]
    for count, (place, _) in enumerate(rows):
        assert [line for _, line in read_from(tmp_path, place)] == [line for _, line in rows[count + 1 :]]


def test_the_oldest_output_goes(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, segment_bytes=1)
    for number in range(10):
        log.write("-", b"%d" % number)
    log.close()
    assert len(list(tmp_path.iterdir())) == SEGMENTS
    assert [line.split()[-1] for _, line in read_from(tmp_path, (1, 0))] == ["6", "7", "8", "9"]


def test_a_log_has_room_on_the_disk_before_its_first_word(tmp_path: Path) -> None:
    log = OutputLog(tmp_path)
    log.begin()
    (path,) = tmp_path.iterdir()
    assert (path.stat().st_size, path.stat().st_blocks * 512 >= RESERVED_BYTES) == (0, True)
    log.write("0", b"the first")
    log.close()
    assert [line.split(" ", 1)[1] for _, line in read_from(tmp_path, (1, 0))] == ["0 the first"]


def test_half_a_line_is_not_read_yet(tmp_path: Path) -> None:
    (tmp_path / "output.000001").write_bytes(b"1.0 0 whole\n1.0 0 ha")
    assert list(read_from(tmp_path, (1, 0))) == [((1, 12), "1.0 0 whole")]


def test_all_that_was_said_is_in_the_log_once_it_is_drained(tmp_path: Path) -> None:
    log = OutputLog(tmp_path)
    output = LauncherOutput(log)
    output.follow(io.BytesIO(b"".join(b"0\tline %d\n" % number for number in range(20_000)) + b"the end\n"))
    output.drain(60.0)
    log.close()
    assert len(list(read_from(tmp_path, (1, 0)))) == 20_001
    assert output.last_lines() == ["the end"]


def test_output_that_somebody_holds_open_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    log = OutputLog(tmp_path)
    output = LauncherOutput(log)
    with os.fdopen(reading, "rb") as stream:
        output.follow(stream)
        output.drain(0.01)  # returns while the pipe is open: nobody else closes it
        os.write(writing, b"the end\n")
        os.close(writing)
        output.drain(60.0)
    log.close()
    assert output.last_lines() == ["the end"]


def test_variables_are_read_as_a_shell_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# yours\nA='two\nlines'\nB='it'\"'\"'s'\n")
    assert read_environment(file) == {"A": "two\nlines", "B": "it's"}
    assert read_environment(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("cgroup", "file", "text"),
    [
        ("0::/job.service", "sys/fs/cgroup/job.service/memory.events", "max 3\noom_kill 2\n"),
        ("4:memory:/job", "sys/fs/cgroup/memory/job/memory.oom_control", "under_oom 0\noom_kill 2\n"),
        ("4:cpu:/job", "sys/fs/cgroup/memory/job/memory.oom_control", None),
    ],
)
def test_the_kernel_counts_who_was_killed_for_memory(tmp_path: Path, cgroup: str, file: str, text: str | None) -> None:
    for name, content in ((Path("proc/self/cgroup"), cgroup + "\n"), (Path(file), text or "oom_kill 9\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert out_of_memory_kills(tmp_path) == (0 if text is None else 2)


def test_two_jobs_on_one_node_have_no_port_in_common(layout: Layout) -> None:
    lease.take(layout, "first", "ada", wanted=2, gpus=8, ports=(28001, 28002))
    with pytest.raises(lease.PortsTaken):
        lease.take(layout, "second", "bob", wanted=2, gpus=8, ports=(28002, 28003))
    assert lease.take(layout, "third", "bob", wanted=2, gpus=8, ports=(28003, 28004)) == ((2, 3), [])
    assert lease.hold(layout, "first")
    assert {28001, 28002, 28003, 28004} <= ports_of_jobs(layout, lease.holders(layout))
    with pytest.raises(lease.PortsTaken):
        lease.take(layout, "second", "bob", wanted=2, gpus=8, ports=(28002,))


def test_a_kill_for_memory_counts_for_a_rank_that_was_killed_at_that_time(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "proc/vmstat").write_text("nr_free 1\noom_kill 3\n")
    memory = OutOfMemory(tmp_path)
    assert not memory.is_near(time.time())
    (tmp_path / "proc/vmstat").write_text("oom_kill 4\n")
    assert memory.is_near(time.time())
    assert not memory.is_near(time.time() + 3600)


def test_a_state_is_kept_though_the_disk_takes_nothing(layout: Layout) -> None:
    write_state(layout, "first", {"state": "running"})  # its folder is not there
    assert read_state(layout, "first") == {"state": "running"}
    layout.folder("first").mkdir(parents=True)
    write_state(layout, "first", {"state": "failed"})
    assert read_state(layout, "first") == {"state": "failed"}
    assert not layout.spare_state("first").exists()
    write_state(layout, "first", {"state": "succeeded"})
    assert not layout.spare_state("first").exists(), "tmpfs takes it only where the disk does not"


def test_a_job_is_cancelled_though_the_disk_takes_no_file(layout: Layout) -> None:
    assert not is_cancelled(layout, "first")
    mark_cancelled(layout, "first")  # its folder is not there
    assert layout.spare_cancel("first").exists()
    assert is_cancelled(layout, "first")
    assert not is_cancelled(layout, "second")
    discard(layout, "first")
    assert not is_cancelled(layout, "first"), "a later job of this name is another one"


def test_a_cancel_is_written_beside_the_job_where_the_disk_takes_it(layout: Layout) -> None:
    layout.folder("first").mkdir(parents=True)
    mark_cancelled(layout, "first")
    assert layout.cancel("first").exists()
    assert not layout.spare_cancel("first").exists()
    assert is_cancelled(layout, "first")


def test_only_ports_of_jobs_that_somebody_listens_on_are_in_use(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    rows = ["sl local rem st", "0: 00000000:6D61 0:0 0A 0", "1: 00000000:6D62 0:0 01 0", "2: 00000000:0016 0:0 0A 0"]
    (tmp_path / "proc/net/tcp").write_text("\n".join(rows) + "\n")
    assert ports_in_use(tmp_path) == [0x6D61]


@pytest.mark.parametrize(("is_sudo", "is_safe"), [(False, True), (True, False)])
def test_a_job_has_no_way_to_more_rights_unless_asked_for(is_sudo: bool, is_safe: bool) -> None:
    argv = service_argv("first", Path("/p.pyz"), is_sudo=is_sudo)
    for word in (
        "NoNewPrivileges=yes",
        "InaccessiblePaths=-/etc/clusterctl/ssh_key",
        "InaccessiblePaths=-/run/user",
    ):
        assert (word in argv) is is_safe
    assert "KillMode=control-group" in argv


def test_the_containers_of_a_killed_keepers_job_are_ended_by_a_service_of_their_own() -> None:
    last = [word for word in service_argv("first", Path("/p.pyz"), is_sudo=False) if word.startswith("ExecStopPost=")]
    both = service_argv("first", Path("/p.pyz"), is_sudo=False, has_image=True)
    service = "systemd-run --quiet --collect --no-block --unit clusterctl-job-first-containers"
    first = f"ExecStopPost={service} {sys.executable} -IS /p.pyz end-containers first"
    assert [word for word in both if word.startswith("ExecStopPost=")] == [first, *last]
