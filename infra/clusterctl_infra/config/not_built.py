"""What the model knows and nothing makes yet: refused by name, so that nothing is silently ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl_infra.config.document import Tree
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import ConfigProblem


@dataclass(frozen=True, kw_only=True)
class NotBuilt:
    """`asked` tells from the value at `path`, in a file's tree or in a model, whether it is wanted."""

    path: tuple[str, ...]
    asked: Callable[[object], bool]
    sentence: str


def not_built_yet(config: ClusterConfig | Mapping[str, Tree]) -> list[ConfigProblem]:
    """A problem for each thing that is asked for and not built."""
    return [
        ConfigProblem(path=row.path, message=f"not built yet: {row.sentence}")
        for row in NOT_BUILT
        if row.asked(_value_at(config, row.path))
    ]


def _value_at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
    return value


NOT_BUILT = (
    NotBuilt(
        path=("capacity_block",),
        asked=lambda value: isinstance(value, dict),
        sentence="buying a capacity block; clusterctl capacity blocks lists what AWS sells: buy one, write cr-…",
    ),
)
