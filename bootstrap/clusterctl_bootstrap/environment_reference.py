"""docs/env.md, made from the one table of variables."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl_bootstrap.node.environment import OWN, Variable, is_fixed, variables

EXAMPLE = {
    "cluster": "train",
    "cluster_id": "3f9c0a51b7de",
    "generation": 1,
    "slot": 2,
    "rank": 2,
    "nodes": 4,
    "gpus_per_node": 8,
    "slot_cidr": "10.0.8.0/21",
}
HEAD = """\
# The environment of a node

Written by `scripts/docs` from the table in `bootstrap/clusterctl_bootstrap/node/environment.py`; a test fails where the
two differ.

`/etc/clusterctl/env` on each node has these variables as `KEY='value'` lines, and `/etc/clusterctl/env.list` the same
as raw `KEY=value` lines. Each is in both files, unless its value has a newline: the raw one cannot say that, and
`/var/log/clusterctl.log` names it. The values shown are those of slot 2 of four nodes with eight GPUs each.
`RANK` and `LOCAL_RANK` are not here: they differ from process to process, and a launcher such as torchrun sets them.

| where | how it gets them |
|---|---|
| a command over SSH | sshd reads `~ubuntu/.ssh/environment`, the text of `env.list`, at each session |
| a login shell | `/etc/profile.d/clusterctl.sh` reads `env` |
| a systemd unit | `EnvironmentFile=/etc/clusterctl/env` |
| a container | `docker run --env-file /etc/clusterctl/env.list …` |
| a script without any of these | `set -a; . /etc/clusterctl/env; set +a` |

A new membership rewrites the files; sessions and programs that run already keep what they were given.
"""
TITLES = {"torch": "torch and torchrun", "Flow": "Flow", "clusterctl": "clusterctl"}
OWN_TEXT = """
## Your own

What stands under `env:` in cluster.yaml comes last, below a comment that says so, and wins over the variables above.
Refused, since nodes that count differently never meet: {fixed}, and every name beginning with `CLUSTERCTL_`.
"""


def environment_reference() -> str:
    """The page as Markdown."""
    rows = variables(EXAMPLE)
    sections = "".join(_section(title, (row for row in rows if row.dialect == key)) for key, title in TITLES.items())
    fixed = ", ".join(f"`{row.name}`" for row in rows if is_fixed(row.name) and row.dialect not in (OWN, "clusterctl"))
    return HEAD + sections + OWN_TEXT.format(fixed=fixed)


def _section(title: str, rows: Iterable[Variable]) -> str:
    lines = "".join(f"| `{row.name}` | `{row.value}` | {row.meaning} |\n" for row in rows)
    return f"\n## {title}\n\n| variable | value | meaning |\n|---|---|---|\n{lines}"
