"""What a person types to go on with a cluster that is known here, or to end it, wherever they are."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from clusterctl_infra.outputs import Inventory


def up_again(inventory: Inventory) -> str:
    """`clusterctl up /home/ada/stacks/train`: the folder, since a cluster's name is none that `up` takes."""
    if inventory.stack_dir is None:
        return "clusterctl up STACK"
    # A stack that is always rehearsed takes the flag, too.
    flags = [*(["--rehearse"] if inventory.rehearsal else []), *_other_name(inventory)]
    return shlex.join(["clusterctl", "up", inventory.stack_dir, *flags])


def down_again(inventory: Inventory) -> str:
    """`clusterctl down --cluster train`."""
    return shlex.join(["clusterctl", "down", "--cluster", inventory.cluster])


def replace_again(cluster: str, names: Mapping[int, str]) -> str:
    """`clusterctl replace --node 1 --cluster train  (then train-3 the same way)`; `names`: slot → node, one or more."""
    (first, _), *others = sorted(names.items())
    rest = f"  (then {', '.join(name for _, name in others)} the same way)" if others else ""
    return shlex.join(["clusterctl", "replace", "--node", str(first), "--cluster", cluster]) + rest


def _other_name(inventory: Inventory) -> list[str]:
    return [] if inventory.stack_name == "dev" else ["--stack-name", inventory.stack_name]
