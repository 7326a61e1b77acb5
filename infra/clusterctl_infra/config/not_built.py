"""What the model knows and nothing makes yet: refused by name, so that nothing is silently ignored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_infra.config.choice import MULTI_ENTRY
from clusterctl_infra.config.document import Path
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.problems import ConfigProblem


@dataclass(frozen=True, kw_only=True)
class NotBuilt:
    """`asked` tells whether the configuration wants it."""

    path: Path
    asked: Callable[[ClusterConfig], bool]
    instead: str


def not_built_yet(config: ClusterConfig, unsound: frozenset[str] = frozenset()) -> list[ConfigProblem]:
    """A problem for each thing that is asked for and not built."""
    return [
        ConfigProblem(path=row.path, message=f"not built yet: {row.instead}")
        for row in NOT_BUILT
        if row.path[0] not in unsound and row.asked(config)
    ]


NOT_BUILT = (
    NotBuilt(
        path=("gpus",),
        asked=lambda config: isinstance(config.gpus, tuple),
        instead=MULTI_ENTRY,
    ),
    NotBuilt(
        path=("instance_type",),
        asked=lambda config: isinstance(config.instance_type, tuple),
        instead=MULTI_ENTRY,
    ),
    NotBuilt(
        path=("capacity",),
        asked=lambda config: config.capacity != "on-demand",
        instead="any capacity but on-demand",
    ),
    NotBuilt(
        path=("network", "adopt"),
        asked=lambda config: config.network.adopt is not None,
        instead="a network that exists; leave adopt out and the cluster gets its own",
    ),
    NotBuilt(
        path=("storage",),
        asked=lambda config: bool(config.storage),
        instead="storage; leave it out",
    ),
    NotBuilt(
        path=("caps", "idle"),
        asked=lambda config: config.caps.idle is not None,
        instead="an end after idling; runtime and budget_usd end the cluster",
    ),
    NotBuilt(
        path=("packages",),
        asked=lambda config: bool(config.packages),
        instead="packages; leave them out, or use an image that has them",
    ),
    NotBuilt(
        path=("scripts",),
        asked=lambda config: bool(config.scripts),
        instead="scripts; leave them out",
    ),
    NotBuilt(
        path=("ranks",),
        asked=lambda config: config.ranks != "slot",
        instead="ranks in the order of AWS's topology; ranks: slot",
    ),
)
