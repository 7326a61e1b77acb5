"""Whole-process timings: wall and processor seconds and peak memory of a command and its child processes."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One run from start to exit."""

    wall_s: float
    cpu_s: float
    """User and system, of all processes that it waited for; other load changes it less than the wall time."""
    peak_mib: float
    """The largest resident set of any single process; never below the measuring process's own."""


class CommandFailed(RuntimeError):
    """A measured command did not succeed, so its time means nothing."""


def run(argv: Sequence[str], *, env: Mapping[str, str], cwd: str, timeout_s: float) -> Timing:
    """The measures of one run of `argv`; raises CommandFailed with the end of its output when it exits non-zero."""
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        process = subprocess.Popen(
            list(argv), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        killer = threading.Timer(timeout_s, os.kill, (process.pid, signal.SIGKILL))
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - started
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)  # set by hand: only wait4 returns the usage
        if process.returncode != 0:
            late = f"not done after {timeout_s:.0f} s" if wall_s >= timeout_s else f"exit {process.returncode}"
            output.seek(0)
            tail = output.read().decode(errors="replace")[-1500:]
            raise CommandFailed(f"{' '.join(argv)}: {late}\n{tail}")
    return Timing(wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime, peak_mib=usage.ru_maxrss / 1024)


def median_wall_s(timings: Sequence[Timing]) -> float:
    """The median of the wall times."""
    return statistics.median(timing.wall_s for timing in timings)


def median_cpu_s(timings: Sequence[Timing]) -> float:
    """The median of the processor times."""
    return statistics.median(timing.cpu_s for timing in timings)
