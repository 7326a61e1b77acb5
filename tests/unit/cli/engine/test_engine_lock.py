"""Which locks are dead: only those whose process surely ran on this computer."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clusterctl.engine.engine_start import EngineStart, engine_start
from clusterctl.engine.lock import Lock, locks_in, locks_named
from clusterctl.engine.stack import Stack
from clusterctl.system.own_disk import OWN_KINDS, kind_of, own_kinds
from clusterctl.system.pid_namespace import INITIAL, inner_number
from clusterctl.system.processes import boot_id

STACK = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=True)
GONE = 2**22 + 1
"""A pid that Linux gives to nobody."""
NOW = datetime.now(UTC).replace(microsecond=0)


def lock_file(folder: Path, **changes: object) -> Path:
    path = folder / ".pulumi" / "locks" / "organization" / "train" / "dev" / "a.json"
    path.parent.mkdir(parents=True)
    now = datetime.now(UTC).isoformat()
    row = {"pid": os.getpid(), "username": "ada", "hostname": socket.gethostname(), "timestamp": now}
    path.write_text(json.dumps({**row, **changes}))
    return path


def a_lock(*, is_of_own_disk: bool, pid: int = GONE, host: str | None = None, since: datetime = NOW) -> Lock:
    host = host or socket.gethostname()
    return Lock(user="ada", host=host, pid=pid, since=since.isoformat(), is_of_own_disk=is_of_own_disk)


def a_start(*, pid: int = GONE, boot: str | None = None, machine: str = "m1", at: datetime = NOW) -> EngineStart:
    return EngineStart(
        pid=pid,
        ticks=1,
        at=at.isoformat(),
        host=socket.gethostname(),
        boot=boot_id() if boot is None else boot,
        machine=machine,
    )


@pytest.mark.parametrize(
    ("changes", "is_dead"),
    [
        ({}, False),
        ({"pid": GONE}, True),
        ({"pid": GONE, "hostname": "elsewhere"}, False),
        ({"timestamp": "2020-11-21T10:15:13.123456789Z"}, True),
        ({"timestamp": "yesterday"}, False),
        ({"timestamp": ""}, False),
    ],
    ids=[
        "it lives",
        "it is gone",
        "another computer's",
        "older than the process with its pid",
        "no time",
        "an empty time",
    ],
)
def test_on_a_disk_of_this_computer_a_lock_is_as_dead_as_its_process(
    tmp_path: Path, changes: dict[str, object], is_dead: bool
) -> None:
    lock_file(tmp_path, **changes)
    (lock,) = (replace(lock, is_of_own_disk=True) for lock in locks_in(f"file://{tmp_path}", STACK))
    assert lock.is_dead(()) == is_dead


def test_a_computer_of_the_same_name_on_a_shared_disk_may_hold_a_lock_whose_pid_nobody_has_here() -> None:
    assert not a_lock(is_of_own_disk=False).is_dead(())
    assert a_lock(is_of_own_disk=True).is_dead(())


@pytest.mark.parametrize(
    ("starts", "is_dead"),
    [
        ([a_start()], True),
        ([a_start(pid=7), a_start()], True),
        ([a_start(boot="earlier", machine="")], False),
        ([a_start(boot="earlier", machine="another")], False),
        ([a_start(boot="", machine="")], False),
        ([a_start(pid=7)], False),
        ([a_start(at=NOW - timedelta(hours=1))], False),
        ([a_start(at=NOW + timedelta(minutes=1))], False),
        ([replace(a_start(), host="another")], False),
        ([], False),
    ],
    ids=[
        "of this boot, and gone",
        "one of two",
        "of a boot of an unknown computer",
        "of another computer with this home",
        "of a computer without boot id and machine id",
        "another process",
        "an hour before the lock",
        "after the lock",
        "the computer had another name then",
        "none",
    ],
)
@pytest.mark.parametrize("since", [NOW, NOW + timedelta(seconds=40)])
def test_where_files_prove_nothing_what_was_started_here_does(
    starts: Sequence[EngineStart], is_dead: bool, since: datetime
) -> None:
    assert a_lock(is_of_own_disk=False, since=since).is_dead(starts) == is_dead


def test_no_engine_outlives_a_boot_of_its_computer() -> None:
    here = engine_start(os.getpid())
    assert here.machine, "this computer has no /etc/machine-id"
    assert not here.is_gone
    assert replace(here, boot="earlier").is_gone
    assert not replace(here, boot="earlier", machine="another").is_gone
    assert not replace(here, ticks=here.ticks + 1, pids="pid:[7]").is_gone, "in another container nobody is seen"
    assert replace(here, ticks=here.ticks + 1, pids="").is_gone, "as an older clusterctl noted it"
    assert replace(here, ticks=here.ticks + 1).is_gone


def test_an_engine_that_was_started_here_and_lives_keeps_its_lock() -> None:
    start = engine_start(os.getpid())
    assert not a_lock(is_of_own_disk=False, pid=start.pid).is_dead([start])


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_engines_of_one_number_within_minutes_the_living_one_keeps_its_lock(order: int) -> None:
    living = engine_start(os.getpid())
    noted = [replace(living, ticks=living.ticks - 1), living][::order]
    assert not a_lock(is_of_own_disk=True, pid=living.pid).is_dead(noted)


@pytest.mark.parametrize("url", ["s3://bucket/path", "https://api.pulumi.com", "file:///not/there"])
def test_other_backends_have_no_lock_files(url: str) -> None:
    assert locks_in(url, STACK) == ()


def test_the_engines_own_refusal_names_the_holder() -> None:
    text = (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        "lock file with `pulumi cancel`.\n  file:///x/a.json: created by ada@box (pid 77) at 2026-11-21T10:15:13Z"
    )
    assert locks_named(text) == (Lock(user="ada", host="box", pid=77, since="2026-11-21T10:15:13Z"),)
    assert locks_named("another error") == ()


@pytest.mark.parametrize(
    ("lock", "hint"),
    [
        (a_lock(is_of_own_disk=True, pid=os.getpid()), f"kill -INT {os.getpid()}"),
        (a_lock(is_of_own_disk=True, pid=os.getpid(), host="elsewhere"), "pulumi cancel"),
        (a_lock(is_of_own_disk=False), "pulumi cancel"),
    ],
    ids=["it lives here", "it lives elsewhere", "nobody knows"],
)
def test_only_what_lives_here_is_ended_by_a_signal(lock: Lock, hint: str) -> None:
    assert lock.end_it(cancel="pulumi cancel") == hint
    assert ("or end it" in lock.message) == hint.startswith("kill")


MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
28 27 0:40 / /home rw,relatime shared:7 master:2 - nfs4 server:/home rw
29 28 0:41 / /home/a\040b rw - xfs /dev/vdb rw
30 27 0:42 / /twice rw - ext4 /dev/vdc rw
31 30 0:43 / /twice rw - fuse.sshfs x rw
half a line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homes/ada", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/.local", "nfs4"),
        ("/home/a b/state", "xfs"),
        ("/twice/state", "fuse.sshfs"),
    ],
)
def test_a_folder_is_on_the_file_system_that_is_mounted_nearest_above_it(path: str, kind: str) -> None:
    assert kind_of(path, MOUNTS) == kind
    assert (kind in OWN_KINDS) == (kind in ("ext4", "xfs"))


def test_of_a_folder_without_any_mount_above_it_nothing_is_known() -> None:
    assert kind_of("/x", "") is None


def test_in_a_container_a_disk_that_others_may_mount_is_not_its_own() -> None:
    assert own_kinds(INITIAL) == OWN_KINDS
    assert own_kinds("pid:[4026532205]") == {"overlay", "tmpfs"}


@pytest.mark.parametrize(
    ("status", "number"),
    [
        ("Name:\tpulumi\nNSpid:\t5123\t12\n", 12),
        ("NSpid:\t5123\t40\t7\n", 7),
        ("NSpid:\t5123\n", None),
        ("Name:\tx\n", None),
    ],
    ids=["in a container", "in one within another", "in none", "an old kernel"],
)
def test_a_process_in_a_container_has_a_number_of_its_own_there(status: str, number: int | None) -> None:
    assert inner_number(status) == number
