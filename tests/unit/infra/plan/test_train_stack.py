"""The example stack: it can be planned as it is, and with its storage, which is commented out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any  # a configuration as YAML gives it

import pytest
import yaml
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.planner import plan

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, IDENTITY, problems_of

TEXT = (Path(__file__).parents[4] / "stacks/train/cluster.yaml").read_text(encoding="utf-8")
HIDDEN = re.compile(r"^# (?=storage:|  )")
"""A line that is commented out; others are remarks."""


def shown(mounts: int) -> dict[str, Any]:
    """The file with so many of its mounts no longer commented out."""
    lines, seen = [], 0
    for line in TEXT.splitlines():
        seen += line.startswith("#   - mount")
        lines.append(HIDDEN.sub("", line) if mounts and seen <= mounts else line)
    document: dict[str, Any] = yaml.safe_load("\n".join(lines))
    return document


@pytest.mark.parametrize("mounts", [0, 1, 2])
def test_the_example_can_be_planned_line_by_line(mounts: int) -> None:
    config = ClusterConfig.model_validate(shown(mounts))
    made = plan(config, CATALOG, identity=IDENTITY, ledger=Ledger(), now=BORN)
    assert len(made.storage) == mounts
    assert problems_of(made) == {}
    assert (made.mount_clients is not None) == bool(mounts)


def test_no_mount_of_it_stays_hidden() -> None:
    assert TEXT.count("- mount:") == 2
