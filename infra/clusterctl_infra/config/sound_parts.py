"""The rest of a configuration when everything wrong is taken out, so that further problems can be found."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from pydantic import ValidationError

from clusterctl_infra.config.document import Path, Tree
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import keys_at
from clusterctl_infra.nearest import nearest

Unsound = frozenset[tuple[str, ...]]
"""Paths of keys whose values are wrong, missing, or written under another name."""
STAND_INS: dict[str, Tree] = {"name": "x", "region": "us-west-2", "nodes": "1"}
"""Values for required fields that are missing or unsound, so that the others can still be looked at together."""
MACHINE = (("gpus",), ("instance_type",))
"""The fields to blame if neither or both are set."""


def unsound_paths(problems: Iterable[Path]) -> Unsound:
    """The keys that these paths of problems are about, with the ones that unknown keys probably mean."""
    found: set[tuple[str, ...]] = set()
    for path in problems:
        keys = _keys(path)
        found |= {keys, _nearest_known(keys)} if keys else set(MACHINE)
    return frozenset(found)


def is_sound(path: tuple[str, ...], unsound: Unsound) -> bool:
    """Whether neither the value at `path`, nor one around or inside it, is unsound."""
    return not any(path[: len(each)] == each or each[: len(path)] == path for each in unsound)


def sound_part(tree: dict[str, Tree], unsound: Unsound) -> ClusterConfig | None:
    """The configuration with defaults in the place of unsound values; None if that is not valid either."""
    left = copy.deepcopy(tree)
    for path in unsound:
        _take_out(left, path)
    try:
        return ClusterConfig.model_validate(STAND_INS | left)
    except ValidationError:
        return None


def _keys(path: Path) -> tuple[str, ...]:
    """The path as far as it goes through mappings: a single entry of a list cannot be taken out."""
    keys: list[str] = []
    for part in path:
        if isinstance(part, int):
            break
        keys.append(part)
    return tuple(keys)


def _nearest_known(keys: tuple[str, ...]) -> tuple[str, ...]:
    known = keys_at(ClusterConfig, keys[:-1])
    near = None if keys[-1] in known else nearest(keys[-1], known)
    return keys if near is None else (*keys[:-1], near)


def _take_out(tree: dict[str, Tree], path: tuple[str, ...]) -> None:
    *parents, leaf = path
    for parent in parents:
        inner = tree.get(parent)
        if not isinstance(inner, dict):
            return
        tree = inner
    tree.pop(leaf, None)
