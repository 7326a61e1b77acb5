"""`clusterctl job exec`: a command inside a job, on some of its nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn  # Any: JSON

from clusterctl_infra.errors import NothingMatched, UsageError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.home import home_directory
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.node_program import command
from clusterctl.on_node.job.judge import RUNNING, STOPPING
from clusterctl.on_node.job.launch import first_rank
from clusterctl.output import Output
from clusterctl.ssh.command import Command
from clusterctl.ssh.new_links import NewLinks
from clusterctl.ssh.on_nodes import run_on_one, run_on_several
from clusterctl.ssh.remote_command import RemoteCommand, input_for
from clusterctl.ssh.request import Shown
from clusterctl.system.caller import this_process

HINT = "clusterctl job --help"


@dataclass(frozen=True, kw_only=True)
class InsideRequest:
    """The command of `job exec`, and the nodes or the rank on whose node it runs."""

    job: JobState
    members: tuple[InventoryNode, ...]
    """Those of the job's nodes that were chosen."""
    is_choice: bool
    """Whether `--node` chose `members`; if not, they are all of the job's nodes."""
    rank: int | None
    words: tuple[str, ...]
    as_json: bool
    has_names: bool = True
    """Lines of several nodes begin with [train-0] instead of [Node 0]."""


def run_inside(
    request: InsideRequest, nodes: JobNodes, output: Output, log_in: Callable[..., NoReturn], *, is_at_terminal: bool
) -> int:
    """Runs the command; returns its exit code on one node, on several 0 or 4. Raises ClusterctlError.

    At a terminal, for one node, `log_in` takes this process over and never returns.
    """
    job = request.job
    if job.state not in (RUNNING, STOPPING):
        why = f"{job.name} is {job.state}: a command can run inside it only while it runs"
        raise UsageError(why, hint=f"clusterctl job cp {job.name} . DIR, or clusterctl job logs {job.name}")
    chosen = chosen_members(request)
    rank = "-" if request.rank is None else str(request.rank)
    line = command("exec", job.name, rank, *request.words)
    if is_at_terminal and len(chosen) == 1 and not request.as_json:
        home = home_directory(os.environ)
        log_in(nodes.inventory, chosen, line, home=home, is_terminal_wanted=True, deadlines=nodes.deadlines)
    if not request.words:
        raise UsageError("no command: write it after --; a shell needs a terminal, and one node", hint=HINT)
    remote = RemoteCommand(
        inventory=nodes.inventory,
        nodes=chosen,
        command=Command(line=line),
        keys=nodes.keys,
        deadlines=nodes.deadlines,
        stdin=input_for(this_process().stdin, nodes=len(chosen)),
    )
    run = run_on_one if len(chosen) == 1 else run_on_several
    live = Shown.LIVE if request.has_names else Shown.NUMBERED
    return run(remote, output, NewLinks(), shown=Shown.JSON if request.as_json else live)


def chosen_members(request: InsideRequest) -> tuple[InventoryNode, ...]:
    """The node of the wanted rank; without one the nodes of `--node`; without that the job's first node.

    Raises UsageError, NothingMatched.
    """
    job, members = request.job, request.members
    if not members:
        raise NothingMatched(f"{job.name} is not on these nodes", hint=f"clusterctl job show {job.name}")
    if request.rank is None:
        first = int(job.spec["members"][0]["slot"])
        return members if request.is_choice else tuple(node for node in members if node.slot == first) or members[:1]
    slot = slot_of_rank(job.spec, request.rank)
    there = tuple(node for node in members if node.slot == slot)
    if not there:
        raise UsageError(f"rank {request.rank} of {job.name} runs on Node {slot}, not on these", hint=HINT)
    return there


def slot_of_rank(spec: Mapping[str, Any], rank: int) -> int:
    """The slot of the node on which this rank runs. Raises NothingMatched."""
    members: Sequence[Mapping[str, Any]] = spec["members"]
    for node_rank, member in enumerate(members):
        if first_rank(spec, node_rank) <= rank < first_rank(spec, node_rank) + int(member["nproc"]):
            return int(member["slot"])
    ranks = sum(int(member["nproc"]) for member in members)
    why = f"{spec['job']} has the ranks 0 to {ranks - 1}, no rank {rank}"
    raise NothingMatched(why, hint=f"clusterctl job show {spec['job']}")


def is_terminal() -> bool:
    """Whether somebody types and reads at a terminal."""
    return all(os.isatty(number) for number in (0, 1))
