"""The names that Flow's guide uses for functions on clusters: `from clusterctl.flow import Flow, FlowApp`.

A thin layer: every function belongs to an `App` of its own, which has the function's name, with hyphens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

from clusterctl_infra.errors import UsageError

import clusterctl
from clusterctl.functions.app import App, RemoteFunction, TaskConfig
from clusterctl.functions.needs import HINT
from clusterctl.functions.settings import FunctionArguments

if TYPE_CHECKING:
    from clusterctl.functions.task import Task

P = ParamSpec("P")
R = TypeVar("R")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class FlowApp:
    """Makes functions, each of which runs on a cluster of its own with the function's name."""

    def __init__(self, *, region: str | None = None, access: object = "private") -> None:
        """`region`: left out, `$AWS_REGION`, else `$AWS_DEFAULT_REGION`. `access`: left out, no way in from outside."""
        self._region = region or next((os.environ[name] for name in REGIONS if os.environ.get(name)), None)
        self._access = access

    def function(self, **arguments: Unpack[FunctionArguments]) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]:
        """The decorator, like `App.function`. It raises UsageError, also if no region is known."""

        def decorated(function: Callable[P, R]) -> RemoteFunction[P, R]:
            if self._region is None:
                raise UsageError("no region: FlowApp(region=…), or AWS_REGION", hint="export AWS_REGION=us-west-2")
            name = function.__name__.strip("_").lower().replace("_", "-")
            return App(name, region=self._region, access=self._access).function(**arguments)(function)

        return decorated


class Flow:
    """Starts functions, and finds their tasks."""

    def run(self, task: TaskConfig, *, wait: bool = False, mounts: Mapping[str, str] | None = None) -> Task:
        """Starts the function of `fn._build_task_config("")`, with these buckets mounted; returns its task.

        `wait`: returns only once the task has ended. Raises ClusterctlError.
        """
        if not isinstance(task, TaskConfig):
            raise UsageError(f"Flow().run({task!r}): give it what fn._build_task_config('') gives", hint=HINT)
        function = task.function if mounts is None else task.function.with_mounts(mounts)
        started = function.spawn()
        if wait:
            started.wait()
        return started

    def get_task(self, name: str) -> Task:
        """The task with this name, as `clusterctl.get_task` gives it."""
        return clusterctl.get_task(name)
