"""The commands with which a person goes on with a stack or a cluster, or ends it: complete, so that they work in any
folder. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from clusterctl_infra.names import HOSTS_SUFFIX, USUAL_STACK_NAME
from clusterctl_infra.outputs import Inventory

from clusterctl.text.instant import typed_instant


def edit(file: Path | str) -> str:
    """`${EDITOR:-nano} stacks/train/cluster.yaml`."""
    return f"${{EDITOR:-nano}} {shlex.quote(str(file))}"


def stack_words(directory: Path | str, *, stack_name: str, rehearse: bool) -> str:
    """`stacks/train --rehearse`: what follows `up`, `down` and `plan`; without its flags it would be another stack."""
    name = [] if stack_name == USUAL_STACK_NAME else ["--stack-name", stack_name]
    return shlex.join([str(directory), *(["--rehearse"] if rehearse else []), *name])


def up_again(inventory: Inventory) -> str:
    """`clusterctl up /home/ada/stacks/train`: with the folder, since `up` does not take a cluster's name."""
    if inventory.stack_dir is None:
        return "clusterctl up STACK"
    # A stack that is always rehearsed accepts the flag, too.
    words = stack_words(inventory.stack_dir, stack_name=inventory.stack_name, rehearse=inventory.rehearsal)
    return f"clusterctl up {words}"


def down_again(inventory: Inventory) -> str:
    """`clusterctl down --cluster train`."""
    return shlex.join(["clusterctl", "down", "--cluster", inventory.cluster])


def reap_cluster(inventory: Inventory) -> str:
    """`clusterctl reap --cluster 0123456789ab --region us-west-2`: ends a cluster without its stack, all but data."""
    return reap_id(inventory.cluster_id, region=inventory.region, rehearse=inventory.rehearsal)


def reap_id(cluster_id: str, *, region: str, rehearse: bool) -> str:
    """`clusterctl reap --cluster …` for a cluster of which only the id is known."""
    words = ["clusterctl", "reap", "--cluster", cluster_id, "--region", region, *(["--rehearse"] if rehearse else [])]
    return shlex.join(words)


def go_on_with(verb: str, inventory: Inventory) -> str:
    """`the last down was interrupted; next: clusterctl down --cluster train`."""
    again = down_again(inventory) if verb == "down" else up_again(inventory)
    return f"the last {verb} was interrupted; next: {again}"


def nodes_again(inventory: Inventory) -> str | None:
    """`clusterctl nodes --cluster train`; if there are no nodes, the command that makes them; None for machines of a
    file, which no command lists.
    """
    if not inventory.cluster_id:
        return None
    if not inventory.nodes:
        return up_again(inventory)
    return shlex.join(["clusterctl", "nodes", "--cluster", inventory.cluster])


def extend_again(cluster: str, *, until: datetime | None, budget_usd: str | None) -> str:
    """`clusterctl extend --until 2026-11-22T08:00:00Z --cluster train`: the same end, typed at any later time."""
    words = [] if until is None else ["--until", typed_instant(until)]
    words += [] if budget_usd is None else ["--budget", budget_usd]
    return shlex.join(["clusterctl", "extend", *words, "--cluster", cluster])


def replace_again(cluster: str, names: Mapping[int, str]) -> str:
    """`clusterctl replace --node 1 --cluster train  (then train-3 the same way)`; `names`: slot → node, one or more."""
    (first, _), *others = sorted(names.items())
    rest = f"  (then {', '.join(name for _, name in others)} the same way)" if others else ""
    return replace_slot(cluster, first) + rest


def replace_slot(cluster: str, slot: int) -> str:
    """`clusterctl replace --node 1 --cluster train`; for a host, which only its owner can repair, a look at it."""
    if cluster.endswith(HOSTS_SUFFIX):
        look = shlex.join(["clusterctl", "status", "--cluster", cluster])
        return f"{look}  (repair the host, or write another one in cluster.yaml)"
    return shlex.join(["clusterctl", "replace", "--node", str(slot), "--cluster", cluster])


def gpu_reset(cluster: str, slot: int, gpu: int | None) -> str:
    """The command that resets one GPU of a node; if it is not known which, with `ID` for the person to fill in."""
    return on_slot(cluster, slot, ["sudo", "nvidia-smi", "--gpu-reset", "-i", "ID" if gpu is None else str(gpu)])


def on_slot(cluster: str, slot: int, command: Sequence[str]) -> str:
    """`clusterctl ssh --cluster train --node 3 uname -r`."""
    return shlex.join(["clusterctl", "ssh", "--cluster", cluster, "--node", str(slot), *command])
