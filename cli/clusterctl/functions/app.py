"""Functions decorated with `@app.function`, which are called on a cluster's nodes as a job, or in this process."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack  # Any: values of a person's functions

from clusterctl_infra.errors import NotReached, UsageError
from clusterctl_infra.names import REHEARSAL_SUFFIX
from clusterctl_infra.outputs import Inventory

from clusterctl.functions.cluster_text import AppCluster
from clusterctl.functions.error_notes import notes_on_errors
from clusterctl.functions.kept_cluster import checked_access, is_set, kept_cluster, noting_half_made
from clusterctl.functions.needs import HINT, ClusterNeeds, merged, mounts_of
from clusterctl.functions.settings import (
    JOB,
    NOT_BUILT,
    OF_APP,
    ON_HOST,
    OWN,
    Arguments,
    FunctionArguments,
    FunctionSettings,
    function_settings,
    refuse_others,
)
from clusterctl.home import home_directory
from clusterctl.on_node.function import in_job
from clusterctl.on_node.job.processes import JOB_VARIABLE

if TYPE_CHECKING:
    from clusterctl.functions.task import Task

P = ParamSpec("P")
R = TypeVar("R")
YES, REHEARSE = "CLUSTERCTL_YES", "CLUSTERCTL_REHEARSE"


class App:
    """Functions that belong together, and their own cluster, on which they run unless they name another one."""

    def __init__(
        self,
        name: str,
        *,
        region: str | None = None,
        access: object = None,
        rehearse: bool | None = None,
        terminate_on_exit: bool = False,
        idle: str = "15m",
        **others: object,
    ) -> None:
        """Describes the app's own cluster, which is made when a function first needs it. Raises UsageError.

        `name`: the cluster's name, too. `region` and `access` (`"private"`, or a mapping as in cluster.yaml): what the
        app's own cluster needs. `rehearse`: everything runs on this computer and costs nothing; left out,
        `CLUSTERCTL_REHEARSE=1` decides. `terminate_on_exit`: the cluster ends with the block `with app.run():`, or
        after a call. `idle`: how long nothing may run on the cluster before it ends.
        """
        refuse_others(list(others), not_built=(), built=("name", *OF_APP))
        self.name = name
        self._region, self._idle = region, idle
        self._access = None if access is None else checked_access(access)
        self._is_rehearsal = is_set(REHEARSE, os.environ) if rehearse is None else rehearse
        self._ends_cluster = terminate_on_exit
        self._needs: dict[str, ClusterNeeds] = {}
        self._is_agreed = False
        self._has_used_own = False
        self._tasks: list[Task] | None = None

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return in_job.App, (self.name,)

    @property
    def stack(self) -> Path:
        """The stack folder of the app's own cluster, which `clusterctl plan`, `up` and `down` accept.

        It is written if it is missing or out of date; no cluster is made. Raises ConfigError with all that `plan`
        refuses.
        """
        with notes_on_errors():
            folder: Path = _own_cluster().stack_folder(self._cluster(), merged(self._needs))
        return folder

    def run(self, *, yes: bool = False) -> AppRun:
        """The context of `with app.run():`, whose end waits for all tasks; `terminate_on_exit` then ends the cluster.

        `yes` agrees to the price, as `CLUSTERCTL_YES=1` does; it holds without `with`, too.
        """
        self._is_agreed = self._is_agreed or yes
        return AppRun(self)

    @notes_on_errors()
    def function(self, **arguments: Unpack[FunctionArguments]) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]:
        """The decorator of a function that runs on nodes; `FunctionArguments` and docs/python.md have every argument.

        Raises UsageError for an argument that is wrong or not built yet, TypeError for an unknown one, before
        anything is started.
        """
        built = (*JOB, *OWN)
        others = [name for name in arguments if name not in built]
        refuse_others(others, not_built=NOT_BUILT, built=built, elsewhere=OF_APP)
        settings = function_settings(Arguments(**arguments), is_on_host=is_set(ON_HOST, os.environ))
        return lambda function: RemoteFunction(function, settings, self)

    def add(self, function: str, settings: FunctionSettings) -> None:
        """Adds a function's needs to those of the app's own cluster. Raises UsageError if they contradict another's."""
        if settings.cluster is None:
            needs = {**self._needs, function: settings.needs}
            merged(needs)
            self._needs = needs

    def inventory(self, settings: FunctionSettings, *, may_trust_kept: bool = True) -> Inventory:
        """The cluster that a function runs on; the app's own is brought up if need be. Raises ClusterctlError.

        `may_trust_kept` False: `up` looks at the app's own cluster, whatever this computer knows of it.
        """
        if settings.cluster is not None:
            is_suffixed = settings.cluster.endswith(REHEARSAL_SUFFIX) or not self._is_rehearsal
            name = settings.cluster if is_suffixed else settings.cluster + REHEARSAL_SUFFIX
            named: Inventory = _calling().chosen_cluster(name)
            return named
        cluster, needs = self._cluster(), merged(self._needs)
        inventory = kept_cluster(cluster, needs) if may_trust_kept else None
        if inventory is None:
            inventory = self._brought_up(cluster, needs)
        self._has_used_own = True
        return inventory

    def _brought_up(self, cluster: AppCluster, needs: ClusterNeeds) -> Inventory:
        """Brings the app's own cluster up.

        If that fails or is stopped half-way, what was made by then counts as used, so `terminate_on_exit` ends it.
        """
        is_agreed = self._is_agreed or is_set(YES, os.environ)
        with noting_half_made(cluster, home_directory(os.environ), self._note_own):
            made: Inventory = _own_cluster().brought_up(cluster, needs, is_agreed=is_agreed)
        return made

    def _note_own(self) -> None:
        self._has_used_own = True

    def refuse_spawn(self, function: str) -> None:
        """Raises UsageError if `terminate_on_exit` is set and no `with app.run():` is there to end the cluster."""
        if self._ends_cluster and self._tasks is None:
            message = "with terminate_on_exit=True nobody would end the cluster after a task that outlives the program"
            raise UsageError(f"{function}.spawn(): {message}: call it within `with app.run():`", hint=HINT)

    def has_begun(self, task: Task) -> None:
        """Remembers a task, so that the end of `with app.run():` waits for it."""
        if self._tasks is not None:
            self._tasks.append(task)

    def call_is_over(self) -> None:
        """Ends the app's own cluster after a call if `terminate_on_exit` is set and no `with app.run():` will do it."""
        if self._ends_cluster and self._tasks is None and self._has_used_own:
            self._has_used_own = False
            _own_cluster().end(self._cluster())

    def begin_run(self) -> None:
        """Begins to remember tasks. Raises UsageError within another `with app.run():`."""
        if self._tasks is not None:
            raise UsageError(f"with app.run() is within another one of {self.name}", hint=HINT)
        self._tasks = []

    def end_run(self, *, has_failed: bool) -> None:
        """Waits for the tasks, unless the block has failed, and ends the cluster if `terminate_on_exit` is set."""
        tasks, self._tasks = self._tasks or [], None
        try:
            for task in () if has_failed else tasks:
                task.wait()
        finally:
            self.call_is_over()

    def _cluster(self) -> AppCluster:
        """The app's own cluster, as the App describes it. Raises UsageError if the region or the access is missing."""
        missing = [f"{name}=" for name, value in (("region", self._region), ("access", self._access)) if value is None]
        if self._region is None or self._access is None:
            message = f"App({self.name!r}) has no {' and no '.join(missing)}, which a cluster of its own needs"
            raise UsageError(f"{message}; cluster= of a function names one that exists", hint=HINT)
        return AppCluster(
            name=self.name,
            region=self._region,
            access=self._access,
            idle=self._idle,
            is_rehearsal=self._is_rehearsal,
        )


class AppRun:
    """The context manager of `with app.run():`."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __enter__(self) -> App:
        self._app.begin_run()
        return self._app

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._app.end_run(has_failed=error is not None)


class RemoteFunction(Generic[P, R]):
    """A function that `remote` and `spawn` call on nodes, and `local` here."""

    def __init__(self, function: Callable[P, R], settings: FunctionSettings, app: App) -> None:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise UsageError(f"{function.__name__}: coroutines and generators are not built yet", hint=HINT)
        if "all_ranks" in inspect.signature(function).parameters:
            raise UsageError(f"{function.__name__}: all_ranks is an argument of remote(); rename yours", hint=HINT)
        self.__name__, self.__doc__, self.__wrapped__ = function.__name__, function.__doc__, function
        self._function = function
        self._settings = settings
        self._app = app
        app.add(function.__name__, settings)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return in_job.Function, (self._function,)

    def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function in this process and returns what it returns."""
        return self._function(*args, **kwargs)

    @notes_on_errors()
    def remote(self, *args: Any, all_ranks: bool = False, **kwargs: Any) -> Any:
        """Runs the function on nodes; returns rank 0's result, or with `all_ranks` a list of all ranks' results.

        Its output is shown as it comes. Ctrl-C cancels the task. Raises RemoteError, with the node, the rank and the
        traceback, if the function raises on a node; ClusterctlError if the task could not be started, or has no result.
        """
        content = self._content(args, kwargs)
        try:
            task = self._begun(content)
            return task.result_of(task.watched(task.shown), all_ranks=all_ranks)
        finally:
            self._app.call_is_over()

    @notes_on_errors()
    def spawn(self, *args: Any, **kwargs: Any) -> Task:
        """Starts the function on nodes and returns the task, which goes on after this program has ended.

        Raises ClusterctlError if nothing could be started.
        """
        content = self._content(args, kwargs)
        if self._settings.cluster is None:
            self._app.refuse_spawn(self.__name__)
        task = self._begun(content)
        self._app.has_begun(task)
        return task

    def map(self, *args: Any, **kwargs: Any) -> Any:
        """Not built yet: always raises UsageError."""
        raise UsageError("map() is not built yet: call spawn() for each input", hint=HINT)

    def with_mounts(self, mounts: Mapping[str, str]) -> RemoteFunction[P, R]:
        """This function, on a cluster that mounts these buckets as well: path → `s3://bucket/prefix`.

        Raises UsageError.
        """
        if self._settings.cluster is not None:
            raise UsageError("mounts= would describe a cluster of the app's own, and cluster= names one", hint=HINT)
        needs = replace(self._settings.needs, mounts=(*self._settings.needs.mounts, *mounts_of(mounts)))
        return RemoteFunction(self._function, replace(self._settings, needs=needs), self._app)

    def _build_task_config(self, command: str) -> TaskConfig:
        """This function, called without arguments, for `clusterctl.flow`, whose programs call the method by this name.

        Raises UsageError for a command.
        """
        if command:
            raise UsageError("_build_task_config: a command is not built yet: the function is what runs", hint=HINT)
        return TaskConfig(self)

    def _content(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        refuse_within_a_job(os.environ, self._function.__name__)
        _calling().registry_login(self._settings)  # before a cluster costs anything
        content: bytes = _calling().pickled_call(self._function, args, kwargs)
        return content

    def _begun(self, content: bytes) -> Task:
        calling = _calling()
        calling.secure_own_home()
        try:
            inventory = self._app.inventory(self._settings)
            first: Task = calling.started(self._function, self._settings, content, inventory)
        except NotReached:
            if self._settings.cluster is not None:
                raise
        else:
            return first
        # The cluster's idle rule or somebody else may have ended it: `up` looks, and makes what is missing.
        fresh = self._app.inventory(self._settings, may_trust_kept=False)
        second: Task = calling.started(self._function, self._settings, content, fresh)
        return second


class TaskConfig:
    """A function that `clusterctl.flow.Flow().run` starts."""

    def __init__(self, function: RemoteFunction[Any, Any]) -> None:
        self.function = function


def refuse_within_a_job(environ: Mapping[str, str], function: str) -> None:
    """Raises UsageError if this process is part of a job: a module that a job imports must not start another job."""
    if job := environ.get(JOB_VARIABLE):
        raise UsageError(f"{function}() was called on nodes within the job {job}; {in_job.GUARD}", hint=HINT)


def _calling() -> Any:
    """The module that starts jobs, loaded on use: SSH takes longer to load than everything else here."""
    return importlib.import_module("clusterctl.functions.calling")


def _own_cluster() -> Any:
    """The module that brings clusters up: loaded on use, as verbs are."""
    return importlib.import_module("clusterctl.functions.own_cluster")
