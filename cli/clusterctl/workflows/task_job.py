"""Makes a job of one task: resolves its tokens, and puts its files and its main program into a folder to send."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any  # JSON

from clusterctl_infra.outputs import Inventory

from clusterctl.jobs.launcher import Launch
from clusterctl.jobs.snapshot import Snapshot
from clusterctl.jobs.spec import JobRequest
from clusterctl.on_node.job.launchers import PLAIN
from clusterctl.on_node.workflow import barrier, task
from clusterctl.on_node.workflow.command import STOP_S
from clusterctl.workflows import tokens
from clusterctl.workflows.buckets import BucketMount, mounted_path
from clusterctl.workflows.loading import LoadedWorkflow
from clusterctl.workflows.model import Group, Input, Output, Task
from clusterctl.workflows.placement import Placed

PACKAGE = "clusterctl.on_node.workflow"
MAIN = """\
import sys
from pathlib import Path

from clusterctl.on_node.workflow.task import main

sys.exit(main(Path(__file__).resolve().parent))
"""
LOOK_UP = "nslookup"
TORCHRUN = "torchrun"
RUN_TORCHRUN = '#!/bin/sh\nexec python3 -m torch.distributed.run "$@"\n'
"""A `torchrun` for tasks on a node whose python3 has torch, but which has no torchrun of its own."""
SHARED_FOLDER = "clusterctl"
"""The folder on the cluster's shared storage for everything that workflows keep."""
INPUT_FOLDER = "/tmp/clusterctl-input"
BARRIER_S = 900.0
"""How long the tasks of a group wait for each other: their files are sent one task after another."""
KEEP_S = 30.0
"""How long a task that is stopped may take to store its outputs, once its command has ended or was killed."""
GRACE_S = STOP_S + KEEP_S
STARTED_AGAIN = ("RESTART", "RESCHEDULE")
"""Exit actions after which a task is started again."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One submission of a workflow."""

    id: str
    uuid: str
    loaded: LoadedWorkflow
    inventory: Inventory
    share: str | None
    """Where the cluster's shared storage is on every node; None: it has none."""
    plans: Sequence[Mapping[str, Any]]
    buckets: tuple[BucketMount, ...] = ()
    """The buckets that every node has mounted."""
    storage: str | None = None
    """Where every node has the cluster's `workflow_storage` mounted; None: it has none."""
    has_containers: bool
    """Whether tasks run in containers of their images; else on the nodes as they are."""
    by: str


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The barrier of a group, as one of its tasks sees it."""

    names: tuple[str, ...]
    """The names of the group's tasks, by rank; the lead is the first."""
    connect: str
    """The lead's address; empty for the lead itself."""
    port: int
    """The lead's port; 0 for the lead itself, which learns it from its job."""


def values_of(run: Run, placed: Sequence[Placed], own: Placed, job: str) -> dict[str, str]:
    """Token → what it stands for in this task. `placed`: all tasks of its group; `job`: its job's name."""
    values = {
        "workflow_id": run.id,
        "uuid": run.uuid,
        "output": output_folder(run, own.task.name, job),
        **{f"{tokens.HOST}:{each.task.name}": each.node.name for each in placed},
    }
    for index, each in enumerate(own.task.inputs):
        values[f"{tokens.INPUT}:{index}"] = f"{INPUT_FOLDER}/{index}"
        if each.task is not None:
            values.setdefault(f"{tokens.INPUT}:{each.task}", f"{INPUT_FOLDER}/{index}")
    return values


def output_folder(run: Run, name: str, job: str) -> str:
    """The folder that `{{output}}` names: on shared storage if there is some, else in the job's folder on the node."""
    if run.share is None:
        return f"/var/lib/clusterctl/jobs/{job}/work/output"
    return f"{run.share}/{SHARED_FOLDER}/workflows/{run.id}/{name}"


def version_name(run: Run, job: str, index: int) -> str:
    """A name for a version in a bucket that no other job of any cluster uses."""
    return f"{job}-{run.uuid[:8]}-{index}"


def needs_share(run: LoadedWorkflow) -> list[str]:
    """The inputs and outputs of the workflow that need storage for workflows: `task train: outputs`."""
    found = []
    for each in run.workflow.all_tasks():
        if any(own.url is None for own in each.inputs):
            found.append(f"task {each.name}: inputs")
        if any(own.url is None for own in each.outputs):
            found.append(f"task {each.name}: outputs")
    return found


def task_request(
    run: Run, group: Group, placed: Placed, job: str, *, tries: int, values: Mapping[str, str], secrets: Sequence[str]
) -> JobRequest:
    """The request for the job that runs this task; `tries` counts from 1."""
    workflow = {
        "id": run.id,
        "name": run.loaded.workflow.name,
        "group": group.name,
        "task": placed.task.name,
        "tries": tries,
        "plans": list(run.plans),
    }
    names = [each.name for each in ranked(group)]
    environment = {name: tokens.resolve(text, values) for name, text in placed.task.environment.items()}
    return JobRequest(
        inventory=run.inventory,
        nodes=(placed.node,),
        name=job,
        launch=Launch(launcher=PLAIN, command=(f"{task.FOLDER}/main.py", placed.task.name)),
        nproc="1",
        gpus=placed.gpus,
        environment={**environment, barrier.TASKS_VARIABLE: ",".join(names)},
        secrets=tuple(secrets),
        timeout_s=run.loaded.workflow.timeout.exec_timeout,
        grace_s=GRACE_S,
        image=placed.task.image if run.has_containers else None,
        volumes=placed.task.volume_mounts if run.has_containers else (),
        has_own_tmp=not run.has_containers,  # a container's /tmp is its own in any case
        workflow=workflow,
        by=run.by,
    )


def ranked(group: Group) -> tuple[Task, ...]:
    """The tasks of a group by their ranks in its barrier: the lead first."""
    return (group.lead, *(each for each in group.tasks if each is not group.lead))


@contextmanager
def staged(run: Run, placed: Placed, job: str, values: Mapping[str, str], gate: Gate | None) -> Iterator[Snapshot]:
    """The files that are sent to the task's node, in a temporary folder that is removed at the end of the block."""
    found = {f"{task.FOLDER}/{name}": text for name, text in _program().items()}
    rows = []
    for index, file in enumerate(placed.task.files):
        source = f"files/{index}"
        found[f"{task.FOLDER}/{source}"] = _resolved(run.loaded.contents[placed.task.name, file.path], values)
        rows.append({"path": file.path, "source": source})
    words = _task_words(run, placed.task, job, values, gate, rows)
    found[f"{task.FOLDER}/{task.WORDS}"] = json.dumps(words, indent=1).encode()
    with TemporaryDirectory(prefix="clusterctl-task-") as name:
        folder = Path(name)
        for path, content in found.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        for program in (f"{task.BIN}/{LOOK_UP}", f"{task.LAST_BIN}/{TORCHRUN}"):
            (folder / task.FOLDER / program).chmod(0o755)
        yield Snapshot(folder=folder, files=tuple(sorted(found)), size_bytes=sum(map(len, found.values())))


def _task_words(
    run: Run, own: Task, job: str, values: Mapping[str, str], gate: Gate | None, rows: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The content of the JSON file that the task's main program reads."""
    words = [*own.command, *own.args]
    rank = 0 if gate is None else gate.names.index(own.name)
    waits = {} if gate is None else {"names": list(gate.names), "rank": rank, "connect": gate.connect}
    return {
        "command": [tokens.resolve(word, values) for word in words],
        "files": list(rows),
        "output": values["output"],
        "mounts": [target for _, target in own.volume_mounts],
        "inputs": [_input_words(run, each, index, values) for index, each in enumerate(own.inputs)],
        "outputs": _outputs_words(run, own, job, values),
        "checkpoints": [_checkpoint_words(run, own, job, index, values) for index in range(len(own.checkpoint))],
        "again": [[first, last] for action, first, last in own.exit_actions if action in STARTED_AGAIN],
        "barrier": {**waits, "port": gate.port, "timeout_s": BARRIER_S} if gate is not None else {},
    }


def _input_words(run: Run, each: Input, index: int, values: Mapping[str, str]) -> dict[str, str | None]:
    link: dict[str, str | None] = {"link": f"{INPUT_FOLDER}/{index}"}
    if each.dataset is not None:
        name, _, version = tokens.resolve(each.dataset.name, values).partition(":")
        return {**link, **_dataset(run, name), "version": version, "regex": each.dataset.regex or ""}
    link["regex"] = each.regex or ""
    if each.url is not None:
        url = tokens.resolve(each.url, values)
        return {**link, "path": mounted_path(url, run.buckets, is_written=False), "url": url}
    if run.share is None:
        return {**link, "bucket": _kept_output(run, str(each.task)), "version": ""}
    return {**link, "path": output_folder(run, str(each.task), "")}


def _outputs_words(run: Run, own: Task, job: str, values: Mapping[str, str]) -> list[dict[str, str | None]]:
    """Where the task's outputs are to be stored.

    If `{{output}}` is on the node's disk and there is a bucket for workflows, all of it is stored there as well.
    """
    found = [
        _output_words(run, output, version_name(run, job, index), values) for index, output in enumerate(own.outputs)
    ]
    if run.share is None and run.storage is not None:
        version = version_name(run, job, len(found))
        found.append({"path": "", "bucket": _kept_output(run, own.name), "version": version, "regex": ""})
    return found


def _output_words(run: Run, output: Output, version: str, values: Mapping[str, str]) -> dict[str, str | None]:
    if output.dataset is None:
        url = tokens.resolve(str(output.url), values)
        folder = mounted_path(url, run.buckets, is_written=True)
        return {"url": url, "folder": folder, "regex": output.regex or ""}
    return {
        "path": tokens.resolve(output.dataset.path or "", values),
        **_dataset(run, tokens.resolve(output.dataset.name, values)),
        "version": version,
        "regex": output.dataset.regex or "",
    }


def _checkpoint_words(run: Run, own: Task, job: str, index: int, values: Mapping[str, str]) -> dict[str, Any]:
    checkpoint = own.checkpoint[index]
    url = tokens.resolve(checkpoint.url, values)
    return {
        "path": tokens.resolve(checkpoint.path, values),
        "url": url,
        "folder": mounted_path(url, run.buckets, is_written=True),
        "frequency_s": checkpoint.frequency,
        "regex": checkpoint.regex or "",
        "version": version_name(run, job, index),
    }


def _dataset(run: Run, name: str) -> dict[str, str | None]:
    """The folder with a dataset's versions: in the bucket for workflows if there is one, else on shared storage."""
    if run.storage is not None:
        return {"bucket": f"{run.storage}/datasets/{name}"}
    return {"dataset": f"{run.share}/{SHARED_FOLDER}/datasets/{name}"}


def _kept_output(run: Run, name: str) -> str:
    """The folder in the bucket for workflows that has a version of a task's `{{output}}` for each try.

    Used if nodes share no file system.
    """
    return f"{run.storage}/workflows/{run.id}/{name}"


def _resolved(content: bytes, values: Mapping[str, str]) -> bytes:
    """The content with its tokens resolved; a file that is not UTF-8 text stays as it is."""
    try:
        return tokens.resolve(content.decode(), values).encode()
    except UnicodeDecodeError:
        return content


def _program() -> dict[str, bytes]:
    """Path → content of the task's main program, of what it imports, and of the programs for its PATH."""
    found = {"main.py": MAIN.encode(), "clusterctl/__init__.py": b"", "clusterctl/on_node/__init__.py": b""}
    for path in files(PACKAGE).iterdir():
        if path.name.endswith(".py"):
            found[f"clusterctl/on_node/workflow/{path.name}"] = path.read_bytes()
    found[f"{task.LAST_BIN}/{TORCHRUN}"] = RUN_TORCHRUN.encode()
    found[f"{task.BIN}/{LOOK_UP}"] = found[f"clusterctl/on_node/workflow/{LOOK_UP}.py"]
    return found
