"""Which launcher starts a job's ranks, from what was typed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.jobs.launcher_flags import (
    ACCELERATE_FLAGS,
    DEEPSPEED_FLAGS,
    HINT,
    MPI_FLAGS,
    TORCHRUN_FLAGS,
    Flags,
    split_options,
)
from clusterctl.on_node.job.launchers import (
    ACCELERATE,
    DEEPSPEED,
    DEEPSPEED_RUNNER,
    JAX,
    LAUNCHERS,
    MPI,
    PLAIN,
    TORCHRUN,
)

NOT_BUILT = ("horovodrun", "srun")
TYPED: Sequence[tuple[tuple[str, ...], str, Flags]] = (
    (("torchrun",), TORCHRUN, TORCHRUN_FLAGS),
    (("python3", "-m", "torch.distributed.run"), TORCHRUN, TORCHRUN_FLAGS),
    (("python", "-m", "torch.distributed.run"), TORCHRUN, TORCHRUN_FLAGS),
    (("accelerate", "launch"), ACCELERATE, ACCELERATE_FLAGS),
    (("python3", "-m", "accelerate.commands.launch"), ACCELERATE, ACCELERATE_FLAGS),
    (("python", "-m", "accelerate.commands.launch"), ACCELERATE, ACCELERATE_FLAGS),
    (("deepspeed",), DEEPSPEED_RUNNER, DEEPSPEED_FLAGS),
    (("mpirun",), MPI, MPI_FLAGS),
    (("mpiexec",), MPI, MPI_FLAGS),
)
"""(the words that a person types, the launcher they mean, the flags that it knows)."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The launcher that starts the ranks, the options that a person typed for it, and the command of one rank."""

    launcher: str
    options: tuple[str, ...] = ()
    command: tuple[str, ...]


def chosen_launch(words: Sequence[str], launcher: str | None) -> Launch:
    """What to start: by the typed launcher, else by --launcher, else torchrun for a .py and plain for the rest.

    `words`: the program and its arguments; `launcher`: of --launcher. Raises UsageError.
    """
    if not words or not words[0]:
        raise UsageError("no program was named: write it after --", hint=HINT)
    if launcher is not None and launcher not in LAUNCHERS:
        nearest = did_you_mean(launcher, LAUNCHERS) or f"; there is {', '.join(LAUNCHERS)}"
        raise UsageError(f"--launcher {launcher!r}: no such launcher{nearest}", hint=HINT)
    if words[0] in NOT_BUILT:
        raise UsageError(f"{words[0]} as a launcher is not built yet; there is {', '.join(LAUNCHERS)}", hint=HINT)
    found = _typed(words, launcher)
    if found is None:
        chosen = launcher or (TORCHRUN if words[0].endswith(".py") else PLAIN)
        found = Launch(launcher=chosen, command=tuple(words))
    _refuse_impossible(found)
    return found


def _typed(words: Sequence[str], launcher: str | None) -> Launch | None:
    for begin, meant, flags in TYPED:
        if tuple(words[: len(begin)]) != begin:
            continue
        # There are two launchers for DeepSpeed; a typed `deepspeed` means DeepSpeed's own.
        if launcher not in (None, meant) and (launcher, meant) != (DEEPSPEED, DEEPSPEED_RUNNER):
            raise UsageError(f"--launcher {launcher} and {begin[-1]} do not go together: leave one out", hint=HINT)
        options, command = split_options(" ".join(begin), words[len(begin) :], flags)
        return Launch(launcher=meant, options=options, command=command)
    if words[0] == "accelerate":
        raise UsageError(f"accelerate {' '.join(words[1:2])}: write: accelerate launch SCRIPT", hint=HINT)
    return None


def _refuse_impossible(launch: Launch) -> None:
    """Raises UsageError for a command that its launcher could not start, or would take for something else."""
    is_python = launch.command[0].endswith(".py") or launch.command[0].rsplit("/", 1)[-1].startswith("python")
    if launch.launcher == JAX and not is_python:
        raise UsageError(f"{launch.command[0]}: --launcher jax starts a Python script, or python3 -m NAME", hint=HINT)
    if launch.launcher == MPI and ":" in launch.command:
        raise UsageError("mpirun takes a lone : as the start of another program", hint=HINT)
