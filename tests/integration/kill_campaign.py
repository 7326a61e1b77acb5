"""Kills one part of a running `up` or `down` at a random moment, then goes on, and looks whether all is right.

The moments are counted in what the engine has written, not in seconds, so that they are spread alike on every machine.
`scripts/campaign kills` runs many of them and prints a table; tests/integration/test_kill_up.py runs one of each part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterctl.engine.strays import is_engine, is_part
from clusterctl.system.processes import all_processes, command_line, has_variable
from clusterctl_infra.names import HOME_VARIABLE
from clusterctl_rehearsal.home import rehearsal_home
from clusterctl_rehearsal.region.ending import end_region

from tests.integration.recorded_stack import INSTANCE, latest_state
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, alive, namespaces, rehearsed, wait_until

Part = Literal["cli", "engine", "both", "plugin", "region"]
Verb = Literal["up", "down"]
PARTS: tuple[Part, ...] = ("cli", "engine", "both", "plugin", "region")
EVENTS_OF_A_NODE = 12
EVENTS_OF_A_CLUSTER = 60
"""An `up` of two nodes writes about so many steps."""
UP_S = 180.0
OVER_BEFORE = " (it was over before)"


@dataclass(frozen=True, kw_only=True)
class Kill:
    """What is killed, in what, when, and what a person types then."""

    part: Part
    after_events: int
    """So many steps the engine has written: a resource began or is done."""
    jitter_s: float
    then: Verb
    wait_s: float
    """Between the kill and the next command."""
    machines: str = "none"
    during: Verb = "up"


def random_kill(random_source: random.Random, *, part: Part, nodes: int, machines: str, during: Verb) -> Kill:
    """A kill at a random moment of an `up` or `down` of so many nodes."""
    return Kill(
        part=part,
        during=during,
        after_events=random_source.randrange(EVENTS_OF_A_CLUSTER + EVENTS_OF_A_NODE * nodes),
        jitter_s=random_source.uniform(0.0, 0.3),
        then=random_source.choice(("up", "down")),
        wait_s=random_source.choice((0.0, 0.0, 1.0)),
        machines=machines,
    )


def survive(cluster: Rehearsed, kill: Kill, *, nodes: int) -> str:
    """Kills, goes on, ends; returns what was killed. An AssertionError says what is not right after it."""
    if kill.during == "down":
        cluster.up()
    killed = kill_during(cluster, kill)
    time.sleep(kill.wait_s)
    if kill.then == "up":
        go_on_to_up(cluster, killed, nodes=nodes, machines=kill.machines)
    end(cluster, killed)
    return killed


def go_on_to_up(cluster: Rehearsed, killed: str, *, nodes: int, machines: str = "none") -> None:
    """The `up` after a kill, which must put all right."""
    done = cluster.run("up", str(cluster.folder), timeout_s=UP_S)
    assert done.exit_code == 0, f"up after {killed}: exit {done.exit_code}\n{done.text}"
    assert_up(cluster, nodes=nodes, machines=machines)


def end(cluster: Rehearsed, killed: str) -> None:
    """The `down` after a kill, of which nothing may be left."""
    done = cluster.run("down", str(cluster.folder), timeout_s=UP_S)
    assert done.exit_code == 0, f"down after {killed}: exit {done.exit_code}\n{done.text}"
    assert_gone(cluster)


def kill_during(cluster: Rehearsed, kill: Kill) -> str:
    """Starts the command, kills the part at its moment with SIGKILL, and waits until the command line is gone too."""
    cluster.keep_steps()
    logs = cluster.home / "log"
    engine_verb = "up" if kill.during == "up" else "destroy"
    earlier = frozenset(logs.glob("*.jsonl"))
    argv = [CLUSTERCTL, kill.during, str(cluster.folder)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, env=cluster.env, stdin=quiet, stdout=quiet, stderr=quiet) as child:
        until = time.monotonic() + UP_S
        while child.poll() is None and time.monotonic() < until:
            if steps_in(logs, engine_verb, earlier=earlier) >= kill.after_events:
                break
            time.sleep(0.01)
        time.sleep(kill.jitter_s)
        victims = victims_of(kill.part, cluster, cli=child.pid) if child.poll() is None else []
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            child.wait(timeout=UP_S)
        finally:
            child.kill()
    return f"{kill.part} at step {kill.after_events}" + ("" if victims else OVER_BEFORE)


def steps_in(logs: Path, engine_verb: str = "up", *, earlier: Set[Path] = frozenset()) -> int:
    """How many steps the newest log has, `earlier` ones aside; those that change nothing count, too."""
    found = set(logs.glob(f"*-{engine_verb}-*.jsonl")) - earlier
    texts = [path.read_bytes() for path in sorted(found)[-1:]]
    return sum(text.count(b'"resourcePreEvent"') + text.count(b'"resOutputsEvent"') for text in texts)


def victims_of(part: Part, cluster: Rehearsed, *, cli: int) -> list[int]:
    """The processes of one part, of this cluster's run alone."""
    if part == "cli":
        return [cli]
    if part == "region":
        return [json.loads((cluster.home / "rehearsal" / "region.json").read_text())["pid"]]
    if part == "plugin":
        return sorted(pids_of(cluster, lambda words: is_part(words) and "clusterctl_rehearsal.plugin" in words))
    engines = sorted(pids_of(cluster, is_engine))
    return [cli, *engines] if part == "both" else engines


def pids_of(cluster: Rehearsed, is_wanted: Callable[[Sequence[str]], bool]) -> list[int]:
    """Processes that were started with this cluster's home, and are wanted."""
    return [
        process.pid
        for process in all_processes()
        if is_wanted(command_line(process.pid)) and has_variable(process.pid, HOME_VARIABLE, cluster.env[HOME_VARIABLE])
    ]


def assert_up(cluster: Rehearsed, *, nodes: int, machines: str) -> None:
    """Each slot has one instance and no other exists; each resource is in the state, each of the state exists."""
    listed = cluster.resources()
    instances = sorted(row.id for row in listed if row.token == INSTANCE)
    assert instances == sorted(cluster.instance_ids().values())
    assert len(instances) == nodes
    state = latest_state(cluster)
    assert not state.get("pending_operations")
    known = {f"{row['type']} {row['id']}" for row in state["resources"] if row["type"].startswith("aws:")}
    existing = {f"{row.token} {row.id}" for row in listed if row.token.startswith("aws:")}
    assert not [thing for thing in existing - known if "networkInterface" not in thing], "in no state"
    assert not known - existing, "in the state alone"
    if machines != "none":
        assert alive(cluster.name) == sorted(cluster.instance_ids())
        assert {row["state"] for row in cluster.nodes().values()} == {"ready"}


def assert_gone(cluster: Rehearsed) -> None:
    """No resource, machine, namespace, mount, lock, record or process of it is left."""
    home = cluster.home
    assert cluster.resources() == []
    assert_at_rest(cluster)
    assert alive(cluster.name) == []
    assert namespaces(cluster.name) == []
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if str(home) in line]
    assert not list((home / "inventory").glob("*.json"))


def assert_at_rest(cluster: Rehearsed) -> None:
    """No lock, record or process of a run is left; the region's process is ended here, for the next command to start.

    Machines that run are processes, too: this is for a cluster that has none.
    """
    end_region(rehearsal_home(cluster.env))
    assert not list(Path(cluster.env["PULUMI_BACKEND_URL"].removeprefix("file://")).glob(".pulumi/locks/**/*.json"))
    assert not list((cluster.home / "runs").glob("*.json"))
    wait_until(lambda: not pids_of(cluster, bool), what=f"no process of {cluster.home} is left", timeout_s=30)


def main(argv: Sequence[str]) -> int:
    """Runs a campaign and prints its table; 1 when a run did not end right."""
    parser = argparse.ArgumentParser(
        prog="scripts/campaign kills", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--machines", choices=("none", "nspawn", "process"), default="none")
    parser.add_argument("--during", choices=("up", "down"), default="up")
    asked = parser.parse_args(argv)
    source = random.Random(asked.seed)
    failed = 0
    print(f"{'run':>4}  {'part':<7} {'step':>4}  {'then':<5} {'seconds':>7}  result")
    for number in range(asked.runs):
        part = PARTS[number % len(PARTS)]
        kill = random_kill(source, part=part, nodes=asked.nodes, machines=asked.machines, during=asked.during)
        began = time.monotonic()
        result = _result(kill, nodes=asked.nodes)
        failed += result != "right"
        took_s = time.monotonic() - began
        print(
            f"{number:>4}  {kill.part:<7} {kill.after_events:>4}  {kill.then:<5} {took_s:>7.1f}  {result}", flush=True
        )
    print(f"{asked.runs - failed} of {asked.runs} right")
    return 1 if failed else 0


def _result(kill: Kill, *, nodes: int) -> str:
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        try:
            with rehearsed(Path(folder), machines=kill.machines, nodes=nodes) as cluster:
                survive(cluster, kill, nodes=nodes)
        except (AssertionError, subprocess.TimeoutExpired) as wrong:
            frame = traceback.extract_tb(wrong.__traceback__)[-1]
            return f"{frame.line}: {wrong}"
    return "right"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
