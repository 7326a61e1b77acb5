"""`workflow submit`: checks everything that can be known beforehand, then drives the workflow to its end."""

from __future__ import annotations

import os
import re
import shlex
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any  # JSON

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ClusterctlError, ConfigError
from clusterctl_infra.outputs import Inventory

from clusterctl.jobs.attached import HUNG_UP, HungUp, signals_as_exceptions
from clusterctl.jobs.known import job_nodes, known_jobs
from clusterctl.jobs.node_answers import JobNodes, refuse_errors
from clusterctl.jobs.start import started_by
from clusterctl.output import Output
from clusterctl.workflows.buckets import BucketMount, bucket_mounts
from clusterctl.workflows.course import plans_json, plans_of
from clusterctl.workflows.jobs_of_tasks import known_workflow, workflow_json
from clusterctl.workflows.loading import LoadedWorkflow
from clusterctl.workflows.placement import NodeCapacity, Placed, capacities_of, place
from clusterctl.workflows.submission import Submission
from clusterctl.workflows.submit_checks import (
    ON_HOST_HINT,
    credentials_of,
    refuse_odd_tasks,
    refuse_unfit,
    refuse_unmounted,
    refuse_unshared,
    registry_logins,
    workflow_bucket,
)
from clusterctl.workflows.task_job import Run, values_of
from clusterctl.workflows.tokens import resolve

NAME_LENGTH = 26
"""Leaves room in a job's name for random digits, the task's number and the try."""
ANY_JOB = "workflow"
"""The verb `facts` wants a job's name; any will do, as only the storage and the container engine are read here."""


@dataclass(frozen=True, kw_only=True)
class SubmitFlags:
    """How `submit` runs a workflow."""

    is_on_host: bool
    registry_secrets: tuple[str, ...]
    """Names of variables on this computer that hold USER:PASSWORD, each written as `NAME` or `REGISTRY=NAME`."""
    is_dry_run: bool
    connect_timeout_s: float
    as_json: bool


@dataclass(frozen=True, kw_only=True)
class StackToBringUp:
    """The stack folder of `--up`, and the flags that go with it."""

    folder: Path
    is_rehearsed: bool
    is_agreed: bool
    """`--yes`."""


def submit(loaded: LoadedWorkflow, inventory: Inventory, flags: SubmitFlags, output: Output) -> int:
    """Runs the workflow and returns the exit code: 0 if it completed, or if the person left it running.

    Raises ClusterctlError from a check, before anything is started, or if a group cannot be started later; then the
    tasks that run are cancelled.
    """
    secrets = credentials_of(loaded, os.environ)
    where, hint = inventory.cluster, f"clusterctl nodes --cluster {inventory.cluster}"
    refuse_unfit(loaded, _capacities(inventory), where=where, type_name=inventory.instance_type, hint=hint)
    refuse_odd_tasks(loaded, is_on_host=flags.is_on_host)
    logins = registry_logins(loaded, flags.registry_secrets, os.environ)
    nodes = job_nodes(inventory, connect_timeout_s=flags.connect_timeout_s)
    storage = node_storage(nodes, has_containers=not flags.is_on_host)
    _say_where(loaded, flags, output)
    has_bucket = inventory.workflow_storage is not None
    refuse_unshared(loaded, storage.share, has_bucket=has_bucket, where=where, hint=hint)
    refuse_unmounted(loaded, storage.buckets, where=where, hint=hint)
    run = _run(loaded, inventory, storage, has_containers=not flags.is_on_host)
    if flags.is_dry_run:
        _show_plan(run, inventory, output, as_json=flags.as_json)
        return 0
    submission = Submission(
        run=run,
        plans=plans_of(loaded.workflow),
        nodes=nodes,
        capacities=_capacities(inventory),
        secrets_of=secrets,
        logins=logins,
        tell=output.note,
    )
    output.note(f"{run.id}: this command starts its groups, so it has to run until the end")
    code = watched(submission, output)
    if flags.as_json:
        output.json(workflow_json(known_workflow(known_jobs(nodes), run.id, inventory.cluster)))
    return code


@dataclass(frozen=True, kw_only=True)
class NodeStorage:
    """The storage that every node has mounted."""

    share: str | None
    """The path of the first file system that may be written; None: there is none."""
    buckets: tuple[BucketMount, ...]


def node_storage(nodes: JobNodes, *, has_containers: bool) -> NodeStorage:
    """The storage of all nodes, as the node in the lowest slot describes it.

    Raises ClusterctlError, also if containers are wanted and that node has no engine to run them.
    """
    first = min(nodes.inventory.nodes, key=lambda node: node.slot)
    answers = nodes.ask((first,), "facts", ANY_JOB)
    refuse_errors(list(answers.values()), "the workflow was not started")
    facts = answers[first.slot].words
    if has_containers and not facts["engine"]:
        message = f"Node {first.slot} ({first.name}) has neither docker nor podman, so tasks cannot run in their images"
        raise ConfigError(f"{message}; nothing was started", hint=ON_HOST_HINT)
    return NodeStorage(share=facts["shared"], buckets=bucket_mounts(facts.get("mounts") or ()))


def watched(submission: Submission, output: Output) -> int:
    """Drives the workflow until it has ended, and returns the exit code; Ctrl-C asks whether to cancel it.

    Returns 0 when the person leaves and the tasks that run go on, and 129 after SIGHUP.
    """
    name = submission.run.id
    with signals_as_exceptions(is_at_terminal=output.can_ask):
        while True:
            try:
                code = submission.watch()
                output.note(f"{name}: {submission.state}")
                return code
            except HungUp:
                return HUNG_UP
            except KeyboardInterrupt:
                if output.can_ask and not _is_to_cancel(name, output):
                    submission.leave()
                    output.note(f"{name}: running tasks go on\n  next: clusterctl workflow show {name}")
                    return 0
                output.note(f"{name}: cancelling")
                submission.cancel()
            except ClusterctlError:
                submission.cancel()
                raise


def _is_to_cancel(name: str, output: Output) -> bool:
    """Asks whether to cancel; a second Ctrl-C means no."""
    try:
        return output.confirm(f"\n{name}: cancel it? No leaves its running tasks alone, but starts nothing more of it.")
    except KeyboardInterrupt:
        return False


def _say_where(loaded: LoadedWorkflow, flags: SubmitFlags, output: Output) -> None:
    images = ", ".join(sorted({task.image for task in loaded.workflow.all_tasks()}))
    where = f"on the nodes themselves, without what {images} would hold" if flags.is_on_host else f"in {images}"
    output.note(f"{where}; memory and processors have no limit")


def _capacities(inventory: Inventory) -> tuple[NodeCapacity, ...]:
    return capacities_of(inventory, load_catalog().types.get(inventory.instance_type))


def _run(loaded: LoadedWorkflow, inventory: Inventory, storage: NodeStorage, *, has_containers: bool) -> Run:
    name = re.sub(r"[^a-z0-9]+", "-", loaded.workflow.name.lower())[:NAME_LENGTH].strip("-")
    return Run(
        id=f"{name}-{token_hex(2)}",
        uuid=uuid.uuid4().hex,
        loaded=loaded,
        inventory=inventory,
        share=storage.share,
        buckets=storage.buckets,
        storage=workflow_bucket(inventory, storage.buckets),
        plans=plans_json(plans_of(loaded.workflow)),
        has_containers=has_containers,
        by=started_by(),
    )


def _show_plan(run: Run, inventory: Inventory, output: Output, *, as_json: bool) -> None:
    """Shows what each task would run, and where if nobody else used the nodes."""
    workflow = run.loaded.workflow
    for plan in plans_of(workflow):
        group = next(group for group in workflow.all_groups() if group.name == plan.name)
        placed = place(group.tasks, workflow.resources, _capacities(inventory))
        rows = [_planned(run, placed, each) for each in placed]
        if as_json:
            output.json({"group": plan.name, "after": list(plan.after), "tasks": rows}, is_line=True)
            continue
        output.data(f"group {plan.name}" + (f", after {', '.join(plan.after)}" if plan.after else ""))
        for row in rows:
            gpus = "" if row["gpus"] is None else f", {row['gpus']} of its GPUs"
            output.data(f"  {row['task']}: Node {row['slot']} ({row['node']}){gpus}\n    {shlex.join(row['command'])}")


def _planned(run: Run, placed: Sequence[Placed], own: Placed) -> dict[str, Any]:
    values = values_of(run, placed, own, f"{run.id}-N")
    command = [resolve(word, values) for word in (*own.task.command, *own.task.args)]
    return {
        "task": own.task.name,
        "slot": own.node.slot,
        "node": own.node.name,
        "gpus": own.gpus,
        "command": command,
        "files": [file.path for file in own.task.files],
        "output": values["output"],
    }
