"""What a workflow's file may hold, once it is rendered: all of OSMO's keys, even those that are not supported here.

`rules.py` refuses the unsupported ones by name. The keys are OSMO's at 1da31e1 (2026-11), and those of datasets from
before OSMO dropped them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any  # keys that are refused by name, whatever they hold

from pydantic import BaseModel, ConfigDict, Field, model_validator

from clusterctl.workflows.fields import (
    Cpus,
    DatasetName,
    ExitActions,
    FilePath,
    Flag,
    FrequencyS,
    Gpus,
    Regex,
    SizeMib,
    TaskName,
    TimeS,
    VolumeMounts,
)

STRICT = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
DEFAULT = "default"
"""The resources of a task that names none."""


class Dataset(BaseModel):
    """`dataset:` of an input or an output."""

    model_config = STRICT

    name: DatasetName
    path: str | None = None
    regex: Regex | None = None
    localpath: str | None = None
    metadata: Any = None
    labels: Any = None


class Input(BaseModel):
    """What a task reads: another task's output, a dataset, or what is at a URL."""

    model_config = STRICT

    task: TaskName | None = None
    dataset: Dataset | None = None
    url: str | None = None
    regex: Regex | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Input:
        _require_single(task=self.task, dataset=self.dataset, url=self.url)
        return self


class Output(BaseModel):
    """Where a task's output is kept."""

    model_config = STRICT

    dataset: Dataset | None = None
    url: str | None = None
    regex: Regex | None = None
    update_dataset: Any = None

    @model_validator(mode="after")
    def _has_one_place(self) -> Output:
        _require_single(dataset=self.dataset, url=self.url, update_dataset=self.update_dataset)
        return self


class CheckpointSpec(BaseModel):
    """A folder that is copied to a URL while the task runs, and at its end."""

    model_config = STRICT

    path: str
    url: str
    frequency: FrequencyS
    regex: Regex | None = None


class File(BaseModel):
    """A file that a task finds at `path`."""

    model_config = STRICT

    path: FilePath
    contents: str | None = None
    localpath: str | None = None
    base64: Flag = False

    @model_validator(mode="after")
    def _has_content(self) -> File:
        _require_single(contents=self.contents, localpath=self.localpath)
        return self


class Task(BaseModel):
    """A program on one node."""

    model_config = STRICT

    name: TaskName
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    lead: Flag = False
    resource: str = DEFAULT
    environment: Mapping[str, str] = Field(default_factory=dict)
    credentials: Mapping[str, str | Mapping[str, str]] = Field(default_factory=dict)
    files: tuple[File, ...] = ()
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    exit_actions: ExitActions = Field(default=(), alias="exitActions")
    volume_mounts: VolumeMounts = Field(default=(), alias="volumeMounts")
    checkpoint: tuple[CheckpointSpec, ...] = ()
    kpis: Any = None
    privileged: Flag = False
    host_network: Flag = Field(default=False, alias="hostNetwork")
    download_type: Any = Field(default=None, alias="downloadType")
    cache_size: Any = Field(default=None, alias="cacheSize")

    @model_validator(mode="after")
    def _has_command(self) -> Task:
        if not self.command:
            raise ValueError("command: write at least a program")
        return self


class Group(BaseModel):
    """Tasks that start together; one of them is the lead."""

    model_config = STRICT

    name: TaskName
    tasks: tuple[Task, ...]
    barrier: Flag = True
    ignore_nonlead_status: Flag = Field(default=True, alias="ignoreNonleadStatus")

    @model_validator(mode="after")
    def _has_tasks(self) -> Group:
        if not self.tasks:
            raise ValueError("tasks: write at least one")
        return self

    @property
    def lead(self) -> Task:
        """The task marked `lead`; the first task if none is marked."""
        return next((task for task in self.tasks if task.lead), self.tasks[0])

    @property
    def has_barrier(self) -> bool:
        """Whether its tasks wait at the start until all of them are there."""
        return self.barrier and len(self.tasks) > 1


class Resources(BaseModel):
    """What one task needs of its node."""

    model_config = STRICT

    gpu: Gpus = 0
    cpu: Cpus = 0.0
    memory: SizeMib = 0
    storage: SizeMib = 0
    platform: Any = None
    topology: Any = None
    nodes_excluded: Any = Field(default=None, alias="nodesExcluded")


class Timeouts(BaseModel):
    """How long each task of a workflow may run, and how long a group may wait for nodes."""

    model_config = STRICT

    exec_timeout: TimeS | None = None
    queue_timeout: TimeS | None = None
    start_timeout: Any = None


class Workflow(BaseModel):
    """A workflow: it has `groups`, or `tasks` each of which is a group."""

    model_config = STRICT

    name: TaskName
    resources: Mapping[str, Resources] = Field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    tasks: tuple[Task, ...] = ()
    timeout: Timeouts = Timeouts()
    pool: Any = None
    backend: Any = None

    @model_validator(mode="after")
    def _has_tasks(self) -> Workflow:
        if bool(self.groups) == bool(self.tasks):
            raise ValueError("write groups or tasks" + (", not both" if self.groups else ""))
        return self

    def all_groups(self) -> tuple[Group, ...]:
        """The workflow's groups; each of its `tasks` is a group of the same name."""
        return self.groups or tuple(Group(name=task.name, tasks=(task,)) for task in self.tasks)

    def all_tasks(self) -> Iterator[Task]:
        """Each task, in the file's order."""
        return (task for group in self.all_groups() for task in group.tasks)

    def resources_of(self, task: Task) -> Resources:
        """What the task needs; nothing where the file says nothing."""
        return self.resources.get(task.resource, Resources())


class WorkflowFile(BaseModel):
    """The whole file."""

    model_config = STRICT

    workflow: Workflow
    version: str | None = None


def _require_single(**given: object) -> None:
    """Raises ValueError unless just one has a value."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        choice = " or ".join(given)
        raise ValueError(f"{' and '.join(names)} do not go together: write {choice}" if names else f"write {choice}")
