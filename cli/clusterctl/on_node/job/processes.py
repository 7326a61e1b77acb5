"""Processes of this machine, as /proc shows them, and how those of a job are ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Iterable

POLL_S = 0.05
JOB_VARIABLE = "CLUSTERCTL_JOB"


def started_at(pid: int, proc: Path = Path("/proc")) -> int | None:
    """When the process began, in ticks since boot: with its number it names one process for ever. None: it is gone."""
    fields = _stat(pid, proc)
    return None if fields is None or fields[0] == "Z" else int(fields[19])


def is_alive(process: Iterable[int] | None, proc: Path = Path("/proc")) -> bool:
    """Whether the process of this (pid, start) runs."""
    if process is None:
        return False
    pid, start = process
    return started_at(pid, proc) == start


def itself() -> list[int]:
    """This process as (pid, start)."""
    return [os.getpid(), started_at(os.getpid()) or 0]


def of_job(job: str, ancestor: int | None, proc: Path = Path("/proc")) -> list[int]:
    """The descendants of `ancestor`, if any, and whatever has the job's name in its environment; without zombies."""
    parents = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name), proc)
            if fields is not None and fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found = set() if ancestor is None else {pid for pid in parents if _descends(pid, ancestor, parents)}
    mark = ("%s=%s" % (JOB_VARIABLE, job)).encode()
    found |= {pid for pid in parents if mark in _environment(pid, proc)}
    return sorted(found - {ancestor or 0, os.getpid()})


def seen_from_here(process: tuple[int, int], candidates: Iterable[int], proc: Path = Path("/proc")) -> tuple[int, int]:
    """The process that is (pid, start) in its own container, as (pid, start) on this node.

    Only its number differs here, not its start. Unchanged if none of the candidates is that process.
    """
    pid, start = process
    for candidate in candidates:
        if _innermost_number(candidate, proc) == pid and started_at(candidate, proc) == start:
            return candidate, start
    return process


def _innermost_number(pid: int, proc: Path) -> int | None:
    """The process's number in its own namespace: the last number of `NSpid` (proc(5), since Linux 4.1)."""
    try:
        lines = (proc / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return int(numbers[-1]) if numbers else None


def end_all(job: str, ancestor: int | None, within_s: float) -> list[int]:
    """Kills what `of_job` finds until nothing is left; returns what is left after this time."""
    until = time.monotonic() + within_s
    while True:
        left = of_job(job, ancestor)
        for pid in left:
            send(pid, signal.SIGKILL)
        reap()
        if not left or time.monotonic() > until:
            return left
        time.sleep(POLL_S)


def send(pid: int, number: int) -> None:
    """Sends a signal; does nothing where the process has just ended."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended, or its number is another user's by now


def reap(keep: Iterable[int] = ()) -> None:
    """Waits for adopted children that have ended; those in `keep` are waited for elsewhere."""
    kept = set(keep)
    for pid in children_of(os.getpid()):
        if pid not in kept:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass  # somebody else has waited for it


def children_of(parent: int, proc: Path = Path("/proc")) -> list[int]:
    """The children of the process, with those that have ended and were not waited for."""
    found = []
    for entry in proc.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name), proc)
            if fields is not None and int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    seen = set()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _stat(pid: int, proc: Path) -> list[str] | None:
    """The fields of proc(5)'s `stat` from the state on; None: there is no such process."""
    try:
        return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def variables_of(pid: int, proc: Path = Path("/proc")) -> dict[str, str]:
    """The variables that the process was started with; none where it has ended, or is another user's."""
    pairs = (os.fsdecode(row).partition("=") for row in _environment(pid, proc))
    return {name: value for name, equals, value in pairs if equals}


def _environment(pid: int, proc: Path) -> list[bytes]:
    try:
        return (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or is another user's
