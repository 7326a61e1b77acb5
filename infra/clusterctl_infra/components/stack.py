"""What a stack's folder and its Pulumi config say, for a stack's program."""

from __future__ import annotations

import dataclasses
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pulumi.runtime import get_config_env
from pulumi.runtime.config import CONFIG

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.components.refusal import refused
from clusterctl_infra.config.flag_size import size_in_file, without_ended_size
from clusterctl_infra.config.load import load_cluster
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import NAMESPACE, StackSettings, stack_settings
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.home_path import home_path
from clusterctl_infra.names import PRICES_FILE
from clusterctl_infra.plan.sound_parts import problems_of_sound_parts


def load_stack(folder: Path) -> tuple[ClusterConfig, StackSettings]:
    """The folder's cluster.yaml with the stack's overrides, and the stack's settings. Raises PlanRefused."""
    file = folder / "cluster.yaml"
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    settings = current_settings()
    overrides = without_ended_size(settings.overrides, settings.nodes_over, in_file=size_in_file(file))
    settings = dataclasses.replace(settings, overrides=overrides, cluster_file=shown)
    try:
        catalog = load_catalog(home_path(os.environ) / PRICES_FILE)
        more = partial(problems_of_sound_parts, catalog=catalog, now=datetime.now(UTC))
        config = load_cluster(file, overrides=settings.overrides, more_problems=more, source=str(shown))
    except ConfigError as e:
        raise refused(e) from e
    return config.narrowed(settings.chosen, settings.block), settings


def current_settings() -> StackSettings:
    """The `clusterctl:` part of the config of the stack that runs now. Raises PlanRefused."""
    values = CONFIG.get() or get_config_env()
    own = {key.removeprefix(NAMESPACE): str(value) for key, value in values.items() if key.startswith(NAMESPACE)}
    try:
        return stack_settings(own)
    except ConfigError as e:
        raise refused(e) from e
