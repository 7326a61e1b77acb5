"""Runs a script with JAX's processes joined: `python3 jax_main.py SCRIPT ARGS…`, or `-m MODULE ARGS…`.

JAX reads the coordinator's address from the environment, but not the number of processes or which one this is; and if
one of its arguments is missing, it guesses by Slurm's variables and the like. So all of them are passed here, as
soon as the script has imported JAX: JAX reads JAX_ENABLE_X64, JAX_PLATFORMS and others while it is loaded, and a script
may set them before. When the script calls `jax.distributed.initialize` itself, that has happened already.

A process that fails ends at once. JAX's own end would first wait five minutes for all others, and then have all of them
abort, so that nobody learned which failed first (0.10.2, tried 2026-11-26).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import runpy
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Iterator, List, Mapping


def main(words: list[str]) -> None:
    """Runs the script as `__main__`, with its own arguments and its folder first on the path."""
    jax_ends: List[Callable[..., object]] = []
    failures: List[int] = []
    # Runs last of all: what the script registers comes first.
    atexit.register(end_at_once, failures)
    sys.meta_path.insert(0, JaxFinder(jax_ends))
    try:
        run(words)
    except BaseException as e:
        failures.append(exit_code(e))
        if any(failures):
            for end in jax_ends:
                atexit.unregister(end)
        raise


class JaxFinder(MetaPathFinder):
    """Finds `jax` where the others find it, and has it loaded by JoiningLoader; looking for it joins nothing."""

    def __init__(self, jax_ends: List[Callable[..., object]]) -> None:
        self.jax_ends = jax_ends
        self.process_id = os.getpid()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of `jax`; None for other modules, and in a process that was forked from this one: it is no rank."""
        if fullname != "jax" or os.getpid() != self.process_id:
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = JoiningLoader(spec.loader, self)
        return spec


class JoiningLoader(Loader):
    """Loads JAX as `loader` does, and joins the processes when that is done."""

    def __init__(self, loader: Any, finder: JaxFinder) -> None:  # importlib's own loaders share no type
        self.loader = loader
        self.finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that JAX's own loader makes."""
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Loads JAX and joins the processes. Raises what JAX raises."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        with noted_ends(self.finder.jax_ends):
            self.loader.exec_module(module)
            join(module.distributed)
        sys.meta_path.remove(self.finder)


@contextlib.contextmanager
def noted_ends(jax_ends: list[Callable[..., object]]) -> Iterator[None]:
    """Notes which functions JAX registers for its own end."""
    register = atexit.register

    def noting(function: Any, *others: Any, **values: Any) -> Any:
        if str(getattr(function, "__module__", "")).partition(".")[0] == "jax":
            jax_ends.append(function)
        return register(function, *others, **values)

    atexit.register = noting  # type: ignore[assignment]
    try:
        yield
    finally:
        atexit.register = register


def join(distributed: Any) -> None:  # jax.distributed, of which this file need not know the types
    """Joins this process to the others."""
    distributed.initialize(**arguments(os.environ))
    distributed.initialize = already_joined


def run(words: list[str]) -> None:
    """Runs the script or module, and raises what it raises."""
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(words)
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


def exit_code(error: BaseException) -> int:
    """The exit code of SystemExit, as Python has it; 1 for all other exceptions."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    return 1


def end_at_once(failures: list[int]) -> None:
    """Ends the process if there was a failure, with its exit code; then nothing runs after it."""
    if any(failures):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(failures[0])


def arguments(environment: Mapping[str, str]) -> dict[str, Any]:
    """All four arguments of `jax.distributed.initialize`, so that JAX detects none by itself."""
    return {
        "coordinator_address": environment["JAX_COORDINATOR_ADDRESS"],
        "num_processes": int(environment["JAX_NUM_PROCESSES"]),
        "process_id": int(environment["JAX_PROCESS_ID"]),
        "local_device_ids": [int(number) for number in environment["JAX_LOCAL_DEVICE_IDS"].split(",")],
    }


def already_joined(coordinator_address: str | None = None, *others: object, **values: object) -> None:
    """Takes the place of `jax.distributed.initialize`: nothing is left to do.

    Raises ValueError if the script wants another number of processes, or another id for this one.
    """
    ours = arguments(os.environ)
    wanted = {**dict(zip(("num_processes", "process_id"), others)), **values}
    for name in ("num_processes", "process_id"):
        if wanted.get(name) not in (None, ours[name]):
            raise ValueError(
                "jax.distributed.initialize(%s=%r): this job has %s=%r; leave it out, or use --launcher plain"
                % (name, wanted[name], name, ours[name])
            )


if __name__ == "__main__":
    main(sys.argv[1:])
