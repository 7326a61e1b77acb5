"""Processes of this computer as /proc shows them: alive or not, whose child, since which tick.

Linux only; elsewhere nothing is found, and only its lock shows that a run was killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PROC = Path("/proc")
POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Process:
    """One living process; pid and start tick together are never used twice in one boot."""

    pid: int
    parent: int
    start_ticks: int
    """Clock ticks after boot."""


def parse_stat(text: str) -> Process | None:
    """The process of one /proc/PID/stat line, or None when it is a zombie or the line is not one.

    The name in brackets may hold anything, so fields count from the last bracket (proc_pid_stat(5)).
    """
    head, bracket, tail = text.rpartition(")")
    fields = tail.split()
    if not bracket or len(fields) < 20 or fields[0] in "ZX":
        return None
    return Process(
        pid=int(head.split("(", 1)[0]),
        parent=int(fields[1]),
        start_ticks=int(fields[19]),
    )


def find_process(pid: int) -> Process | None:
    """The living process with this id."""
    try:
        return parse_stat((PROC / str(pid) / "stat").read_text())
    except (OSError, ValueError):
        return None


def sees_all_processes() -> bool:
    """Whether other users' processes are seen: not without /proc, nor where it hides them (`hidepid`, proc(5))."""
    return find_process(1) is not None


def all_processes() -> tuple[Process, ...]:
    """Every living process, by pid."""
    if not PROC.is_dir():
        return ()
    pids = sorted(int(entry) for entry in os.listdir(PROC) if entry.isdigit())
    return tuple(process for pid in pids if (process := find_process(pid)) is not None)


def started_at(process: Process) -> datetime | None:
    """When the process started, by the present clock; None where /proc does not say."""
    try:
        rows = (line.split() for line in (PROC / "stat").read_text().splitlines())
        boot_s = next(int(words[1]) for words in rows if words[:1] == ["btime"])
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return datetime.fromtimestamp(boot_s + process.start_ticks / os.sysconf("SC_CLK_TCK"), UTC)


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether this very process, not a later one with its number, lives."""
    process = find_process(pid)
    return process is not None and process.start_ticks == start_ticks


def command_line(pid: int) -> tuple[str, ...]:
    """The argv of a process; empty when it is gone or not ours to read."""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(raw.decode(errors="replace").rstrip("\0").split("\0")) if raw else ()


def has_variable(pid: int, name: str, value: str) -> bool:
    """Whether a process was started with this environment variable; False when it is gone or not ours to read."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{name}={value}".encode() in raw.split(b"\0")


def working_folder(pid: int) -> Path | None:
    """Where a process runs; None when it is gone or not ours to read."""
    try:
        return Path(os.readlink(PROC / str(pid) / "cwd"))
    except OSError:
        return None


def boot_id() -> str:
    """The id of this computer's present boot: pids and ticks mean nothing in another one."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signals each of these processes that still lives, and no later one with its id."""
    for process in processes:
        if is_alive(process.pid, process.start_ticks):
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue


def wait_until_gone(processes: Iterable[Process], *, timeout_s: float) -> tuple[Process, ...]:
    """Waits until these processes are gone; returns those that still live after `timeout_s`."""
    waiting = tuple(processes)
    give_up = time.monotonic() + timeout_s
    while waiting := tuple(p for p in waiting if is_alive(p.pid, p.start_ticks)):
        if time.monotonic() >= give_up:
            break
        time.sleep(POLL_S)
    return waiting


LARGEST_PID = 2**31 - 1
"""A pid_t is a signed number of 32 bits."""
