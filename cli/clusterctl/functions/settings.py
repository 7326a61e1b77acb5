"""What `@app.function` takes; what nobody has built yet is refused by name. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_infra.catalog.gpus import EXAMPLES, GpuSpec, GpuSpecUnreadable, parse_gpus
from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

HINT = "docs/python.md has what App and function take"
AUTO, MANUAL = "auto", "manual"
BUILT = (
    *("cluster", "num_instances", "gpu", "distributed_mode", "environment", "max_run_time_hours"),
    *("name", "workdir", "include"),
)
NOT_BUILT = (
    *("budget_usd", "env", "gpu_memory_gb", "image", "internode_interconnect", "intranode_interconnect"),
    *("max_price_per_hour", "mounts", "priority", "rehearse", "requirements", "retries", "secrets"),
    *("terminate_on_exit", "timeout", "volumes"),
)
APP_NOT_BUILT = ("access", "rehearse", "region", "terminate_on_exit")
SECONDS_AN_HOUR = 3600.0
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class FunctionSettings:
    """One function's."""

    cluster: str
    num_instances: int | None
    """The nodes; None: all."""
    gpus: GpuSpec | None
    """Of each node; None: whole nodes, whatever they have."""
    is_manual: bool
    """Once on each node, instead of once for each GPU."""
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None
    name: str | None
    """Of its tasks; None: the function's, and the time."""
    workdir: Path | None
    """The folder that goes along; None: the one of the function's module."""
    include: tuple[str, ...]
    """Files that look like secrets and are meant."""


def function_settings(
    *,
    cluster: str | None,
    num_instances: int | None,
    gpu: str | None,
    distributed_mode: str,
    environment: Mapping[str, str] | None,
    max_run_time_hours: float | None,
    name: str | None,
    workdir: Path | None,
    include: tuple[str, ...],
) -> FunctionSettings:
    """The settings, checked. Raises UsageError."""
    if not cluster:
        raise UsageError("cluster= is missing: a cluster of the app's own is not built yet", hint="clusterctl status")
    if num_instances is not None and (isinstance(num_instances, bool) or num_instances < 1):
        raise UsageError(f"num_instances={num_instances!r}: how many nodes, from 1", hint=HINT)
    if distributed_mode not in (AUTO, MANUAL):
        raise UsageError(f"distributed_mode={distributed_mode!r}: {AUTO!r} or {MANUAL!r}", hint=HINT)
    if max_run_time_hours is not None and not 0 < max_run_time_hours < float("inf"):
        raise UsageError(f"max_run_time_hours={max_run_time_hours!r}: hours, more than 0", hint=HINT)
    return FunctionSettings(
        cluster=cluster,
        num_instances=num_instances,
        gpus=None if gpu is None else _gpus(gpu),
        is_manual=distributed_mode == MANUAL,
        environment=_environment(environment or {}),
        timeout_s=None if max_run_time_hours is None else max_run_time_hours * SECONDS_AN_HOUR,
        name=name,
        workdir=workdir,
        include=include,
    )


def refuse_others(names: Mapping[str, object], *, not_built: tuple[str, ...], built: tuple[str, ...]) -> None:
    """Raises UsageError for an argument that is not built, TypeError for one that nobody knows."""
    for name in names:
        if name in not_built:
            raise UsageError(f"{name}= is not built yet", hint=HINT)
        raise TypeError(f"no argument {name!r}{did_you_mean(name, (*built, *not_built))}")


def _gpus(text: str) -> GpuSpec:
    try:
        return parse_gpus(text)
    except GpuSpecUnreadable as e:
        raise UsageError(f"gpu={text!r}: write it as {EXAMPLES}", hint=HINT) from e


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Raises UsageError for a name that is none, and for a value that no process could be given."""
    for name, value in environment.items():
        if VARIABLE.fullmatch(name) is None:
            raise UsageError(f"environment has {name!r}, which is no name of a variable", hint=HINT)
        if not isinstance(value, str):
            raise UsageError(f"environment[{name!r}] is {value!r}: write it as text", hint=HINT)
        if "\0" in value:
            raise UsageError(f"environment[{name!r}] has a NUL in it, which no variable can hold", hint=HINT)
    return dict(environment)
