"""docs/env.md, made from the one table of variables."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl_bootstrap.environment_meaning import COUNTED, MEANINGS, OTHERS, PER_PROCESS, TITLES
from clusterctl_bootstrap.node.environment import Variable, slurm_variables, variables

EXAMPLE = {
    "cluster": "train",
    "cluster_id": "3f9c0a51b7de",
    "generation": 1,
    "slot": 2,
    "rank": 2,
    "nodes": 4,
    "gpus_per_node": 8,
    "slot_cidr": "10.0.8.0/21",
    "env": {},
}
COMPUTED = [
    Variable("NCCL_SOCKET_IFNAME", "=ens32", "NCCL"),
    Variable("GLOO_SOCKET_IFNAME", "ens32", "NCCL"),
    Variable("TP_SOCKET_IFNAME", "ens32", "NCCL"),
    Variable("NCCL_SOCKET_FAMILY", "AF_INET6", "NCCL"),
    Variable("NCCL_DEBUG", "WARN", "NCCL"),
    Variable("NCCL_NET", "AWS Libfabric", "NCCL"),
    Variable("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1", "NCCL"),
]
"""As on a machine that has everything: in truth no machine has both EFA and InfiniBand."""
HEAD = """\
# The environment of a node

What a training job finds set on every node. The values shown are those of slot 2 of four nodes with eight GPUs each;
`⏎` stands for a newline. {per_process} are not here: they differ from process to process, and a launcher such as
torchrun sets them.
"""
OTHERS_HEAD = """
## The same values under other systems' names

| variable | value | in | meaning | system |
|---|---|---|---|---|
"""
WHERE_TEXT = """
## Where it comes from

| where | how it gets the variables | which |
|---|---|---|
| a login shell | `/etc/profile.d/clusterctl.sh` reads `env` | all |
| a systemd unit | `EnvironmentFile=/etc/clusterctl/env` | all |
| a script anywhere | `set -a; . /etc/clusterctl/env; set +a` | all |
| a command over SSH | sshd reads `~ubuntu/.ssh/environment`, the text of `env.list`, each time | those in `env.list` |
| `clusterctl ssh --sudo` | root's shell reads `env` first | all |
| a container | `docker run --env-file /etc/clusterctl/env.list …` | those in `env.list` |
| a script written for Slurm | `set -a; . /etc/clusterctl/slurm.env; set +a` first | Slurm's |

| file on each node | what it has |
|---|---|
| `/etc/clusterctl/env` | every variable above, as `KEY='value'` lines that a shell and systemd both read |
| `/etc/clusterctl/env.list` | the same as raw `KEY=value` lines, without those whose value has a newline |
| `/etc/clusterctl/nccl.env` | of these, what NCCL, gloo and tensorpipe read; computed at each boot and new membership |
| `/etc/clusterctl/slurm.env` | Slurm's names, only for scripts that ask for them |
| `/etc/clusterctl/hostfile` | for MPI and DeepSpeed: `train-0 slots=8`, in the order of the ranks |
| `/etc/hosts` | every node's name, with its slot, and the name that Saturn Cloud would give it, with its rank |
| `/etc/ssh/ssh_config.d/clusterctl-ranks.conf` | on AWS, with `ranks: topology`: host keys for Saturn Cloud's names |

A new membership rewrites the files; sessions and programs that run already keep what they were given.

In a [job](jobs.md) on some of the nodes, Saturn Cloud's names still have the ranks of the whole cluster.
`SATURN_JOB_LEADER` is the name of the job's rank 0 there, or its address if the nodes have another membership than the
computer that started the job knows.

`scripts/docs` writes this page from the table in `bootstrap/clusterctl_bootstrap/node/environment.py`.
"""
SLURM_TEXT = """
## Slurm's names: `/etc/clusterctl/slurm.env` alone

They describe a Slurm step with one task on each node. They are not in `env`, because programs that find them take this
for a Slurm cluster and call `srun` or `scontrol`, which nodes do not have. JAX then assumes one GPU for each task: give
`jax.distributed.initialize` its `local_device_ids`.

| variable | value | meaning |
|---|---|---|
"""
OWN_TEXT = """
## Your own

Variables under `env:` in cluster.yaml come last in the file, below a comment that says so and names those that replace
a variable above. Each replaces that variable alone: with a `MASTER_ADDR` of your own, `FLOW_MAIN_IP` still names slot
0. Two change others as well: `TF_PORT` changes `TF_CONFIG`, and `NPROC_PER_NODE` changes `WORLD_SIZE`, the first ranks
and the hostfile.

Some are refused:

- Nodes that disagree about these never meet: {counted}, and every name beginning with `CLUSTERCTL_`.
- Launchers set these in each process: {per_process}.
- A value with a newline cannot reach SSH sessions and containers.
- A value with a code point that is no character, such as U+FFFE, would keep systemd from reading the whole file.

`clusterctl plan` warns about variables that no longer do anything, or do harm, such as `NCCL_TREE_THRESHOLD`.
"""


def environment_reference() -> str:
    """The page as Markdown."""
    rows = variables(EXAMPLE, computed=COMPUTED)
    sections = "".join(_section(title, (row for row in rows if row.dialect == key)) for key, title in TITLES.items())
    others = "".join(
        f"{_line(row, _files(row)).rstrip()} {title} |\n"
        for key, title in OTHERS.items()
        for row in rows
        if row.dialect == key
    )
    slurm = "".join(_line(row) for row in slurm_variables(EXAMPLE))
    per_process = _names(PER_PROCESS)
    own = OWN_TEXT.format(counted=_names(COUNTED), per_process=per_process)
    head = HEAD.format(per_process=per_process)
    return head + sections + OTHERS_HEAD + others + WHERE_TEXT + SLURM_TEXT + slurm + own


def _section(title: str, rows: Iterable[Variable]) -> str:
    lines = "".join(_line(row, _files(row)) for row in rows)
    return f"\n## {title}\n\n| variable | value | in | meaning |\n|---|---|---|---|\n{lines}"


def _files(row: Variable) -> str:
    return "`env`" if "\n" in row.value else "`env`, `env.list`"


def _line(row: Variable, *files: str) -> str:
    shown = row.value.replace("\n", " ⏎ ")
    return f"| {' | '.join([f'`{row.name}`', f'`{shown}`', *files, MEANINGS[row.name]])} |\n"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
