"""Locks between a computer and its containers, which may share its name and its folders: none is taken for dead."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusterctl.engine.lock import locks_in
from clusterctl.engine.stack import Stack
from clusterctl.system.own_disk import CONTAINERS_OWN, kind_of
from clusterctl.system.processes import find_process

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
JUDGE = """
import sys
from pathlib import Path
from clusterctl.engine.lock import locks_in
from clusterctl.engine.stack import Stack
stack = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=False)
print(locks_in(sys.argv[1], stack)[0].is_dead(()))
"""
JUDGE_OF_OWN_DISK = """
import os, sys
from clusterctl.engine.lock import Lock
pid, host, since, user = sys.argv[1:]
os.setgroups([]), os.setgid(int(user)), os.setuid(int(user))
print(Lock(user="ada", host=host, pid=int(pid), since=since, is_of_own_disk=True).is_dead(()))
"""
HIDING = ("unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"', "sh")
STACK = Stack(directory=Path("/x"), project="train", name="dev", is_rehearsal_project=False)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A folder of state that both sides see."""
    if os.geteuid() != 0:
        pytest.fail("a pid namespace is made by root alone")
    return tmp_path


def lock(state: Path, pid: int) -> str:
    """The URL of the state, after an engine with this number has locked the stack."""
    file = state / ".pulumi/locks/organization/train/dev/a.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    row = {"pid": pid, "username": "ada", "hostname": socket.gethostname(), "timestamp": datetime.now(UTC).isoformat()}
    file.write_text(json.dumps(row))
    return f"file://{state}"


@contextmanager
def engine_inside() -> Iterator[int]:
    """The number that a living engine has in its container; outside nobody has it."""
    far = (os.getpid() + 15_000) % 30_000 + 1_000  # from what the kernel gives next
    free = next(number for number in range(far, 2**15) if find_process(number) is None)
    # It has its name before it prints its number.
    engine = "exec -a pulumi bash -c 'echo $$; sleep 60; :'"
    script = f"echo {free - 1} > /proc/sys/kernel/ns_last_pid; bash -c {shlex.quote(engine)} & wait"
    with subprocess.Popen([*CONTAINER, "bash", "-c", script], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            yield int(started.stdout.readline())
        finally:
            started.kill()
            started.stdout.read()  # to its end, when nobody in there has it open any more


def is_dead(url: str, *where: str) -> bool:
    """Whether the stack's lock is taken for a dead one's there."""
    judge = [*where, sys.executable, "-c", JUDGE, url]
    done = subprocess.run(judge, capture_output=True, text=True, timeout=30)
    assert done.stdout in ("True\n", "False\n"), done.stderr
    return done.stdout == "True\n"


def test_from_outside_an_engine_in_a_container_lives_by_the_number_that_it_has_there(state: Path) -> None:
    with engine_inside() as number:
        assert find_process(number) is None
        (held,) = locks_in(lock(state, number), STACK)
        assert not replace(held, is_of_own_disk=True).is_dead(())
    (left,) = locks_in(lock(state, number), STACK)
    assert replace(left, is_of_own_disk=True).is_dead(())


def test_from_inside_nothing_is_known_of_a_lock_in_a_folder_that_is_shared(state: Path) -> None:
    if kind_of(str(state), Path("/proc/self/mountinfo").read_text()) in CONTAINERS_OWN:
        pytest.skip(f"{state} is on overlay or tmpfs, which are taken for a container's own: here it is to be shared")
    living = lock(state, os.getpid())
    assert not is_dead(living)
    assert not is_dead(living, *CONTAINER)
    gone = lock(state, 2**22 + 1)
    assert not is_dead(gone, *CONTAINER)


@pytest.mark.parametrize(("user", "is_dead"), [("0", True), ("65534", False)], ids=["root", "nobody"])
def test_where_the_processes_of_others_are_hidden_a_number_that_is_not_seen_proves_nothing(
    user: str, is_dead: bool
) -> None:
    asked = ["2000000000", socket.gethostname(), datetime.now(UTC).isoformat(), user]
    done = subprocess.run(
        [*HIDING, sys.executable, "-c", JUDGE_OF_OWN_DISK, *asked], capture_output=True, text=True, timeout=30
    )
    assert done.stdout == f"{is_dead}\n", done.stderr
