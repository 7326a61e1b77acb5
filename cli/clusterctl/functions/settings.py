"""The arguments of `@app.function`, checked; those that are not built yet are refused by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict  # Any: what people write as a volume

from clusterctl_infra.catalog.gpus import GpuSpec
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.functions.needs import (
    HINT,
    ClusterNeeds,
    fabric_of,
    gpu_spec,
    link_of,
    mounts_of,
    refuse_priority,
    volumes_of,
)
from clusterctl.jobs.spec import IMAGE, checked_name
from clusterctl.jobs.variables import VARIABLE, value_problem

AUTO, MANUAL = "auto", "manual"
JOB = (
    *("cluster", "num_instances", "gpu", "distributed_mode", "environment", "max_run_time_hours"),
    *("name", "workdir", "include", "requirements", "registry_secret"),
)
OWN = (
    *("instance_type", "image", "volumes", "mounts", "max_price_per_hour", "budget_usd", "priority"),
    *("internode_interconnect", "intranode_interconnect"),
)
"""What describes a cluster of the app's own."""
NOT_BUILT = ("env", "gpu_memory_gb", "retries", "secrets", "timeout")
OF_APP = ("access", "idle", "region", "rehearse", "terminate_on_exit")
ON_HOST = "CLUSTERCTL_ON_HOST"
AMOUNTS = {"max_run_time_hours": "hours", "max_price_per_hour": "US dollars", "budget_usd": "US dollars"}
SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class FunctionSettings:
    """What the arguments of one function mean."""

    cluster: str | None
    """The name of the cluster that the function runs on; None: the app's own."""
    needs: ClusterNeeds
    """What the function needs of the app's own cluster."""
    num_instances: int | None
    """How many nodes it runs on; None: all."""
    gpus: GpuSpec | None
    """The GPUs of each node; None: whole nodes, whatever they have."""
    is_manual: bool
    """Whether it runs once on each node, instead of once for each GPU."""
    container: str | None
    """The image in whose containers it runs; None: it runs on the nodes themselves."""
    registry_secret: str | None = None
    """The name of a variable on this computer that holds USER:PASSWORD for the image's registry."""
    requirements: tuple[str, ...]
    """The lines of a requirements.txt for pip."""
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None
    name: str | None
    """The name of its tasks' jobs; None: the function's name and the time."""
    workdir: Path | None
    """The folder that is sent along; None: the folder of the function's module."""
    include: tuple[str, ...]
    """Files that are sent although they look like secrets."""


class FunctionArguments(TypedDict, total=False):
    """The arguments of `@app.function`; docs/python.md says more about each."""

    cluster: str | None
    """The name of a cluster that exists; left out: the app's own cluster."""
    num_instances: int | None
    """How many nodes the function runs on, at least 1."""
    gpu: str | None
    """The GPUs of each node, such as `h100:8`."""
    instance_type: str | None
    """An EC2 instance type, instead of `gpu`."""
    distributed_mode: str
    """`auto`: one rank for each GPU; `manual`: one for each node."""
    image: str | None
    """The machines' image, a name from the catalog or `ami-…`; or a container's image, in which the function runs."""
    volumes: Mapping[str, Mapping[str, Any]] | None
    """Path → `name`, `size_gb` (10⁹ bytes), `interface` (`file`)."""
    mounts: Mapping[str, str] | None
    """Path → `s3://bucket/prefix`, mounted read-only."""
    environment: Mapping[str, str] | None
    """Variables for the ranks."""
    registry_secret: str | None
    """The name of a variable on this computer that holds USER:PASSWORD for the registry of a container's image."""
    requirements: Sequence[str]
    """What pip installs beforehand, as in a requirements.txt."""
    max_price_per_hour: float | None
    """The most that one node may cost per hour, in US dollars."""
    max_run_time_hours: float | None
    """How long a task may run, and the app's own cluster."""
    budget_usd: float | None
    """The most that the whole cluster may cost, in US dollars."""
    priority: str | None
    """`med` or `high`."""
    internode_interconnect: str | None
    """`EFA`, `InfiniBand` or `Ethernet`."""
    intranode_interconnect: str | None
    """`SXM4`, `SXM5`, `NVLink` or `PCIe`."""
    name: str | None
    """The name of the function's tasks."""
    workdir: str | os.PathLike[str] | None
    """The folder that is sent along; left out: the folder of the function's module."""
    include: Sequence[str]
    """Files in it that are sent although they look like secrets."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of `@app.function`, unchecked."""

    cluster: str | None = None
    num_instances: int | None = None
    gpu: str | None = None
    instance_type: str | None = None
    distributed_mode: str = AUTO
    image: str | None = None
    registry_secret: str | None = None
    volumes: Mapping[str, Mapping[str, Any]] | None = None
    mounts: Mapping[str, str] | None = None
    environment: Mapping[str, str] | None = None
    requirements: Sequence[str] = ()
    max_price_per_hour: float | None = None
    max_run_time_hours: float | None = None
    budget_usd: float | None = None
    priority: str | None = None
    internode_interconnect: str | None = None
    intranode_interconnect: str | None = None
    name: str | None = None
    workdir: str | os.PathLike[str] | None = None
    include: Sequence[str] = ()


def function_settings(given: Arguments, *, is_on_host: bool) -> FunctionSettings:
    """What the arguments mean. `is_on_host`: a container's image is ignored. Raises UsageError."""
    if given.cluster == "":
        raise UsageError("cluster='' is no name of a cluster", hint="clusterctl status")
    if given.num_instances is not None and (isinstance(given.num_instances, bool) or given.num_instances < 1):
        raise UsageError(f"num_instances={given.num_instances!r}: how many nodes, from 1", hint=HINT)
    if given.distributed_mode not in (AUTO, MANUAL):
        raise UsageError(f"distributed_mode={given.distributed_mode!r}: {AUTO!r} or {MANUAL!r}", hint=HINT)
    for name, unit in AMOUNTS.items():
        value = getattr(given, name)
        if value is not None and (isinstance(value, bool) or not 0 < value < float("inf")):
            raise UsageError(f"{name}={value!r}: {unit}, more than 0", hint=HINT)
    container = None if is_on_host or is_machine_image(given.image) else given.image
    described = [name for name in OWN if getattr(given, name) is not None and (name != "image" or container is None)]
    if given.cluster is not None and described:
        message = f"{', '.join(f'{name}=' for name in described)} would describe a cluster of the app's own"
        raise UsageError(
            f"{message}, and cluster={given.cluster!r} names one that exists: give only one of them", hint=HINT
        )
    if given.registry_secret is not None and is_machine_image(given.image):
        message = f"registry_secret={given.registry_secret!r} is for the registry of a container's image"
        raise UsageError(f"{message}, and image={given.image!r} is none", hint=HINT)
    hours = given.max_run_time_hours
    return FunctionSettings(
        cluster=given.cluster,
        needs=_needs(given, has_container=container is not None),
        num_instances=given.num_instances if given.cluster is not None else (given.num_instances or 1),
        gpus=None if given.gpu is None else gpu_spec(given.gpu),
        container=None if container is None else _checked_container(container),
        registry_secret=given.registry_secret if container is not None else None,
        requirements=_requirements(given.requirements),
        is_manual=given.distributed_mode == MANUAL,
        environment=_environment(given.environment or {}),
        timeout_s=None if hours is None else hours * SECONDS_AN_HOUR,
        name=None if given.name is None else checked_name(given.name),
        workdir=None if given.workdir is None else Path(given.workdir),
        include=tuple(given.include),
    )


def is_machine_image(image: str | None) -> bool:
    """Whether the image is one for machines and not for containers; true if none is named."""
    return image is None or image.startswith("ami-") or image in load_catalog().images


def _checked_container(image: str) -> str:
    """The container's image. Raises UsageError for a name that is no image's, or has neither colon nor slash: it may be
    a misspelt machine image."""
    if IMAGE.fullmatch(image) is None or not (":" in image or "/" in image):
        machines = tuple(load_catalog().images)
        nearest = did_you_mean(image, machines)
        why = f"neither a machine image ({', '.join(machines)}, ami-…) nor a container's with its tag, as python:3.12"
        raise UsageError(f"image={image!r}: {why}{nearest}", hint=HINT)
    return image


def _requirements(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines for pip. Raises UsageError for anything that is not a list of single lines."""
    if isinstance(lines, str) or not all(isinstance(each, str) and each.strip() for each in lines):
        raise UsageError(f"requirements={lines!r}: write a list, as ['numpy==2.1', 'einops']", hint=HINT)
    if odd := [each for each in lines if len(each.splitlines()) > 1]:
        raise UsageError(f"requirements has {odd[0]!r}: write each requirement as a text of its own", hint=HINT)
    return tuple(lines)


def _needs(given: Arguments, *, has_container: bool) -> ClusterNeeds:
    nodes = given.num_instances or 1
    if given.priority is not None:
        refuse_priority(given.priority)
    is_machines = is_machine_image(given.image)
    word = given.internode_interconnect
    return ClusterNeeds(
        num_instances=nodes,
        gpu=given.gpu,
        instance_type=given.instance_type,
        image=given.image if is_machines else None,
        left_out_image=None if is_machines or has_container else given.image,
        fabric=None if word is None else fabric_of(word),
        fabric_word=word,
        link=None if given.intranode_interconnect is None else link_of(given.intranode_interconnect),
        priority=given.priority,
        max_price_per_hour=given.max_price_per_hour,
        max_run_time_hours=given.max_run_time_hours,
        budget_usd=given.budget_usd,
        volumes=volumes_of(given.volumes or {}, num_instances=nodes),
        mounts=mounts_of(given.mounts or {}),
    )


def refuse_others(
    names: Sequence[str], *, not_built: tuple[str, ...], built: tuple[str, ...], elsewhere: tuple[str, ...] = ()
) -> None:
    """Raises UsageError for an argument that is not built yet or belongs to App, TypeError for an unknown one."""
    for name in names:
        if name in elsewhere:
            raise UsageError(f"{name}= is an argument of App", hint=HINT)
        if name in not_built:
            raise UsageError(f"{name}= is not built yet", hint=HINT)
        raise TypeError(f"no argument {name!r}{did_you_mean(name, (*built, *not_built))}")


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables. Raises UsageError for an invalid name, and for a value that no variable can hold."""
    for name, value in environment.items():
        if VARIABLE.fullmatch(name) is None:
            raise UsageError(f"environment has {name!r}, which is not a valid variable name", hint=HINT)
        if not isinstance(value, str):
            raise UsageError(f"environment[{name!r}] is {value!r}: write it as text", hint=HINT)
        problem = value_problem(name, value)
        if problem is not None:
            raise UsageError(f"environment[{name!r}]: {problem}", hint=HINT)
    return dict(environment)
