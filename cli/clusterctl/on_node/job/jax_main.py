"""Runs a script with JAX's processes joined: `python3 jax_main.py SCRIPT ARGS…`, or `-m MODULE ARGS…`.

JAX reads the coordinator's address from the environment, and neither the number of processes nor which one this is; and
where one of its arguments is missing it guesses by Slurm's variables and the like. So all of them are passed here,
before the script begins; when the script calls `jax.distributed.initialize` itself, that has happened already.

A process that fails ends at once. JAX's own end would first wait five minutes for all others, and then have all of them
abort, so that nobody learned which failed first (0.10.2, tried 2026-11-26).
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from typing import Any, List, Mapping


def main(distributed: Any, words: list[str]) -> None:  # jax.distributed, of which this file need not know the types
    """Runs the script as `__main__`, with its own arguments and its folder first on the path."""
    distributed.initialize(**arguments(os.environ))
    distributed.initialize = already_joined
    failures: List[int] = []
    # Runs after what the script registers, and before what JAX did when it was loaded.
    atexit.register(end_at_once, failures)
    try:
        run(words)
    except BaseException as e:
        failures.append(exit_code(e))
        raise


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
    """What Python ends with for it."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    return 1


def end_at_once(failures: list[int]) -> None:
    """Does not come back if there was a failure."""
    if any(failures):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(failures[0])


def arguments(environment: Mapping[str, str]) -> dict[str, Any]:
    """All four, so that JAX detects nothing."""
    return {
        "coordinator_address": environment["JAX_COORDINATOR_ADDRESS"],
        "num_processes": int(environment["JAX_NUM_PROCESSES"]),
        "process_id": int(environment["JAX_PROCESS_ID"]),
        "local_device_ids": [int(number) for number in environment["JAX_LOCAL_DEVICE_IDS"].split(",")],
    }


def already_joined(coordinator_address: str | None = None, *others: object, **values: object) -> None:
    """In the place of `jax.distributed.initialize`: nothing is left to do.

    Raises ValueError where the script wants another number of processes, or be another one of them.
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
    import jax  # type: ignore[import-not-found]  # the nodes' own

    main(jax.distributed, sys.argv[1:])
