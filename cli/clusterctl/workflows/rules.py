"""Finds what is wrong in a workflow whose single values are well-formed, and what clusterctl does not support. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from clusterctl_infra.config.document import Path
from clusterctl_infra.nearest import did_you_mean

from clusterctl.jobs.spec import is_owned
from clusterctl.jobs.variables import value_problem
from clusterctl.on_node.workflow.barrier import KEY_VARIABLE
from clusterctl.workflows import tokens
from clusterctl.workflows.buckets import NOT_BUILT, url_problem
from clusterctl.workflows.model import DEFAULT, CheckpointSpec, Group, Input, Output, Resources, Task, Workflow
from clusterctl.workflows.order import circle, upstream

MOST_TASKS = 1000
ROOT: Path = ("workflow",)
FILE_ROOT = "/tmp/"
"""A task's files go below this: each task has a /tmp of its own, and shares the rest of the node."""
REGEX_OF_DATASET = "write it below dataset"
SET_BY_JOB = "the task's job sets it itself, and another value would break it"
ANY_JOB = {
    **dict.fromkeys(("job", "cluster", "cluster_id", "user", "launcher"), ""),
    **dict.fromkeys(("attempt", "generation", "master_port", "channel_port", "jax_port"), 0),
    "members": [{"slot": 0, "name": "", "address": "", "gpus": 0, "gpu_indices": [], "nproc": 1}],
    "tf_ports": [0],
    "environment": {},
    "secrets": [],
}
"""As much of a job's spec as `is_owned` needs to say which variables jobs set themselves."""


class Fault(NamedTuple):
    """Something that is wrong, and the path of its key."""

    path: Path
    message: str


def faults(workflow: Workflow) -> Iterator[Fault]:
    """All faults of the workflow, in no particular order."""
    groups = workflow.all_groups()
    yield from _refused(
        ROOT,
        pool="pools are OSMO's: --cluster names the cluster" if workflow.pool is not None else None,
        backend="backends are OSMO's: --cluster names the cluster" if workflow.backend is not None else None,
    )
    if workflow.timeout.start_timeout is not None:
        yield Fault((*ROOT, "timeout", "start_timeout"), NOT_BUILT)
    for name, resources in workflow.resources.items():
        yield from _resource_faults((*ROOT, "resources", name), resources)
    yield from _repeated(workflow)
    names = {task.name for task in workflow.all_tasks()}
    for place, group in enumerate(groups):
        path: Path = (*ROOT, "groups", place) if workflow.groups else ROOT
        yield from _lead_faults(path, group)
        for index, task in enumerate(group.tasks):
            where: Path = (*path, "tasks", index if workflow.groups else place)
            yield from _task_faults(where, task, group, names)
            if task.resource not in workflow.resources and (task.resource != DEFAULT or workflow.resources):
                near = did_you_mean(task.resource, workflow.resources)
                yield Fault((*where, "resource"), f"{task.resource!r}: not in resources{near}")
    if ring := circle(upstream(groups)):
        yield Fault((*ROOT, "groups"), f"they wait for each other by their inputs: {' → '.join(ring)}")


def _repeated(workflow: Workflow) -> Iterator[Fault]:
    tasks = Counter(task.name for task in workflow.all_tasks())
    groups = Counter(group.name for group in workflow.groups)
    for kind, counted in (("tasks", tasks), ("groups", groups)):
        for name, count in counted.items():
            if count > 1:
                yield Fault(ROOT, f"{count} {kind} have the name {name}")
    if sum(tasks.values()) > MOST_TASKS:
        yield Fault(ROOT, f"{sum(tasks.values())} tasks; at most {MOST_TASKS}")


def _lead_faults(path: Path, group: Group) -> Iterator[Fault]:
    leads = [task.name for task in group.tasks if task.lead]
    if len(leads) > 1:
        yield Fault(path, f"group {group.name}: {' and '.join(leads)} both lead; one task of a group has lead: true")
    if not leads and len(group.tasks) > 1:
        yield Fault(path, f"group {group.name}: no task leads; one of its {len(group.tasks)} has lead: true")


def _resource_faults(path: Path, resources: Resources) -> Iterator[Fault]:
    yield from _refused(
        path,
        platform="platforms are OSMO's: leave it out" if resources.platform is not None else None,
        topology=NOT_BUILT if resources.topology is not None else None,
        nodesExcluded=NOT_BUILT if resources.nodes_excluded is not None else None,
    )


def _task_faults(path: Path, task: Task, group: Group, names: set[str]) -> Iterator[Fault]:
    yield from _refused(
        path,
        kpis=NOT_BUILT if task.kpis else None,
        privileged="tasks run as the login user" if task.privileged else None,
        downloadType=NOT_BUILT if task.download_type is not None else None,
        cacheSize=NOT_BUILT if task.cache_size is not None else None,
    )
    yield from _file_faults(path, task)
    yield from _variable_faults(path, task)
    for index, each in enumerate(task.inputs):
        yield from _input_faults((*path, "inputs", index), each, group, names)
    for index, output in enumerate(task.outputs):
        yield from _output_faults((*path, "outputs", index), output)
    for index, checkpoint in enumerate(task.checkpoint):
        yield from _checkpoint_faults((*path, "checkpoint", index), checkpoint)
    for where, text in texts(task):
        yield from (Fault((*path, *where), sentence) for sentence in token_faults(text, task, group))


def _file_faults(path: Path, task: Task) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, file in enumerate(task.files):
        where: Path = (*path, "files", index, "path")
        if file.path in seen:
            yield Fault(where, f"{file.path!r}: another file of the task has that path")
        seen.add(file.path)
        if not file.path.startswith(FILE_ROOT):
            yield Fault(where, f"{file.path!r}: a task's files go below {FILE_ROOT}; elsewhere is {NOT_BUILT}")
        if any(f"{file.path}/" == other.path[: len(file.path) + 1] for other in task.files):
            yield Fault(where, f"{file.path!r}: another file of the task lies below it")


def _variable_faults(path: Path, task: Task) -> Iterator[Fault]:
    for name, text in task.environment.items():
        problem = SET_BY_JOB if _is_owned(name) else value_problem(name, text)
        if problem is not None:
            yield Fault((*path, "environment", name), problem)
    for name, held in task.credentials.items():
        if isinstance(held, str):
            yield Fault((*path, "credentials", name), f"a credential as a file is {NOT_BUILT}: write VARIABLE: key")
            continue
        for variable in held:
            if _is_owned(variable):
                yield Fault((*path, "credentials", name, variable), SET_BY_JOB)
            elif variable in task.environment:
                yield Fault((*path, "credentials", name, variable), "set twice for the task")


def _is_owned(variable: str) -> bool:
    return variable == KEY_VARIABLE or is_owned(variable, ANY_JOB)


def _input_faults(path: Path, each: Input, group: Group, names: set[str]) -> Iterator[Fault]:
    if each.url is not None and (problem := url_problem(each.url)) is not None:
        yield Fault((*path, "url"), problem)
    if each.regex is not None and each.dataset is not None:
        yield Fault((*path, "regex"), REGEX_OF_DATASET)
    if each.dataset is not None and each.dataset.localpath is not None:
        yield Fault((*path, "dataset", "localpath"), f"{NOT_BUILT}: clusterctl cp DIR NODE:PATH")
    if each.dataset is not None and each.dataset.path is not None:
        yield Fault((*path, "dataset", "path"), "an input is the whole dataset")
    if each.task is not None and each.task not in names:
        yield Fault((*path, "task"), f"{each.task!r}: no such task{did_you_mean(each.task, names)}")
    if each.task is not None and each.task in {task.name for task in group.tasks}:
        yield Fault((*path, "task"), f"{each.task!r}: in the same group, so it runs at the same time")


def _output_faults(path: Path, output: Output) -> Iterator[Fault]:
    if output.url is not None and (problem := url_problem(output.url)) is not None:
        yield Fault((*path, "url"), problem)
    if output.update_dataset is not None:
        yield Fault((*path, "update_dataset"), f"{NOT_BUILT}; each upload is a new version")
    if output.regex is not None and output.dataset is not None:
        yield Fault((*path, "regex"), REGEX_OF_DATASET)
    if output.dataset is None:
        return
    yield from _refused(
        (*path, "dataset"),
        metadata=NOT_BUILT if output.dataset.metadata is not None else None,
        labels=NOT_BUILT if output.dataset.labels is not None else None,
        localpath="for inputs" if output.dataset.localpath is not None else None,
    )
    if ":" in tokens.ANYWHERE.sub("", output.dataset.name):
        yield Fault((*path, "dataset", "name"), f"tags of outputs are {NOT_BUILT}; versions are numbered")
    if (part := output.dataset.path) is not None and (part.startswith("/") or ".." in part.split("/")):
        yield Fault((*path, "dataset", "path"), f"{part!r}: write a path below {{{{output}}}}")


def _checkpoint_faults(path: Path, checkpoint: CheckpointSpec) -> Iterator[Fault]:
    if (problem := url_problem(checkpoint.url)) is not None:
        yield Fault((*path, "url"), problem)
    plain = tokens.ANYWHERE.sub("/x", checkpoint.path)
    if not plain.startswith("/") or ".." in plain.split("/"):
        yield Fault(
            (*path, "path"), f"{checkpoint.path!r}: write an absolute path without .., as {{{{output}}}}/models"
        )


def texts(task: Task) -> Iterator[tuple[Path, str]]:
    """(path, text) for each text of the task in which tokens are resolved, without the files of `localpath`."""
    yield from ((("command", index), word) for index, word in enumerate(task.command))
    yield from ((("args", index), word) for index, word in enumerate(task.args))
    yield from ((("environment", name), text) for name, text in task.environment.items())
    yield from ((("files", index, "contents"), file.contents or "") for index, file in enumerate(task.files))
    for index, output in enumerate(task.outputs):
        if output.dataset is not None:
            yield ("outputs", index, "dataset", "name"), output.dataset.name
            yield ("outputs", index, "dataset", "path"), output.dataset.path or ""
        if output.url is not None:
            yield ("outputs", index, "url"), output.url
    for index, checkpoint in enumerate(task.checkpoint):
        yield ("checkpoint", index, "path"), checkpoint.path
        yield ("checkpoint", index, "url"), checkpoint.url
    for index, each in enumerate(task.inputs):
        if each.dataset is not None:
            yield ("inputs", index, "dataset", "name"), each.dataset.name
        if each.url is not None:
            yield ("inputs", index, "url"), each.url


def token_faults(text: str, task: Task, group: Group) -> Iterator[str]:
    """A sentence for each `{{host:…}}` and `{{input:…}}` in the text that has no value in this task."""
    for token in dict.fromkeys(tokens.tokens_in(text)):
        kind, _, name = token.partition(":")
        if kind == tokens.HOST:
            known = [each.name for each in group.tasks]
            if name not in known:
                near = did_you_mean(name, known)
                yield f"{{{{{token}}}}}: no task {name!r} in the group {group.name}{near}"
        elif kind == tokens.INPUT:
            known = [*map(str, range(len(task.inputs))), *(each.task for each in task.inputs if each.task)]
            if name not in known:
                yield f"{{{{{token}}}}}: the task has {len(task.inputs)} inputs, counted from 0"


def _refused(path: Path, **why: str | None) -> Iterator[Fault]:
    return (Fault((*path, key), sentence) for key, sentence in why.items() if sentence is not None)
