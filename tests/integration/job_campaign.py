"""Mishaps of jobs at random moments: after each the job's state is right soon, its cause is named, nothing is left.

Jobs of one cluster of process machines, one after the other. `scripts/campaign jobs` runs many and prints a table;
test_job_campaign.py runs ten.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args  # Any: parsed JSON

from bench.machine import describe_machine
from tests.integration.jobs.left_of_job import left_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, rehearsed, wait_until

Fault = Literal[
    "rank killed",
    "launcher killed",
    "supervisor killed",
    "node frozen",
    "cancelled twice",
    "full disk",
    "computer killed",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
NODES = 4
GRACE_S = 1.0
RIGHT_WITHIN_S = 30.0
"""Besides the grace: by then the state says how the job ended."""
GIVEN_UP_WITHIN_S = 60.0
"""So long a node stays held by a preparation that broke off (docs/jobs.md: a job that was never started)."""
LEFT_WITHIN_S = 20.0
FOUND_WITHIN_S = 20
"""What is to be killed may not have begun yet."""
PROGRAMS = {
    "obeys.py": "import time\nprint('up', flush=True)\ntime.sleep(600)\n",
    "ignores.py": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n",
    "fills.py": "import os, sys, time\ntime.sleep(float(sys.argv[2]))\n"
    "if os.environ['RANK'] == sys.argv[1]:\n    open('/dev/full', 'wb', buffering=0).write(b'x')\ntime.sleep(600)\n",
    "torch/__init__.py": "",
    "torch/distributed/__init__.py": "",
    "torch/distributed/run.py": "import os, subprocess, sys\n"
    "words = sys.argv[sys.argv.index('--no-python') + 1 :]\n"
    "place = {'RANK': os.environ['NODE_RANK'], 'LOCAL_RANK': '0', 'LOCAL_WORLD_SIZE': '1'}\n"
    "sys.exit(subprocess.call(words, env={**os.environ, **place}))\n",
}
"""What the jobs run; /dev/full fails a rank's write as a full disk does. The last one stands in for torchrun."""


@dataclass(frozen=True, kw_only=True)
class Mishap:
    """One job, and what befalls it."""

    fault: Fault
    slots: tuple[int, ...]
    victim: int
    """The place, among the slots, of the node that it befalls."""
    program: Literal["obeys.py", "ignores.py"]
    """Whether the ranks end when they are asked to."""
    after_s: float
    """Since `run --detach` has returned; of a computer that is killed, since `run` was typed."""

    @property
    def slot(self) -> int:
        """Of the node that it befalls."""
        return self.slots[self.victim]


@dataclass(frozen=True, kw_only=True)
class Right:
    """How a job ends after a fault."""

    state: str
    exit_code: int
    cause: str
    """A pattern; SLOT is the victim's, RANK its rank."""


RIGHT: dict[Fault, Right] = {
    "rank killed": Right(
        state="failed", exit_code=137, cause=r"Node SLOT \(\S+\): rank RANK .* was killed by signal 9"
    ),
    "launcher killed": Right(
        state="failed", exit_code=137, cause=r"Node SLOT \(\S+\): the launcher ended by signal 9 before its ranks did"
    ),
    "supervisor killed": Right(state="lost", exit_code=255, cause=r"Node SLOT\b"),
    "node frozen": Right(state="lost", exit_code=255, cause=r"Node SLOT\b"),
    "cancelled twice": Right(state="cancelled", exit_code=130, cause="it was cancelled"),
    "full disk": Right(state="failed", exit_code=1, cause=r"Node SLOT \(\S+\): rank RANK .*No space left on device"),
    "computer killed": Right(state="cancelled", exit_code=130, cause="it was cancelled"),
}
"""A job goes on without the computer that started it: it is cancelled from another one then."""


def mishaps(seed: int, *, runs: int) -> tuple[Mishap, ...]:
    """So many, each fault once before any comes again; the same for the same seed."""
    source = random.Random(seed)
    faults: list[Fault] = []
    while len(faults) < runs:
        faults += source.sample(FAULTS, len(FAULTS))
    return tuple(_mishap(source, fault) for fault in faults[:runs])


def _mishap(source: random.Random, fault: Fault) -> Mishap:
    slots = tuple(sorted(source.sample(range(NODES), source.randrange(2, NODES + 1))))
    return Mishap(
        fault=fault,
        slots=slots,
        victim=source.randrange(len(slots)),
        program=source.choice(("obeys.py", "ignores.py")),
        after_s=round(source.uniform(0.0, 4.0 if fault == "computer killed" else 1.0), 2),
    )


def write_programs(folder: Path) -> Path:
    """The folder that jobs are started from."""
    for name, text in PROGRAMS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def survive(cluster: Rehearsed, work: Path, mishap: Mishap, name: str) -> float:
    """Starts the job and its mishap; returns the seconds until all was right. An AssertionError says what is wrong."""
    if mishap.fault == "computer killed":
        return _without_its_computer(cluster, work, mishap, name)
    done = cluster.run(*_run_words(mishap, work, name, "--detach"))
    assert done.exit_code == 0, f"the job did not start: {done.text}"
    time.sleep(mishap.after_s)
    befall(cluster, mishap, name)
    took_s = assert_right(cluster, mishap, name)
    if mishap.fault == "node frozen":
        cluster.fault("thaw", f"{cluster.name}-{mishap.slot}")
    assert_nothing_left(cluster, name, within_s=LEFT_WITHIN_S)
    return took_s


def befall(cluster: Rehearsed, mishap: Mishap, name: str) -> None:
    """Brings about the fault, on the victim's node."""
    if mishap.fault == "node frozen":
        cluster.fault("freeze", f"{cluster.name}-{mishap.slot}")
    elif mishap.fault == "cancelled twice":
        argv = [CLUSTERCTL, "job", "cancel", name, "--cluster", f"{cluster.name}@rehearsal"]
        quiet = subprocess.DEVNULL
        both = [subprocess.Popen(argv, env=cluster.env, stdin=quiet, stdout=quiet, stderr=quiet) for _ in range(2)]
        codes = [each.wait(timeout=RIGHT_WITHIN_S + GRACE_S) for each in both]
        assert codes == [0, 0], f"the two that cancel: exit {codes}"
    elif mishap.fault != "full disk":
        _kill(cluster, mishap, name)


def assert_right(cluster: Rehearsed, mishap: Mishap, name: str) -> float:
    """The state, its exit code and its cause, in time; seconds until then."""
    right, began_s = RIGHT[mishap.fault], time.monotonic()
    found: dict[str, Any] = {}

    def is_over() -> bool:
        found.update(shown(cluster, name))
        return found.get("exit_code") is not None

    wait_until(is_over, what=f"{name} has ended, and is {found}", timeout_s=RIGHT_WITHIN_S + GRACE_S)
    assert (found["state"], found["exit_code"]) == (right.state, right.exit_code), found
    reason = " ".join([found["cause"] or "", *((found.get("failure") or {}).get("lines") or ())])
    pattern = right.cause.replace("SLOT", str(mishap.slot)).replace("RANK", str(mishap.victim))
    assert re.search(pattern, reason), f"the cause is {reason!r}, and not {pattern}"
    return time.monotonic() - began_s


def assert_nothing_left(cluster: Rehearsed, name: str, *, within_s: float) -> None:
    """No process of the job, and no node that it holds."""
    wait_until(lambda: left_of(cluster, name) == "", what=f"nothing of {name} is left", timeout_s=within_s)


def shown(cluster: Rehearsed, name: str) -> dict[str, Any]:
    """`job show --json`, of nodes that answer soon; empty where no node knows the job."""
    done = cluster.run("job", "show", name, "--json", "--connect-timeout", "2s")
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return found


def _run_words(mishap: Mishap, work: Path, name: str, *more: str) -> tuple[str, ...]:
    program: list[str] = [mishap.program]
    if mishap.fault == "full disk":
        program = ["fills.py", str(mishap.victim), str(mishap.after_s)]
    launcher = "torchrun" if mishap.fault == "launcher killed" else "plain"
    nodes = ",".join(map(str, mishap.slots))
    # A computer that died while it prepared a job leaves nodes held for a while.
    where = ("--name", name, "--node", nodes, "--wait", f"{2 * GIVEN_UP_WITHIN_S:.0f}s", "--workdir", str(work))
    return ("run", "--launcher", launcher, "--nproc", "1", "--grace", f"{GRACE_S:.0f}s", *where, *more, "--", *program)


def _kill(cluster: Rehearsed, mishap: Mishap, name: str) -> None:
    pattern = {
        "rank killed": f"-fx 'python3 -u {mishap.program}'",
        "launcher killed": "-f '[d]istributed.run'",
        "supervisor killed": f"-f '[s]upervise {name}'",
    }[mishap.fault]
    kill = f"for try in $(seq {10 * FOUND_WITHIN_S}); do pkill -KILL {pattern} && exit 0; sleep 0.1; done; exit 1"
    cluster.ok("ssh", "--node", str(mishap.slot), "--command", kill)


def _without_its_computer(cluster: Rehearsed, work: Path, mishap: Mishap, name: str) -> float:
    """`run`, attached, is killed at any moment; a job that had begun goes on, and another computer ends it."""
    env = {**cluster.env, "CLUSTERCTL_WARM": "no"}  # its connections end with it
    quiet = subprocess.DEVNULL
    argv = [CLUSTERCTL, *_run_words(mishap, work, name)]
    with subprocess.Popen(argv, env=env, cwd=work, stdin=quiet, stdout=quiet, stderr=quiet) as computer:
        time.sleep(mishap.after_s)
        os.kill(computer.pid, signal.SIGKILL)
    began_s = time.monotonic()
    found: dict[str, Any] = {}

    def is_decided() -> bool:
        found.clear()
        found.update(shown(cluster, name))
        return found.get("state") not in ("preparing", "starting")

    wait_until(is_decided, what=f"{name} runs or never will", timeout_s=GIVEN_UP_WITHIN_S + RIGHT_WITHIN_S)
    took_s = time.monotonic() - began_s
    if found.get("state") == "running":
        done = cluster.run("job", "cancel", name)
        assert done.exit_code == 0, done.text
        assert_right(cluster, mishap, name)
        assert_nothing_left(cluster, name, within_s=LEFT_WITHIN_S)
    else:
        # Its nodes are held until the preparation counts as given up: the next job waits for that.
        assert found.get("state") in (None, "lost"), found
        running = [line for line in left_of(cluster, name).splitlines() if not line.endswith(f"{name}.json")]
        assert running == [], "a job that never began runs"
    return took_s


def main(argv: Sequence[str]) -> int:
    """Runs a campaign and prints its table; 1 when a job did not end right."""
    parser = argparse.ArgumentParser(prog="scripts/campaign jobs", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="how many jobs")
    parser.add_argument("--first", type=int, default=0, help="the first of them: a long run in parts")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same mishaps")
    asked = parser.parse_args(argv)
    print(
        f"Seed {asked.seed}; {describe_machine()}\n\n{'job':>4}  {'fault':<17} {'nodes':<8} {'right after':>11}  result"
    )
    wrong = 0
    with (
        tempfile.TemporaryDirectory(prefix="campaign-") as folder,
        rehearsed(Path(folder), machines="process", nodes=NODES, caps={"runtime": "6h"}) as cluster,
    ):
        cluster.up()
        work = write_programs(Path(folder) / "work")
        chosen = mishaps(asked.seed, runs=asked.first + asked.runs)[asked.first :]
        for number, mishap in enumerate(chosen, start=asked.first):
            took, result = _result(cluster, work, mishap, f"job-{number}")
            wrong += result != "right"
            nodes = ",".join(map(str, mishap.slots))
            print(f"{number:>4}  {mishap.fault:<17} {nodes:<8} {took:>11}  {result}", flush=True)
    print(f"{asked.runs - wrong} of {asked.runs} right")
    return 1 if wrong else 0


def _result(cluster: Rehearsed, work: Path, mishap: Mishap, name: str) -> tuple[str, str]:
    try:
        return f"{survive(cluster, work, mishap, name):.1f} s", "right"
    except (AssertionError, subprocess.TimeoutExpired) as e:
        if mishap.fault == "node frozen":
            cluster.run("rehearse", "fault", "thaw", f"{cluster.name}-{mishap.slot}")
        cluster.run("job", "cancel", name)
        return "", f"{mishap}: {e}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
