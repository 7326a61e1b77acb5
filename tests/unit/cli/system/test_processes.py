"""Who is who in /proc, and what the file of a run tells."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from clusterctl.engine.run_file import RunRecord, new_record, note_engine, only_run, read_record, write_record
from clusterctl.engine.strays import is_engine, is_part, orphaned_parts
from clusterctl.home import Home
from clusterctl.system.processes import Process, boot_id, find_process, is_alive, parse_stat
from clusterctl_infra.errors import EngineError

STAT = "4242 (a (b) c) S 17 4242 4240 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10 18446744073709551615"


def test_a_name_with_brackets_and_blanks_does_not_confuse() -> None:
    assert parse_stat(STAT) == Process(pid=4242, parent=17, start_ticks=987654)


@pytest.mark.parametrize("text", ["", "1 (x", STAT.replace(") S ", ") Z "), STAT.replace(") S ", ") X ")])
def test_a_zombie_is_not_alive(text: str) -> None:
    assert parse_stat(text) is None


def test_a_pid_with_another_start_is_another_process() -> None:
    own = find_process(os.getpid())
    assert own is not None
    assert is_alive(own.pid, own.start_ticks)
    assert not is_alive(own.pid, own.start_ticks + 1)


@pytest.mark.parametrize(
    ("words", "engine", "part"),
    [
        (("/cache/engine/3.250.0/pulumi", "up"), True, False),
        (("/usr/bin/setpriv", "--pdeathsig", "INT", "--", "/x/.venv/bin/pulumi", "up"), True, False),
        (("sh", "/x/.venv/bin/pulumi", "up"), True, False),
        (("/cache/pulumi-language-python", "127.0.0.1:1"), False, True),
        (("python3", "/cache/pulumi-language-python-exec", "--monitor"), False, True),
        (("python", "-m", "clusterctl_rehearsal.plugin", "127.0.0.1:1"), False, True),
        (("python", "-P", "-m", "clusterctl_infra.provider", "127.0.0.1:1"), False, True),
        (("python", "-m", "clusterctl_rehearsal.server.process"), False, False),
        (("/usr/sbin/sshd",), False, False),
        ((), False, False),
    ],
)
def test_the_region_and_its_machines_are_no_part_of_a_run(words: tuple[str, ...], engine: bool, part: bool) -> None:
    assert (is_engine(words), is_part(words)) == (engine, part)


def test_only_parts_without_a_living_engine_are_orphans() -> None:
    def process(pid: int, parent: int) -> Process:
        return Process(pid=pid, parent=parent, start_ticks=1)

    host, program = ("/c/pulumi-language-python", "127.0.0.1:1"), ("python3", "/c/pulumi-language-python-exec")
    words = {
        process(10, 1): ("bash",),
        process(11, 10): ("/c/pulumi", "preview"),
        process(12, 11): host,
        process(13, 12): program,
        process(20, 1): host,
        process(21, 20): program,
        process(22, 1): ("sshd",),
    }
    assert [process.pid for process in orphaned_parts(words)] == [20, 21]


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    record = new_record("up", tokens=("a", "b"), stack="/stacks/train")
    write_record(tmp_path / "train.json", record)
    assert read_record(tmp_path / "train.json") == record
    assert record.is_of_this_boot
    assert record.boot == boot_id()


def test_a_user_without_a_name_as_in_some_containers_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert new_record("up", tokens=(), stack="/stacks/train").user == "unknown"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"verb": "up"}', "not json"])
def test_a_broken_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.json").write_text(text)
    assert read_record(tmp_path / "train.json") is None


def test_two_runs_of_one_cluster_never_meet(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    with only_run(home, "train", verb="down"):
        write_record(home.run_file("train"), new_record("down", tokens=("a",), stack="/stacks/train"))
        message = rf"clusterctl down is changing train: started by .* \(pid {os.getpid()}\)"
        with pytest.raises(EngineError, match=message), only_run(home, "train", verb="down"):
            pass
        with only_run(home, "other", verb="down"):
            pass
    with only_run(home, "train", verb="down"):
        pass


def no_locks(descriptor: int, operation: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_without_locks_a_run_of_this_computer_is_known_by_what_it_wrote(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    notes: list[str] = []
    with only_run(home, "train", verb="down", note=notes.append, flock=no_locks):
        assert f"the file system of {tmp_path} has no locks" in notes[0]
        parent = find_process(os.getppid())
        assert parent is not None
        other = replace(new_record("up", tokens=(), stack=""), cli_pid=parent.pid, cli_ticks=parent.start_ticks)
        write_record(home.run_file("train"), other)
        message = rf"clusterctl up is changing train: started by .* \(pid {parent.pid}\)"
        with pytest.raises(EngineError, match=message), only_run(home, "train", verb="down", flock=no_locks):
            pass
    write_record(home.run_file("train"), replace(other, cli_ticks=0))
    with only_run(home, "train", verb="down", flock=no_locks):
        pass  # its process is gone
    write_record(home.run_file("train"), replace(other, host="another"))
    with only_run(home, "train", verb="down", flock=no_locks):
        pass  # a number of another computer means nothing here


def test_who_has_just_begun_is_named_beside_the_record_of_one_that_was_killed(tmp_path: Path) -> None:
    home = Home(path=tmp_path)
    killed = replace(new_record("up", tokens=("a",), stack="/stacks/train"), cli_ticks=0)
    with only_run(home, "train", verb="down"):
        write_record(home.run_file("train"), killed)
        message = rf"^clusterctl down is changing train: started by .* \(pid {os.getpid()}\)"
        with pytest.raises(EngineError, match=message), only_run(home, "train", verb="up"):
            pass


def test_a_record_of_another_boot_has_no_processes() -> None:
    record = new_record("up", tokens=("a",), stack="/stacks/train")
    other = RunRecord(**{**record.__dict__, "boot": "another"})
    assert not other.is_of_this_boot


def test_engines_that_were_started_are_read_back_too(tmp_path: Path) -> None:
    file = tmp_path / "train.json"
    note_engine(file, os.getpid())
    assert not file.exists(), "nothing was under way"
    write_record(file, new_record("up", tokens=("a",), stack="/stacks/train"))
    note_engine(file, os.getpid())
    note_engine(file, 7)
    record = read_record(file)
    assert record is not None
    assert [process.pid for process in record.engines] == [os.getpid(), 7]
    assert record.tokens == ("a",)
