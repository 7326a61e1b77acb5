"""A stack's Pulumi config overrides simple fields of cluster.yaml: `clusterctl:nodes` stands for `nodes:`."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from clusterctl_infra.config.document import Path, Tree
from clusterctl_infra.config.problems import ConfigProblem
from clusterctl_infra.nearest import did_you_mean

_TOP = (
    *("name", "region", "zone", "nodes", "gpus", "instance_type", "image", "placement"),
    *("capacity", "fabric", "imds", "ranks", "owner"),
)
_CAPS = ("price_usd_per_hour", "total_usd_per_hour", "budget_usd", "runtime", "dead_man", "idle")
OVERRIDES: Mapping[str, tuple[str, ...]] = {
    **{key: (key,) for key in _TOP},
    **{key: ("caps", key) for key in _CAPS},
    "mode": ("access", "mode"),
}
"""Config key → path in cluster.yaml. Lists and mappings are not overridden: they belong in the file."""
_EXCLUDES = {"gpus": "instance_type", "instance_type": "gpus"}
"""One of the two names the machine: overriding one takes the other out."""


def apply_overrides(tree: Mapping[str, Tree], given: Mapping[str, str]) -> tuple[dict[str, Tree], list[ConfigProblem]]:
    """The tree with the overrides in it, and a problem for each key that overrides nothing."""
    changed: dict[str, Tree] = copy.deepcopy(dict(tree))
    problems = []
    for key, text in given.items():
        path = OVERRIDES.get(key)
        if path is None:
            hint = did_you_mean(key, OVERRIDES)
            problems.append(ConfigProblem(path=(), message=f"config clusterctl:{key}: unknown key{hint}"))
            continue
        _set(changed, path, text)
        excluded = _EXCLUDES.get(key)
        if excluded is not None and excluded not in given:
            changed.pop(excluded, None)
    return changed, problems


def override_of(path: Path, given: Mapping[str, str]) -> str | None:
    """The override that gave the value at `path`, if one did."""
    return next((key for key in given if OVERRIDES.get(key) == path), None)


def _set(tree: dict[str, Tree], path: tuple[str, ...], text: str) -> None:
    *parents, leaf = path
    for parent in parents:
        inner = tree.get(parent)
        if inner is not None and not isinstance(inner, dict):
            return  # the file's own mistake there is reported
        if inner is None:
            inner = tree[parent] = {}
        tree = inner
    tree[leaf] = text
