"""Runs a person's command, and at the mishap's moment brings the mishap on it, or on a node."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl.lifecycle.change import STOPPING
from clusterctl_rehearsal.refusal import NothingThere, StandInRefusal
from clusterctl_rehearsal.region.client import RegionClient, RegionUnreachable

from tests.integration.campaign.mishap import Mishap
from tests.integration.campaign.region_facts import home_of, noticed
from tests.integration.kill_campaign import victims_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, wait_until

COMMAND_S = 100.0
"""Less than an `up` waits for a node that never answers: nothing in a campaign is a reason to wait that long."""
STEP_MARKS = (b'"resourcePreEvent"', b'"resOutputsEvent"')
"""In the engine's log: a resource began, or is done."""
VERBS = {"kill": "", "interrupt": "", "death": "kill", "taken back": "interrupt"}
"""The rehearsal's verb for a fault, where it is another word; empty where there is none."""
TAKES_BACK_S = 30.0
"""Far more than a machine takes to go once its notice is over."""
HEALS = {"freeze": "thaw", "partition": "plug", "unplug": "plug"}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a command ended that something befell."""

    is_met: bool
    """The command still ran, and the mishap had something to hit."""
    exit_code: int | None
    """None: it did not end in time."""
    output: str

    @property
    def wrong(self) -> str | None:
        """A command may fail, but not hang, not by a bug of its own, and not go on when the engine was stopped."""
        if self.exit_code is None:
            return f"it did not end in {COMMAND_S:.0f} s: {self.output[-400:]}"
        if self.exit_code == 70 or "Traceback" in self.output:
            return f"a bug: {self.output[-400:]}"
        is_stopped = STOPPING in self.output
        return (
            f"stopped, and exit {self.exit_code}: {self.output[-400:]}"
            if is_stopped and self.exit_code != 130
            else None
        )

    @property
    def last_line(self) -> str:
        """What a person reads last."""
        return (self.output.strip().splitlines() or [""])[-1].strip()


def befall(cluster: Rehearsed, arguments: list[str], mishap: Mishap) -> Outcome:
    """Runs `clusterctl` with `arguments`, and the mishap beside it."""
    logs = cluster.home / "log"
    older = set(logs.glob("*.jsonl"))
    file = cluster.folder.parent / "output.txt"
    with (
        file.open("w") as output,
        subprocess.Popen(
            [CLUSTERCTL, *arguments], env=cluster.env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as child,
    ):
        _await_moment(child, mishap, logs, older)
        is_met = child.poll() is None and _do(cluster, mishap, child)
        try:
            child.wait(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            child.kill()
            return Outcome(is_met=is_met, exit_code=None, output=file.read_text(errors="replace"))
    if mishap.fault == "taken back":  # or it would hit the next command
        wait_until(lambda: not noticed(cluster), what="the machine that AWS takes back is gone", timeout_s=TAKES_BACK_S)
    return Outcome(is_met=is_met, exit_code=child.returncode, output=file.read_text(errors="replace"))


def do_fault(cluster: Rehearsed, verb: str, *nodes: str) -> bool:
    """Does a fault of the rehearsal; False where there is no such node."""
    try:
        with RegionClient(home_of(cluster)) as client:
            client.ask("fault", {"verb": verb, "args": list(nodes)})
    except (RegionUnreachable, StandInRefusal, NothingThere):
        return False
    return True


def _await_moment(child: subprocess.Popen[bytes], mishap: Mishap, logs: Path, older: set[Path]) -> None:
    until = time.monotonic() + COMMAND_S
    while mishap.action != "job" and child.poll() is None and time.monotonic() < until:
        begun = set(logs.glob("*.jsonl")) - older
        if begun and sum(map(_steps, begun)) >= mishap.after_steps:
            break
        time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=mishap.after_s)


def _steps(log: Path) -> int:
    text = log.read_bytes()
    return sum(text.count(mark) for mark in STEP_MARKS)


def _do(cluster: Rehearsed, mishap: Mishap, child: subprocess.Popen[bytes]) -> bool:
    """Whether there was something that it could befall."""
    if mishap.fault == "interrupt":
        child.send_signal(signal.SIGINT)
        return True
    if mishap.fault == "kill":
        return _kill(cluster, mishap, child)
    node, other = f"{cluster.name}-{mishap.node}", f"{cluster.name}-{1 - mishap.node}"
    more = {"partition": [other], "taken back": [f"{mishap.heals_after_s:.0f}"]}.get(mishap.fault, [])
    is_done = do_fault(cluster, VERBS.get(mishap.fault, mishap.fault), node, *more)
    if is_done and mishap.fault in HEALS:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=mishap.heals_after_s)
        do_fault(cluster, HEALS[mishap.fault], node)
    return is_done


def _kill(cluster: Rehearsed, mishap: Mishap, child: subprocess.Popen[bytes]) -> bool:
    try:
        victims = victims_of(mishap.part, cluster, cli=child.pid)
    except FileNotFoundError:  # the region has not written its address yet
        return False
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(victims)
