"""`clusterctl workflow`: what was asked for, and how each of its verbs is carried out."""

from __future__ import annotations

import importlib
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, NothingMatched, SomeNodesFailed, UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.jobs.inside import InsideRequest, is_terminal, run_inside
from clusterctl.jobs.job_state import JobState
from clusterctl.jobs.known import KnownJobs, job_nodes, known_jobs, members_of
from clusterctl.jobs.node_answers import JobNodes
from clusterctl.options import chosen_cluster
from clusterctl.output import Output
from clusterctl.ssh.single.login import log_in
from clusterctl.text.quantities import count
from clusterctl.workflows.jobs_of_tasks import (
    HEADER,
    KnownWorkflow,
    jobs_known_to,
    known_workflow,
    table_row,
    workflow_json,
    workflow_text,
    workflows_of,
)
from clusterctl.workflows.loading import LoadedWorkflow, Settings, load_workflow
from clusterctl.workflows.submit import StackToBringUp, SubmitFlags, submit
from clusterctl.workflows.task_job import GRACE_S
from clusterctl.workflows.task_logs import show_logs

VALIDATE, SPEC, SUBMIT, LIST, SHOW, LOGS, CANCEL, EXEC = (
    "validate",
    "spec",
    "submit",
    "list",
    "show",
    "logs",
    "cancel",
    "exec",
)
VERBS = (VALIDATE, SPEC, SUBMIT, LIST, SHOW, LOGS, CANCEL, EXEC)
HINT = "clusterctl workflow --help"
POLL_S = 0.5
ENDED_WITHIN_S = GRACE_S + 30.0


@dataclass(frozen=True, kw_only=True)
class WorkflowFlags:
    """The flags and words of `clusterctl workflow`, parsed."""

    verb: str
    words: tuple[str, ...]
    """What follows the verb: a file or a workflow's id; for exec also a task and a command."""
    settings: tuple[str, ...]
    setting_texts: tuple[str, ...]
    environment: Mapping[str, str]
    cluster: str | None
    up: Path | None
    rehearse: bool
    yes: bool
    task: str | None
    is_on_host: bool
    registry_secrets: tuple[str, ...]
    is_dry_run: bool
    is_followed: bool
    connect_timeout_s: float
    as_json: bool


def carry_out(flags: WorkflowFlags, output: Output) -> int:
    """Carries the verb out and returns the exit code. Raises ClusterctlError."""
    _refuse_odd_up(flags)
    if flags.registry_secrets and (flags.verb != SUBMIT or flags.is_on_host):
        raise UsageError("--registry-secret belongs to submit, where tasks run in images", hint=HINT)
    if flags.verb in (VALIDATE, SPEC, SUBMIT):
        return _with_file(flags, output)
    if flags.verb == EXEC and len(flags.words) < 2:
        raise UsageError("write: clusterctl workflow exec ID TASK [-- COMMAND]", hint=HINT)
    nodes = job_nodes(chosen_cluster(flags.cluster), connect_timeout_s=flags.connect_timeout_s)
    known = known_jobs(nodes)
    if flags.verb == LIST:
        if flags.words:
            raise UsageError("workflow list takes no more words", hint=HINT)
        workflows = workflows_of(known.jobs)
        if flags.as_json:
            output.json([workflow_json(workflow) for workflow in workflows])
        elif workflows:
            output.table(HEADER, [table_row(workflow) for workflow in workflows], right=("tasks",))
        else:
            output.note("no workflow\n  next: clusterctl workflow submit FILE")
        for answer in known.unheard:
            output.note(answer.error_line)
        return SomeNodesFailed.exit_code if known.unheard else 0
    if flags.verb == EXEC:
        return _run_inside(flags, known, nodes, output)
    workflow = known_workflow(known, _only_word(flags, "a workflow's id"), nodes.inventory.cluster)
    if flags.verb == LOGS:
        show_logs(workflow, nodes, output, task=flags.task, is_followed=flags.is_followed, as_json=flags.as_json)
        return 0
    if flags.verb == CANCEL:
        cancel_workflow(workflow, nodes, output.note)
        workflow = known_workflow(known_jobs(nodes), workflow.id, nodes.inventory.cluster)
    if flags.as_json:
        output.json(workflow_json(workflow))
    else:
        output.data(workflow_text(workflow))
    return 0


def cancel_workflow(workflow: KnownWorkflow, nodes: JobNodes, tell: Callable[[str], None]) -> None:
    """Cancels the workflow's jobs and waits until its nodes say that they have ended.

    Raises ClusterctlError if they do not say so within `ENDED_WITHIN_S`.
    """
    left = {job.name: job for job in workflow.live()}
    for job in workflow.to_cancel():
        for answer in nodes.ask(members_of(job, nodes.inventory), "cancel", job.name).values():
            if answer.error is not None:
                tell(answer.error_line)
    until_s = time.monotonic() + ENDED_WITHIN_S
    while left:
        members = {node.slot: node for job in left.values() for node in members_of(job, nodes.inventory)}
        heard = jobs_known_to(nodes, list(members.values()))
        left = {name: job for name, job in left.items() if not _has_ended(job, heard)}
        if not left:
            return
        if time.monotonic() > until_s:
            message = f"{workflow.id}: not ended within {ENDED_WITHIN_S:g} s: {', '.join(left)}"
            raise ClusterctlError(message, hint="clusterctl jobs")
        time.sleep(POLL_S)


def _refuse_odd_up(flags: WorkflowFlags) -> None:
    """Raises UsageError for flags that --up forbids, or that need --up."""
    if flags.up is None:
        typed = "--rehearse" if flags.rehearse else "--yes"
        if flags.rehearse or flags.yes:
            raise UsageError(f"{typed} belongs to --up STACK", hint=HINT)
        return
    if flags.verb != SUBMIT:
        raise UsageError(f"workflow {flags.verb} brings no cluster up: --up belongs to submit", hint=HINT)
    if flags.cluster is not None:
        message = f"--up {flags.up} and --cluster {flags.cluster}: give only one of them"
        raise UsageError(message, hint="clusterctl workflow submit FILE --up STACK")
    if flags.is_dry_run:
        message = "--dry-run starts nothing, and --up a cluster: give only one of them"
        raise UsageError(message, hint=f"clusterctl plan {shlex.quote(str(flags.up))}")


def _with_file(flags: WorkflowFlags, output: Output) -> int:
    settings = Settings(words=flags.settings, texts=flags.setting_texts, environment=flags.environment)
    loaded = load_workflow(Path(_only_word(flags, "a workflow's file")), settings)
    if flags.verb == SUBMIT:
        own = SubmitFlags(
            is_on_host=flags.is_on_host,
            registry_secrets=flags.registry_secrets,
            is_dry_run=flags.is_dry_run,
            connect_timeout_s=flags.connect_timeout_s,
            as_json=flags.as_json,
        )
        if flags.up is None:
            return submit(loaded, chosen_cluster(flags.cluster), own, output)
        stack = StackToBringUp(folder=flags.up, is_rehearsed=flags.rehearse, is_agreed=flags.yes)
        # Loaded on use: the modules that bring clusters up take longer to load than all others here.
        submit_up = importlib.import_module("clusterctl.workflows.submit_up")
        code: int = submit_up.submit_on_stack(loaded, stack, own, output)
        return code
    if flags.verb == SPEC:
        _show_spec(loaded, output, as_json=flags.as_json)
    else:
        _show_valid(loaded, output, as_json=flags.as_json)
    return 0


def _only_word(flags: WorkflowFlags, what: str) -> str:
    if len(flags.words) != 1 or not flags.words[0]:
        raise UsageError(f"workflow {flags.verb} needs {what}", hint=HINT)
    return flags.words[0]


def _run_inside(flags: WorkflowFlags, known: KnownJobs, nodes: JobNodes, output: Output) -> int:
    """Runs a command inside a task, as `job exec` does inside the task's job; returns the exit code."""
    name, task, *words = flags.words
    workflow = known_workflow(known, name, nodes.inventory.cluster)
    job = workflow.jobs.get(task)
    if job is None:
        tasks = [each.name for plan in workflow.plans for each in plan.tasks]
        why = "was not started yet" if task in tasks else f"is no task of it{did_you_mean(task, tasks)}"
        raise NothingMatched(f"{workflow.id}: {task} {why}", hint=f"clusterctl workflow show {workflow.id}")
    request = InsideRequest(
        job=job,
        members=members_of(job, nodes.inventory),
        is_choice=False,
        rank=None,
        words=tuple(words),
        as_json=flags.as_json,
    )
    return run_inside(request, nodes, output, log_in, is_at_terminal=is_terminal())


def _show_spec(loaded: LoadedWorkflow, output: Output, *, as_json: bool) -> None:
    """Shows the file as Jinja rendered it, with its tokens unresolved."""
    if as_json:
        output.json(loaded.workflow.model_dump(by_alias=True, exclude_defaults=True, mode="json"))
    else:
        output.data(loaded.rendered.strip("\n"))


def _show_valid(loaded: LoadedWorkflow, output: Output, *, as_json: bool) -> None:
    groups = loaded.workflow.all_groups()
    if as_json:
        rows = [{"group": group.name, "tasks": [task.name for task in group.tasks]} for group in groups]
        output.json({"workflow": loaded.workflow.name, "groups": rows})
        return
    tasks = sum(len(group.tasks) for group in groups)
    output.note(
        f"{loaded.source}: valid: {loaded.workflow.name}, {count(len(groups), 'group')}, {count(tasks, 'task')}"
    )


def _has_ended(job: JobState, heard: Mapping[int, Mapping[str, JobState]]) -> bool:
    """Whether each of the job's nodes says that the job has ended."""
    states = [heard.get(slot, {}).get(job.name) for slot in job.slots]
    return all(state is not None and state.is_over for state in states)
