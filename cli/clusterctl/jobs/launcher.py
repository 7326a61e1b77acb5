"""Which launcher starts a job's ranks, from what was typed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl_infra.errors import UsageError
from clusterctl_infra.nearest import did_you_mean

from clusterctl.on_node.job.launch import LAUNCHERS, PLAIN, TORCHRUN

NOT_BUILT = ("accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun", "srun")
HINT = "clusterctl run --help"
OWNED = {
    "nnodes": "the nodes are those of --node",
    "node-rank": "ranks follow the nodes",
    "nproc-per-node": "write --nproc before the --",
    "rdzv-backend": "the nodes meet by an address that is known",
    "rdzv-endpoint": "the nodes meet by an address that is known",
    "rdzv-id": "it is the job and its attempt",
    "master-addr": "it is the job's first node",
    "master-port": "a port is chosen that is free",
    "max-restarts": "torchrun counts restarts on each node by itself, and nodes disagree",
    "standalone": "the job may have several nodes",
    "local-addr": "it is the node's own",
    "log-dir": "clusterctl keeps each rank's output: clusterctl job logs",
    "tee": "clusterctl keeps each rank's output: clusterctl job logs",
    "redirects": "clusterctl keeps each rank's output: clusterctl job logs",
    "no-python": "a word that does not end in .py is run as it is",
    "module": "write: --launcher torchrun -- python3 -m NAME",
    "m": "write: --launcher torchrun -- python3 -m NAME",
    "run-path": "write the script",
}
"""Flags of torchrun that clusterctl sets or has no use for, each with why (torch 2.2 to 2.15)."""
SHORT = {"-m": "m", "-r": "redirects", "-t": "tee"}
SWITCHES = ("standalone", "no-python", "module", "m", "run-path", "use-agent-store", "virtual-local-rank")
"""Flags without a value behind them."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What starts the ranks, with options of a person's own, and one rank's words."""

    launcher: str
    options: tuple[str, ...] = ()
    command: tuple[str, ...]


def chosen_launch(words: Sequence[str], launcher: str | None) -> Launch:
    """The launcher that was named, else the one that is certain. Raises UsageError."""
    if not words or not words[0]:
        raise UsageError("no program was named: write it behind --", hint=HINT)
    if launcher is not None and launcher not in LAUNCHERS:
        nearest = did_you_mean(launcher, LAUNCHERS) or f"; there is {' and '.join(LAUNCHERS)}"
        raise UsageError(f"--launcher {launcher!r}: not built yet, or no launcher{nearest}", hint=HINT)
    if words[0] in NOT_BUILT:
        raise UsageError(f"{words[0]} as a launcher is not built yet; there is {' and '.join(LAUNCHERS)}", hint=HINT)
    if words[0] == TORCHRUN:
        if launcher == PLAIN:
            raise UsageError("--launcher plain and torchrun do not go together: leave one out", hint=HINT)
        return _torchrun(words[1:])
    chosen = launcher or (TORCHRUN if words[0].endswith(".py") else PLAIN)
    return Launch(launcher=chosen, command=tuple(words))


def _torchrun(words: Sequence[str]) -> Launch:
    options: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, _ = SHORT.get(word, word.lstrip("-")).partition("=")
        name = name.replace("_", "-")
        if name in OWNED:
            raise UsageError(f"torchrun {word}: clusterctl sees to that itself; {OWNED[name]}", hint=HINT)
        options.append(word)
        if not equals and name not in SWITCHES and rest:
            options.append(rest.pop(0))
    if not rest:
        raise UsageError("torchrun: no script was named", hint=HINT)
    return Launch(launcher=TORCHRUN, options=tuple(options), command=tuple(rest))
