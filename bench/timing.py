"""Whole-process timings: wall seconds and peak memory of a command and all that it waits for."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One run: seconds from start to exit, and the largest resident set of any single process in MiB."""

    wall_s: float
    peak_mib: float


class CommandFailed(RuntimeError):
    """A measured command did not succeed, so its time means nothing."""


def run(argv: Sequence[str], *, env: Mapping[str, str], cwd: str, timeout_s: float) -> Timing:
    """The time of one run of `argv`; raises CommandFailed with the end of its output when it exits non-zero."""
    started = time.monotonic()
    with subprocess.Popen(
        list(argv), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise CommandFailed(f"{' '.join(argv)}: not done after {timeout_s:.0f} s") from None
    wall_s = time.monotonic() - started
    if process.returncode != 0:
        tail = output.decode(errors="replace")[-1500:]
        raise CommandFailed(f"{' '.join(argv)}: exit {process.returncode}\n{tail}")
    return Timing(wall_s=wall_s, peak_mib=0.0)


def run_with_memory(argv: Sequence[str], *, env: Mapping[str, str], cwd: str, timeout_s: float) -> Timing:
    """As `run`, with the peak resident memory that the kernel accounts to the largest process below `argv`."""
    read_end, write_end = os.pipe()
    shim = (
        "import os,resource,subprocess,sys;"
        "code=subprocess.call(sys.argv[2:]);"
        "os.write(int(sys.argv[1]),str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode());"
        "sys.exit(code)"
    )
    started = time.monotonic()
    done = subprocess.run(
        ["python3", "-c", shim, str(write_end), *argv],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
        pass_fds=(write_end,),
        check=False,
    )
    wall_s = time.monotonic() - started
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        kib = int(pipe.read() or b"0")
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout.decode(errors='replace')[-1500:]}")
    return Timing(wall_s=wall_s, peak_mib=kib / 1024)


def median_wall_s(timings: Sequence[Timing]) -> float:
    """The middle of the wall times."""
    return statistics.median(timing.wall_s for timing in timings)
