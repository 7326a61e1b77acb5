"""What `clusterctl job` was asked for, and how it is done."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.jobs.attached import Attached, has_ranks
from clusterctl.jobs.following import JobFollowing, Notice, OutputLine
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.known import job_nodes, known_job, members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.jobs.shown import line_json, line_text, state_json, state_text
from clusterctl.options import chosen_cluster, chosen_rows
from clusterctl.output import Output

SHOW, LOGS, ATTACH, WAIT, CANCEL = "show", "logs", "attach", "wait", "cancel"
VERBS = (SHOW, LOGS, ATTACH, WAIT, CANCEL)


@dataclass(frozen=True, kw_only=True)
class JobFlags:
    """The flags, read."""

    cluster: str | None
    node: str
    rank: int | None
    is_followed: bool
    connect_timeout_s: float
    as_json: bool
    verb: str
    name: str


def carry_out(flags: JobFlags, output: Output) -> int:
    """The exit code. Raises ClusterctlError."""
    inventory = chosen_cluster(flags.cluster)
    nodes = job_nodes(inventory, connect_timeout_s=flags.connect_timeout_s)
    job = known_job(nodes, flags.name)
    if flags.verb == SHOW:
        _show(job, output, as_json=flags.as_json)
        return 0
    if flags.verb == LOGS:
        _show_logs(flags, job, nodes, output)
        return 0
    attached = Attached(nodes, members_of(job, inventory), job.spec)
    if flags.verb == CANCEL:
        return _cancel(attached, job, nodes, output, as_json=flags.as_json)
    if flags.verb == WAIT and job.is_over:
        return attached.tell_end(job, output, as_json=flags.as_json)
    return attached.watch(output, as_json=flags.as_json, is_shown=flags.verb == ATTACH)


def _show(job: JobState, output: Output, *, as_json: bool) -> None:
    if as_json:
        output.json(state_json(job))
    else:
        output.data(state_text(job))


def _show_logs(flags: JobFlags, job: JobState, nodes: JobNodes, output: Output) -> None:
    chosen = {node.slot for node in chosen_rows(nodes.inventory, flags.node)}
    members = tuple(node for node in members_of(job, nodes.inventory) if node.slot in chosen)
    following = JobFollowing(
        nodes, members, job=job.name, attempt=int(job.spec["attempt"]), is_followed=flags.is_followed
    )
    for item in following.items():
        if isinstance(item, Notice):
            output.note(f"[Node {item.slot}] {item.text}")
        elif isinstance(item, OutputLine) and (flags.rank is None or item.rank == str(flags.rank)):
            if flags.as_json:
                output.json(line_json(item), is_line=True)
            else:
                output.data(line_text(item, has_ranks=has_ranks(job.spec)))


def _cancel(attached: Attached, job: JobState, nodes: JobNodes, output: Output, *, as_json: bool) -> int:
    """0 once it has ended, whatever had ended it."""
    if job.is_over:
        attached.tell_end(job, output, as_json=as_json)
        return 0
    answers = nodes.ask(members_of(job, nodes.inventory), "cancel", job.name)
    for answer in answers.values():
        if answer.error is not None:
            output.note(answer.told)
    attached.watch(output, as_json=as_json, is_shown=False)
    return 0
