"""Texts of cluster.yaml, read as `load_cluster` reads them, and the problems that a person is shown."""

from __future__ import annotations

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.load import NO_OVERRIDES, parse_cluster
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.errors import ConfigError

CATALOG = load_catalog()
SMALL = "name: train\nregion: us-west-2\nnodes: 4\ngpus: h100:8\n"


def parsed(text: str, overrides: dict[str, str] | None = None) -> ClusterConfig:
    return parse_cluster(text, source="cluster.yaml", catalog=CATALOG, overrides=overrides or NO_OVERRIDES)


def problems(text: str, overrides: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parsed(text, overrides)
    lines = list(caught.value.problems)
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    assert caught.value.message == f"cluster.yaml: {count}, nothing was changed"
    assert caught.value.exit_code == 2
    return lines
