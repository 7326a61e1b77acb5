"""`clusterctl init`: the folder of a new stack, with a configuration that `plan` takes."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import yaml
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ConfigError, UsageError
from clusterctl_infra.names import USUAL_STACK_NAME, plain_name
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_plan import plan_stack, refuse_problems
from clusterctl.engine.stacks_near import CLUSTER_FILE
from clusterctl.home import Home
from clusterctl.text.quantities import usd

PROGRAM = '''\
"""The cluster of cluster.yaml, on AWS."""

from pathlib import Path

import pulumi
from clusterctl_infra.components.cluster import Cluster, ClusterArgs
from clusterctl_infra.components.stack import load_stack

config, settings = load_stack(Path(__file__).parent)
cluster = Cluster(config.name, ClusterArgs(config=config, settings=settings))
pulumi.export("inventory", cluster.inventory)
'''
FLAGS: Mapping[str, str] = {
    "name": "NAME",
    "region": "--region",
    "instance_type": "--type",
    "gpus": "--gpus",
    "nodes": "--nodes",
    "access.ssh_from": "--ssh-from",
    "caps.runtime": "--runtime",
    "caps.budget_usd": "--budget",
}
"""Path in cluster.yaml → the flag that sets it."""
NO_MACHINE = "gpus or instance_type is missing"
"""How the configuration's problem begins if no machine is named."""
EXAMPLE = "clusterctl init --help"


@dataclass(frozen=True, kw_only=True)
class NewStack:
    """What a person asked for; None: not given."""

    folder: Path
    """As it was typed; its last part is the name of the cluster and of the Pulumi project."""
    region: str | None
    instance_type: str | None = None
    gpus: str | None = None
    nodes: int = 2
    ssh_from: Sequence[str] = field(default=())
    """Empty: the nodes get no public address."""
    runtime: str = "8h"
    budget_usd: str | None = None

    @property
    def name(self) -> str:
        """The name of both the cluster and the Pulumi project."""
        return self.folder.expanduser().absolute().name


def write_new_stack(asked: NewStack, *, home: Home, now: datetime) -> None:
    """Writes the folder. Raises UsageError where something is there, ConfigError with all that `plan` refuses."""
    folder = asked.folder.expanduser()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{asked.folder} exists and is not an empty folder: nothing was written; take another name")
    known = next((name for name in home.cluster_names if plain_name(name) == asked.name), None)
    if known is not None:
        raise UsageError(
            f"a cluster called {known} is known on this computer: nothing was written; give this one another name",
            hint=f"clusterctl nodes --cluster {known}",
        )
    text = cluster_text(asked, price_usd_per_hour=_planned(asked, home=home, now=now).price.node_usd_per_hour)
    try:
        write_stack_files(folder, asked.name, text)
    except OSError as e:
        raise UsageError(f"{asked.folder} cannot be written: {e.strerror}") from e


def cluster_text(asked: NewStack, *, price_usd_per_hour: float | None) -> str:
    """The text of cluster.yaml; the cap on a node's price is a little above the list's, where that is known. Pure."""
    lines = [
        "# Every key is in docs/config.md; `clusterctl schema` gives your editor the same.",
        f"name: {_scalar(asked.name)}",
        *([] if asked.region is None else [f"region: {_scalar(asked.region)}"]),
        f"nodes: {asked.nodes}",
        *([] if asked.gpus is None else [f"gpus: {_scalar(asked.gpus)}"]),
        *([] if asked.instance_type is None else [f"instance_type: {_scalar(asked.instance_type)}"]),
        *_access(asked.ssh_from),
        "caps:",
    ]
    if price_usd_per_hour is not None:
        cap = f"  price_usd_per_hour: {price_cap(price_usd_per_hour):g}"
        lines.append(f"{cap}   # a node; the list says {usd(price_usd_per_hour)}")
    lines.append(f"  runtime: {_scalar(asked.runtime)}   # then the cluster ends by itself")
    if asked.budget_usd is not None:
        lines.append(f"  budget_usd: {_scalar(asked.budget_usd)}   # the whole cluster, over all its runs")
    return "\n".join(lines) + "\n"


def write_stack_files(folder: Path, name: str, cluster: str) -> None:
    """Writes Pulumi.yaml, __main__.py and cluster.yaml. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    # Without `plugins:`, which would name folders of a checkout: the engine finds both beside the program's Python.
    project = f"name: {_scalar(name)}\ndescription: GPU nodes on AWS\nruntime: python\n"
    for file, text in (("Pulumi.yaml", project), ("__main__.py", PROGRAM), (CLUSTER_FILE, cluster)):
        put_in_place(folder / file, text, mode=0o644, keeps_owner=True)


def price_cap(usd_per_hour: float) -> float:
    """The next whole dollar; below one dollar the next ten cents."""
    return float(math.ceil(usd_per_hour)) if usd_per_hour > 1 else math.ceil(usd_per_hour * 10) / 10


def by_flags(error: ConfigError) -> ConfigError:
    """The error with each problem under the flag that set the value: no file has been written. Pure."""
    problems = [f"  {_flag(path)}{rest}" for path, rest in (_split(problem) for problem in error.problems)]
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return ConfigError(f"{count}, nothing was written", problems=problems, hint=EXAMPLE)


def _planned(asked: NewStack, *, home: Home, now: datetime) -> ClusterPlan:
    """The plan of what would be written. Raises ConfigError with all problems."""
    with tempfile.TemporaryDirectory(prefix="clusterctl-init-") as place:
        folder = Path(place)
        write_stack_files(folder, asked.name, cluster_text(asked, price_usd_per_hour=None))
        stack = Stack(directory=folder, project=asked.name, name=USUAL_STACK_NAME, is_rehearsal_project=False)
        try:
            planned = plan_stack(stack, load_catalog(home.prices_file), home=home, now=now, rehearse=False)
            refuse_problems(planned.plan, stack, overrides=planned.overrides)
        except ConfigError as e:
            raise by_flags(e) from e
    return planned.plan


def _access(ssh_from: Sequence[str]) -> list[str]:
    if not ssh_from:
        return ["access: {mode: private}   # reached through AWS's Session Manager; nobody else reaches them"]
    networks = ", ".join(_scalar(cidr) for cidr in ssh_from)
    return ["access:", "  mode: public", f"  ssh_from: [{networks}]   # nobody else reaches port 22"]


def _scalar(text: str) -> str:
    """The text as YAML reads it again: plain where that is possible."""
    is_plain = re.fullmatch(r"[\w./:-]+", text) is not None and ": " not in text and not text.endswith(":")
    return text if is_plain else yaml.safe_dump(text, default_style='"', width=10_000).strip()


def _split(problem: str) -> tuple[str, str]:
    """The path of a problem, `caps.runtime`, and the text after it; the path is empty where no flag sets it."""
    text = re.sub(r"^\s*(line \d+\s+)?", "", problem)
    path, colon, rest = text.partition(": ")
    known = re.sub(r"\[\d+\]$", "", path)
    if text.startswith(NO_MACHINE):
        return "", "--type or --gpus: missing; one of them says which machines the nodes are"
    return (known, colon + rest) if known in FLAGS else ("", text)


def _flag(path: str) -> str:
    return FLAGS.get(path, path)
