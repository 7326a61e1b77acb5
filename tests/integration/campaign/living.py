"""Lives a cluster's life with its mishaps, and looks after each whether something bills that `reap` does not list."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_rehearsal.region.client import RegionClient, RegionUnreachable
from clusterctl_rehearsal.region.refusal import NothingThere, StandInRefusal

from tests.integration.campaign.mishap import Life, Mishap
from tests.integration.campaign.truth import Money, home_of, machines_alive, unlisted
from tests.integration.kill_campaign import steps_in, victims_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed

COMMAND_S = 240.0
HEALS_AFTER_S = 1.0


@dataclass(kw_only=True)
class Report:
    """What a life came to; `wrong` is empty when all was right."""

    wrong: list[str] = field(default_factory=list)
    leaks: int = 0
    late_s: float | None = None
    """The last machine of an abandoned cluster was gone so long after its deadline."""
    money: Money | None = None


def live(cluster: Rehearsed, life: Life, tell: Callable[[Mishap, str], None]) -> Report:
    """The report of one life up to its end."""
    report = Report()
    for number, mishap in enumerate(life.mishaps):
        if mishap.needs_nodes and not machines_alive(cluster):
            make_whole(cluster, report)
        said = _befall(cluster, mishap, number)
        lost = unlisted(cluster)
        report.leaks += len(lost)
        report.wrong += [f"{mishap.action}, {mishap.fault}: {one} bills and reap does not list it" for one in lost]
        if said.startswith("wrong"):
            report.wrong.append(f"{mishap.action}, {mishap.fault}: {said}")
        tell(mishap, "leak" if lost else said)
    return report


def write(cluster: Rehearsed, **config: object) -> None:
    """The cluster's files, with what a person changed; AWS's schedules fire at once, so that nobody waits a minute."""
    cluster.write(machines="process", settings={"schedule_late_s": 0}, **config)


def make_whole(cluster: Rehearsed, report: Report) -> None:
    """The next `up` puts right whatever was left, or that is wrong."""
    done = cluster.run("up", str(cluster.folder), timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"an up without a mishap: exit {done.exit_code}: {done.text[-600:]}")


def do_fault(cluster: Rehearsed, verb: str, *nodes: str) -> None:
    """A fault of the rehearsal; nothing happens where there is no such node yet."""
    with contextlib.suppress(RegionUnreachable, StandInRefusal, NothingThere), RegionClient(home_of(cluster)) as client:
        client.ask("fault", {"verb": verb, "args": list(nodes)})


def _befall(cluster: Rehearsed, mishap: Mishap, number: int) -> str:
    """Runs the action, does the fault at its moment; how the command ended."""
    logs = cluster.home / "log"
    steps_before = len(list(logs.glob("*.jsonl")))
    argv = [CLUSTERCTL, *_words(cluster, mishap, number)]
    text = cluster.folder.parent / "said"
    with (
        text.open("w") as said,
        subprocess.Popen(
            argv, env=cluster.env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        ) as child,
    ):
        _await_moment(child, mishap, logs, steps_before)
        was_over = child.poll() is not None
        if not was_over:
            _do(cluster, mishap, child)
        try:
            child.wait(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            child.kill()
            return f"wrong: it did not end in {COMMAND_S:.0f} s"
    if child.returncode == 70:
        return f"wrong: a bug: {text.read_text()[-400:]}"
    return f"{'over before' if was_over else 'met'}, exit {child.returncode}"


def _await_moment(child: subprocess.Popen[bytes], mishap: Mishap, logs: Path, logs_before: int) -> None:
    until = time.monotonic() + COMMAND_S
    while mishap.action != "job" and child.poll() is None and time.monotonic() < until:
        if len(list(logs.glob("*.jsonl"))) > logs_before and _steps(logs) >= mishap.after_steps:
            break
        time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=mishap.after_s)


def _steps(logs: Path) -> int:
    return max(steps_in(logs, "up"), steps_in(logs, "destroy"))


def _words(cluster: Rehearsed, mishap: Mishap, number: int) -> list[str]:
    """The command line, after what a person would have changed in the file."""
    folder = str(cluster.folder)
    if mishap.action == "resize":
        write(cluster, nodes=5 - int(cluster.config["nodes"]))
    if mishap.action == "change":
        write(cluster, env={"CAMPAIGN": str(number)})
    if mishap.action == "extend":
        return ["extend", "1m", "--cluster", f"{cluster.name}@rehearsal", "--yes"]
    if mishap.action == "job":
        return ["ssh", "--cluster", cluster.name, "--node", "all", "--", "sleep", "3"]
    return ["down" if mishap.action == "down" else "up", folder]


def _do(cluster: Rehearsed, mishap: Mishap, child: subprocess.Popen[bytes]) -> None:
    if mishap.fault == "interrupt":
        child.send_signal(signal.SIGINT)
    elif mishap.fault == "kill":
        with contextlib.suppress(FileNotFoundError):  # the region has not said yet where it is
            for pid in victims_of(mishap.part, cluster, cli=child.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    else:
        node, other = f"{cluster.name}-{mishap.node}", f"{cluster.name}-{1 - mishap.node}"
        do_fault(cluster, mishap.fault, *([node, other] if mishap.fault == "partition" else [node]))
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=HEALS_AFTER_S)
        heals = {"freeze": "thaw", "partition": "plug"}
        if mishap.fault in heals:
            do_fault(cluster, heals[mishap.fault], node)
