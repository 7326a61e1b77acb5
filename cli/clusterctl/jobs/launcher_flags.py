"""The flags of launchers: which ones clusterctl sets itself, and which ones are followed by a value. Pure.

Read in the `--help` of torch 2.2 to 2.15, accelerate 1.15, DeepSpeed 0.19, Open MPI 4.1 and 5.0, 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl_infra.errors import UsageError

from clusterctl.on_node.job.launchers import ACCELERATE, DEEPSPEED_RUNNER, TORCHRUN

HINT = "clusterctl run --help"
NODES = "the nodes are those of --node"
RANKS = "ranks follow the nodes"
NPROC = "write --nproc before the --"
MEETING = "the nodes meet by an address that is known"
FIRST_NODE = "it is the job's first node"
PORT = "a port is chosen that is free"
LOGS = "clusterctl keeps each rank's output: clusterctl job logs"
RESTARTS = "launchers count restarts on each node by themselves, and nodes disagree"
AS_IT_IS = "a word that does not end in .py is run as it is"
GPUS = "the job has the GPUs of its nodes"
CHANNEL = "clusterctl starts what it needs on the other nodes"


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The flags of one launcher; their names are written without leading dashes, and with - instead of _."""

    owned: Mapping[str, str]
    """Flag that clusterctl sets itself, or that makes no sense here → why."""
    switches: Sequence[str] = ()
    """Flags without a value."""
    values: Mapping[str, int] = field(default_factory=dict)
    """Flag → how many values follow it.

    If this is empty, a flag in no table is taken to have one value; if not, it is refused as unknown.
    """
    short: Mapping[str, str] = field(default_factory=dict)
    """`-m` → the long name of the flag."""


def _module(launcher: str) -> str:
    return f"write: --launcher {launcher} -- python3 -m NAME"


TORCHRUN_FLAGS = Flags(
    owned={
        "nnodes": NODES,
        "node-rank": RANKS,
        "nproc-per-node": NPROC,
        "rdzv-backend": MEETING,
        "rdzv-endpoint": MEETING,
        "rdzv-id": "it is the job and its attempt",
        "master-addr": FIRST_NODE,
        "master-port": PORT,
        "max-restarts": RESTARTS,
        "standalone": "the job may have several nodes",
        "local-addr": "it is the node's own",
        "log-dir": LOGS,
        "tee": LOGS,
        "redirects": LOGS,
        # Ranks do not write to torchrun, so these would change nothing.
        "local-ranks-filter": LOGS,
        "duplicate-stdout-filters": LOGS,
        "duplicate-stderr-filters": LOGS,
        "logs-specs": LOGS,
        "no-python": AS_IT_IS,
        "module": _module(TORCHRUN),
        "m": _module(TORCHRUN),
        "run-path": "write the script",
    },
    switches=("use-agent-store", "virtual-local-rank"),
    short={"-m": "m", "-r": "redirects", "-t": "tee"},
)
ACCELERATE_FLAGS = Flags(
    owned={
        "num-processes": NPROC,
        "num-machines": NODES,
        "machine-rank": RANKS,
        "main-process-ip": FIRST_NODE,
        "main-process-port": PORT,
        "rdzv-backend": MEETING,
        "rdzv-conf": MEETING,
        "same-network": "the nodes of a cluster have one network",
        "max-restarts": RESTARTS,
        "log-dir": LOGS,
        "tee": LOGS,
        "gpu-ids": GPUS,
        "deepspeed-multinode-launcher": CHANNEL,
        "deepspeed-hostfile": NODES,
        "deepspeed-exclusion-filter": NODES,
        "deepspeed-inclusion-filter": NODES,
        "no-python": AS_IT_IS,
        "module": _module(ACCELERATE),
        "cpu": "it would start one process; write Accelerator(cpu=True)",
        "tpu": "there are none",
    },
    switches=(
        "quiet",
        "multi-gpu",
        "use-deepspeed",
        "use-fsdp",
        "use-megatron-lm",
        "use-parallelism-config",
        "enable-cpu-affinity",
        "dynamo-use-fullgraph",
        "dynamo-use-dynamic",
        "dynamo-use-regional-compilation",
        "downcast-bf16",
        "fp8-use-autocast-during-eval",
        "debug",
    ),
    short={"-m": "module", "-q": "quiet"},
)
DEEPSPEED_FLAGS = Flags(
    owned={
        "hostfile": NODES,
        "include": NODES,
        "exclude": NODES,
        "num-nodes": NODES,
        "num-gpus": NPROC,
        "num-accelerators": NPROC,
        "node-rank": RANKS,
        "master-addr": FIRST_NODE,
        "master-port": PORT,
        "launcher": CHANNEL,
        "launcher-args": CHANNEL,
        "no-ssh": CHANNEL,
        "no-ssh-check": CHANNEL,
        "ssh-port": CHANNEL,
        "force-multi": CHANNEL,
        "enable-each-rank-log": LOGS,
        "autotuning": "it starts jobs of its own",
        "elastic-training": RESTARTS,
        "save-pid": "clusterctl knows its processes",
        "no-python": AS_IT_IS,
        "module": _module(DEEPSPEED_RUNNER),
    },
    switches=("no-local-rank", "bind-cores-to-rank", "quiet"),
    short={"-H": "hostfile", "-i": "include", "-e": "exclude", "-q": "quiet"},
)
MPI_FLAGS = Flags(
    owned={
        "np": NPROC,
        "n": NPROC,
        "c": NPROC,
        "npernode": NPROC,
        "hostfile": NODES,
        "machinefile": NODES,
        "default-hostfile": NODES,
        "host": NODES,
        "hosts": NODES,
        "rank-by": RANKS,
        "output-filename": LOGS,
        "tag-output": LOGS,
        "timestamp-output": LOGS,
        "wdir": "--workdir names the folder",
        "wd": "--workdir names the folder",
        "app": "the program is written after the flags",
        "path": "write the program's path",
        "allow-run-as-root": "that is set",
    },
    switches=("oversubscribe", "nooversubscribe", "report-bindings", "display-map", "display-allocation", "v", "q"),
    values={"mca": 2, "gmca": 2, "prtemca": 2, "x": 1, "map-by": 1, "bind-to": 1, "prefix": 1},
    short={"-H": "host"},
)


def split_options(tool: str, words: Sequence[str], flags: Flags) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the launcher's options, the program with its arguments): `words` split in two. Raises UsageError."""
    options: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, _ = flags.short.get(word, word.lstrip("-")).partition("=")
        name = name.replace("_", "-")
        refuse_owned(tool, word, name, flags)
        options.append(word)
        behind = 0 if name in flags.switches or equals else flags.values.get(name, 1)
        options += rest[:behind]
        del rest[:behind]
    if not rest:
        raise UsageError(f"{tool}: no program was named", hint=HINT)
    return tuple(options), tuple(rest)


def refuse_owned(tool: str, word: str, name: str, flags: Flags) -> None:
    """Raises UsageError for a flag that clusterctl sets itself, for a beginning of one, which argparse would take for
    it, and for an unknown flag of a launcher whose flags are all known."""
    known = name in flags.switches or name in flags.values
    may_be_shortened = not known and (word.startswith("--") or len(name) > 2)
    meant = [owned for owned in flags.owned if owned == name or (may_be_shortened and owned.startswith(name))]
    if meant:
        reason = flags.owned[name if name in meant else meant[0]]
        raise UsageError(f"{tool} {word}: clusterctl sets it itself; {reason}", hint=HINT)
    if flags.values and not known:
        allowed = ", ".join(f"--{each}" for each in (*flags.switches, *flags.values))
        raise UsageError(f"{tool} {word}: unknown flag; allowed here: {allowed}", hint=HINT)
