"""One call of a function: a job that runs on its nodes, whether or not this program does."""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, overload  # values of a person's functions

from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.errors import ClusterctlError, NotReached, RemoteError, UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.private_home import secure_home

from clusterctl.engine.jobs_here import cluster_of_job
from clusterctl.engine.stacks_near import CLUSTER_FILE
from clusterctl.functions.results import fetched, remote_error, value_of
from clusterctl.functions.settings import SECONDS_AN_HOUR
from clusterctl.home import home_directory
from clusterctl.jobs.attached import has_ranks
from clusterctl.jobs.following import JobFollowing, Notice, OutputLine
from clusterctl.jobs.job_state import JobState, merged
from clusterctl.jobs.known import job_nodes, known_job, members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import ended_text, line_text
from clusterctl.on_node.function import call
from clusterctl.on_node.job import judge
from clusterctl.on_node.job.launch import first_rank, member_of
from clusterctl.options import chosen_cluster
from clusterctl.ssh.command import Command
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.text.visible import visible, visible_in_a_line

CONNECT_S = 15.0
Shown = Callable[[OutputLine | Notice], None]


class Task:
    """A job that calls a function: made by `spawn`, or found by `get_task`. It outlives this program."""

    def __init__(self, nodes: JobNodes, spec: Mapping[str, Any]) -> None:
        self._nodes = nodes
        self._spec = spec
        self.name = str(spec["job"])
        """The job's name, as `clusterctl jobs` shows it."""

    def __repr__(self) -> str:
        return f"<Task {self.name} on {self._nodes.inventory.cluster}>"

    @property
    def num_instances(self) -> int:
        """The number of its nodes."""
        return len(self._spec["members"])

    @property
    def status(self) -> str:
        """`running`, `succeeded`, …: the states of docs/jobs.md, as its nodes report it. Raises NotReached."""
        return self._state().state

    @property
    def estimated_cost(self) -> float:
        """Its cost until now, or until it ended: its nodes' share of the cluster's list price, in US dollars.

        NaN if a price or its start is not known. Raises NotReached.
        """
        state = self._state()
        return cost_usd(self._nodes.inventory, self._spec, until_s=state.since_s if state.is_over else time.time())

    @property
    def max_price_per_hour(self) -> float | None:
        """The cap for one node in US dollars, from the cluster's cluster.yaml.

        None if there is no cap, or the file is not on this computer.
        """
        folder = self._nodes.inventory.stack_dir
        if folder is None:
            return None
        file = Path(folder) / CLUSTER_FILE
        try:
            return load_cluster(file, overrides={}, source=str(file)).caps.price_usd_per_hour
        except (ClusterctlError, OSError):
            return None

    def exec(self, command: str, *, node: int = 0, timeout_s: float = 600.0) -> str:
        """Runs a shell line as the login user on one of its nodes (`node` is a slot), and returns its stdout.

        Raises RemoteError with its stderr if its exit code is not 0, NotReached, UsageError.
        """
        members = tuple(each for each in self._members() if each.slot == node)
        if not members:
            raise self._no_such_node(node)
        line = Command(line=command, timeout_s=timeout_s)
        nodes = self._nodes
        results = run_on_nodes(
            nodes.inventory, members, line, keys=nodes.keys, deadlines=nodes.deadlines, pool=nodes.pool
        )
        result, name = results[node], members[0].name
        if result.failure is not None:
            raise NotReached(f"Node {node}: {result.failure.message_under(name)}", hint="clusterctl status")
        if not result.is_ok:
            stderr = result.stderr.decode(errors="replace")
            message = f"{self.name}: Node {node} ({name}): exit {result.exit_code}: {stderr.strip()[-1000:]}"
            raise RemoteError(message, node=name, rank=None, type_name=None, traceback=stderr)
        return result.stdout.decode(errors="replace")

    @overload
    def logs(self, *, node: int | None = None, rank: int | None = None, follow: Literal[False] = False) -> str: ...

    @overload
    def logs(self, *, node: int | None = None, rank: int | None = None, follow: Literal[True]) -> Iterator[str]: ...

    def logs(self, *, node: int | None = None, rank: int | None = None, follow: bool = False) -> str | Iterator[str]:
        """Its output as one text of lines like `[Node 0] [10:30:15] …`; with `follow` one by one, until it has ended.

        `node` is a slot, `rank` a global rank. Raises UsageError for a node that the task is not on.
        """
        members = tuple(each for each in self._members() if node in (None, each.slot))
        if not members:
            raise self._no_such_node(node)
        lines = self._lines(members, rank, is_followed=follow)
        return lines if follow else "".join(f"{line}\n" for line in lines)

    def cancel(self) -> str:
        """Stops the task: SIGTERM, and SIGKILL after its grace period, which is 30 s for a function's call.

        Returns the state in which it ended, once nothing of it is left.
        """
        self._nodes.ask(self._members(), "cancel", self.name)
        return self.wait()

    def wait(self) -> str:
        """Waits until the task has ended, and returns its final state. Ctrl-C only ends the waiting."""
        return self.watched(_show_nothing).state

    def result(self, *, all_ranks: bool = False) -> Any:
        """Waits for the end, and returns what the function returned on rank 0, or a list of all ranks' values by rank.

        The value is unpickled here, so the task's nodes have to be trusted. Raises RemoteError unless the task
        succeeded, with the traceback if the function raised; ClusterctlError for a result that was not kept.
        """
        return self.result_of(self._ended(), all_ranks=all_ranks)

    def result_of(self, state: JobState, *, all_ranks: bool) -> Any:
        """What `result` returns for a task that has ended in `state`. Raises what `result` raises."""
        if not str(self._spec["command"][0]).startswith(f"{call.FOLDER}/"):
            raise UsageError(f"{self.name} is not the task of a function, so it has no result", hint="clusterctl jobs")
        if state.state != judge.SUCCEEDED:
            raise self._failure(state)
        if not all_ranks:
            first = self._spec["members"][0]
            return self._values({int(first["slot"])}, local_rank=0)[int(first["slot"])]
        found: dict[tuple[int, int], Any] = {}
        for local_rank in range(max(int(member["nproc"]) for member in self._spec["members"])):
            slots = {int(member["slot"]) for member in self._spec["members"] if int(member["nproc"]) > local_rank}
            for slot, value in self._values(slots, local_rank=local_rank).items():
                found[slot, local_rank] = value
        return [
            found[int(member["slot"]), local_rank]
            for member in self._spec["members"]
            for local_rank in range(int(member["nproc"]))
        ]

    def watched(self, show: Shown) -> JobState:
        """Waits until the task has ended, and returns its final state; `show` gets its output from the start.

        Ctrl-C cancels the task, goes on showing its output, and is raised once it has ended; a second one is raised at
        once. If no output is shown (`_show_nothing`), Ctrl-C is raised at once and the task goes on.
        """
        following = JobFollowing(self._nodes, self._members(), job=self.name, attempt=int(self._spec["attempt"]))
        items = following.items()
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                for item in items:
                    if isinstance(item, OutputLine | Notice):
                        show(item)
                break
            except KeyboardInterrupt as e:
                if interrupt is not None or show is _show_nothing:
                    raise
                interrupt = e
                # An interrupted generator has ended, so a new one takes what is still in the queue.
                items = following.next_items()
                sys.stderr.write(f"{self.name}: cancelling\n")
                self._nodes.ask(self._members(), "cancel", self.name)
        if interrupt is not None:
            raise interrupt
        return merged(self._spec, following.last_states)

    def shown(self, item: OutputLine | Notice) -> None:
        """Writes an output line to stdout, and a notice to stderr."""
        if isinstance(item, Notice):
            sys.stderr.write(visible(f"[Node {item.slot}] {item.text}\n"))
            return
        line = visible_in_a_line(line_text(item, has_ranks=has_ranks(self._spec)))
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(line.encode(encoding, "replace").decode(encoding) + "\n")
        sys.stdout.flush()

    def _no_such_node(self, node: int | None) -> UsageError:
        slots = ", ".join(str(each.slot) for each in self._members())
        return UsageError(f"node={node}: {self.name} runs on the nodes {slots}", hint="clusterctl jobs")

    def _state(self) -> JobState:
        return known_job(self._nodes, self.name)

    def _ended(self) -> JobState:
        state = self._state()
        return state if state.is_over else self.watched(_show_nothing)

    def _members(self) -> tuple[InventoryNode, ...]:
        slots = {int(member["slot"]) for member in self._spec["members"]}
        return tuple(node for node in self._nodes.inventory.nodes if node.slot in slots)

    def _lines(self, members: tuple[InventoryNode, ...], rank: int | None, *, is_followed: bool) -> Iterator[str]:
        attempt = int(self._spec["attempt"])
        following = JobFollowing(self._nodes, members, job=self.name, attempt=attempt, is_followed=is_followed)
        for item in following.items():
            if isinstance(item, OutputLine) and (rank is None or item.rank == str(rank)):
                yield visible_in_a_line(line_text(item, has_ranks=has_ranks(self._spec)))

    def _values(self, slots: set[int], *, local_rank: int) -> dict[int, Any]:
        members = [node for node in self._members() if node.slot in slots]
        contents = fetched(self._nodes, members, self._spec, local_rank=local_rank)
        return {node.slot: value_of(contents[node.slot], self._where(node, local_rank)) for node in members}

    def _where(self, node: InventoryNode, local_rank: int) -> str:
        rank = first_rank(self._spec, member_of(self._spec, node.slot)) + local_rank
        return f"{self.name}: Node {node.slot} ({node.name}) rank {rank}"

    def _failure(self, state: JobState) -> RemoteError:
        """The exception that the function raised on the rank that failed first; without one, how the task ended."""
        summary = RemoteError(ended_text(state), node=None, rank=None, type_name=None, traceback="")
        failure = (state.outcome or {}).get("failure") or {}
        members = [node for node in self._members() if node.slot == failure.get("slot")]
        if state.state != judge.FAILED or failure.get("rank") is None or not members:
            return summary
        local_rank = int(failure["local_rank"])
        content = fetched(self._nodes, members, self._spec, local_rank=local_rank)[members[0].slot]
        where = self._where(members[0], local_rank)
        return remote_error(content, where, node=members[0].name, rank=int(failure["rank"])) or summary


def get_task(name: str, *, cluster: str | None = None) -> Task:
    """The task of this name on `cluster`; without `cluster`, on the one where this computer started the task.

    If this computer did not start it: on `$CLUSTERCTL_CLUSTER`, or the only cluster that is known here. So it works on
    any computer that knows the cluster. Raises NothingMatched, NotReached, and UsageError if its nodes are gone.
    """
    secure_own_home()
    inventory = chosen_cluster(cluster or cluster_of_job(name, home_directory(os.environ)))
    nodes = job_nodes(inventory, connect_timeout_s=CONNECT_S)
    job = known_job(nodes, name)
    if len(members_of(job, inventory)) != len(job.slots):
        raise UsageError(f"{name} ran on nodes that {inventory.cluster} no longer has", hint="clusterctl jobs")
    return Task(nodes, job.spec)


def cost_usd(inventory: Inventory, spec: Mapping[str, Any], *, until_s: float) -> float:
    """A job's cost in US dollars from its start until `until_s` (Unix time); NaN if a price or its start is unknown."""
    started_s = spec.get("started_s")
    if inventory.usd_per_hour is None or not isinstance(started_s, int | float) or not inventory.nodes:
        return math.nan
    hours = max(0.0, until_s - float(started_s)) / SECONDS_AN_HOUR
    return hours * inventory.usd_per_hour * len(spec["members"]) / len(inventory.nodes)


def secure_own_home() -> None:
    """Makes clusterctl's home private if others can read it, and warns about it, as every command does."""
    if (changed := secure_home(os.environ)) is not None:
        warnings.warn(changed, stacklevel=3)


def _show_nothing(item: OutputLine | Notice) -> None:
    """Shows no output, for callers that only wait."""
