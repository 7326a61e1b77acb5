"""`clusterctl job`: what was asked for, and how each of its verbs is carried out."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import NothingMatched, NotReached, SomeNodesFailed, UsageError
from clusterctl_infra.outputs import InventoryNode

from clusterctl.engine.known_clusters import VARIABLE
from clusterctl.home import home_directory
from clusterctl.jobs.attached import Attached, kept_attached
from clusterctl.jobs.copying_out import GIB, CopyRequest, copy_out
from clusterctl.jobs.events import merged_events
from clusterctl.jobs.following import JobFollowing, Notice, OutputLine
from clusterctl.jobs.inside import InsideRequest, is_terminal, run_inside
from clusterctl.jobs.job_state import JobState, chosen_attempt
from clusterctl.jobs.kept_logs import kept_job
from clusterctl.jobs.known import job_nodes, known_job, members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import node_called
from clusterctl.jobs.shown_job import LinesWanted, rank_of, show_events, show_kept, show_line, show_state
from clusterctl.options import chosen_cluster, chosen_rows
from clusterctl.output import Output
from clusterctl.text.node_set import ALL

SHOW, LOGS, ATTACH, WAIT, CANCEL = "show", "logs", "attach", "wait", "cancel"
EVENTS, CP, EXEC = "events", "cp", "exec"
VERBS = (SHOW, LOGS, EVENTS, ATTACH, WAIT, CANCEL, EXEC, CP)
HINT = "clusterctl job --help"


@dataclass(frozen=True, kw_only=True)
class JobFlags:
    """The flags and words of `clusterctl job`, parsed."""

    cluster: str | None
    node: str | None
    """The text of `--node`; None: all nodes of the job."""
    rank: int | None
    attempt: int | None = None
    """The attempt whose output `logs` shows; None: the latest."""
    is_followed: bool
    names: bool | None = None
    """Whether lines begin with [train-0] or with [Node 0]; None: as is usual for the verb."""
    connect_timeout_s: float
    as_json: bool
    verb: str
    name: str
    words: tuple[str, ...] = ()
    """What stands behind the job's name; only cp and exec take such words."""
    limit_gib: int
    """The most that cp takes from one node."""

    @property
    def has_names(self) -> bool:
        """Whether lines begin with [train-0]. Unless a flag says, only those of exec do, like those of `ssh`."""
        return self.verb == EXEC if self.names is None else self.names


def carry_out(flags: JobFlags, output: Output) -> int:
    """Carries the verb out and returns the exit code. Raises ClusterctlError.

    show, logs and events take what is kept on this computer if the cluster or its nodes are gone.
    """
    _refuse_words(flags)
    if flags.verb not in (SHOW, LOGS, EVENTS):
        return _carry_out_there(flags, output)
    try:
        return _carry_out_there(flags, output)
    except (NothingMatched, NotReached) as e:
        kept = kept_job(home_directory(os.environ), flags.cluster or os.environ.get(VARIABLE), flags.name)
        if kept is None:
            raise
        output.note(f"what follows was kept on this computer ({e.message})")
    shown = LinesWanted(node=flags.node, rank=flags.rank, attempt=flags.attempt, has_names=flags.has_names)
    return show_kept(kept, flags.verb, output, shown, as_json=flags.as_json)


def _carry_out_there(flags: JobFlags, output: Output) -> int:
    """Carries the verb out by asking the job's nodes."""
    inventory = chosen_cluster(flags.cluster)
    nodes = job_nodes(inventory, connect_timeout_s=flags.connect_timeout_s)
    job = known_job(nodes, flags.name)
    if flags.verb in (CP, EXEC):
        return _reach_in(flags, job, nodes, output)
    if flags.verb == SHOW:
        show_state(job, output, as_json=flags.as_json)
        return 0
    if flags.verb == LOGS:
        _show_logs(flags, job, nodes, output)
        return 0
    if flags.verb == EVENTS:
        return _show_events(flags, job, nodes, output)
    attached = kept_attached(nodes, members_of(job, inventory), job.spec, output)
    if flags.verb == CANCEL:
        return _cancel(attached, job, nodes, output, as_json=flags.as_json)
    if flags.verb == WAIT and job.is_over:
        return attached.tell_end(job, output, as_json=flags.as_json)
    is_shown = flags.verb == ATTACH
    return attached.watch(output, as_json=flags.as_json, is_shown=is_shown, has_names=flags.has_names)


def _refuse_words(flags: JobFlags) -> None:
    """Raises UsageError for too many or too few words behind the job's name, and for another verb's --attempt."""
    if flags.attempt is not None and flags.verb != LOGS:
        why = f"--attempt {flags.attempt}: {LOGS} alone shows one attempt, and this is {flags.verb}"
        raise UsageError(why, hint=f"clusterctl job logs {flags.name} --attempt {flags.attempt}")
    if flags.verb not in (CP, EXEC) and flags.words:
        raise UsageError(f"{flags.words[0]!r} after the job's name: {flags.verb} takes no more words", hint=HINT)
    if flags.verb == CP and len(flags.words) not in (1, 2):
        usage = f"write: clusterctl job cp {flags.name} [PATH] DIR, with PATH below $CLUSTERCTL_JOB_DIR"
        raise UsageError(usage, hint=HINT)


def _reach_in(flags: JobFlags, job: JobState, nodes: JobNodes, output: Output) -> int:
    members = _chosen(flags, job, nodes)
    if flags.verb == CP:
        *path, target = flags.words
        copying = CopyRequest(
            job=job,
            members=members,
            path=path[0] if path else ".",
            target=Path(target),
            most_bytes=flags.limit_gib * GIB,
        )
        return copy_out(copying, nodes, output)
    login = importlib.import_module("clusterctl.ssh.single.login")  # loaded on use, as a verb is
    request = InsideRequest(
        job=job,
        members=members,
        is_choice=flags.node is not None,
        rank=flags.rank,
        words=flags.words,
        as_json=flags.as_json,
        has_names=flags.has_names,
    )
    return run_inside(request, nodes, output, login.log_in, is_at_terminal=is_terminal())


def _show_events(flags: JobFlags, job: JobState, nodes: JobNodes, output: Output) -> int:
    answers = nodes.ask(_chosen(flags, job, nodes), "events", job.name)
    events = merged_events({slot: each.words.get("events", ()) for slot, each in answers.items()})
    show_events(events, output, as_json=flags.as_json)
    unheard = [answer for answer in answers.values() if answer.error is not None]
    for answer in unheard:
        output.note(answer.error_line)
    return SomeNodesFailed.exit_code if unheard else 0


def _chosen(flags: JobFlags, job: JobState, nodes: JobNodes) -> tuple[InventoryNode, ...]:
    """The job's nodes that `--node` names. Raises NothingMatched if there are none."""
    chosen = {node.slot for node in chosen_rows(nodes.inventory, flags.node or ALL)}
    members = tuple(node for node in members_of(job, nodes.inventory) if node.slot in chosen)
    if not members:
        raise NothingMatched(f"{job.name} is not on these nodes", hint=f"clusterctl job show {job.name}")
    return members


def _show_logs(flags: JobFlags, job: JobState, nodes: JobNodes, output: Output) -> None:
    members = _chosen(flags, job, nodes)
    attempt = chosen_attempt(job, flags.attempt)
    following = JobFollowing(nodes, members, job=job.name, attempt=attempt, is_followed=flags.is_followed)
    for item in following.items():
        if isinstance(item, Notice):
            called = node_called(item.slot, nodes.inventory.name if flags.has_names else None)
            output.note(f"[{called}] {item.text}")
        elif isinstance(item, OutputLine) and flags.rank in (None, rank_of(item)):
            show_line(item, job, output, as_json=flags.as_json, has_names=flags.has_names)


def _cancel(attached: Attached, job: JobState, nodes: JobNodes, output: Output, *, as_json: bool) -> int:
    """Cancels the job, waits until it has ended, and returns 0, whatever ended it."""
    if job.is_over:
        attached.tell_end(job, output, as_json=as_json)
        return 0
    answers = nodes.ask(members_of(job, nodes.inventory), "cancel", job.name)
    for answer in answers.values():
        if answer.error is not None:
            output.note(answer.error_line)
    attached.watch(output, as_json=as_json, is_shown=False)
    return 0
