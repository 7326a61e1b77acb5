"""Fixtures for tests of changes: a stack's folder, and a function that makes changes of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.lifecycle.change import Change

from tests.unit.cli.lifecycle.intent_cases import CLUSTER
from tests.unit.cli.lifecycle.recorded_runs import runner_in


@pytest.fixture
def runner(tmp_path: Path) -> Callable[..., Change]:
    """Makes changes whose runs of the engine end as a test says."""
    return runner_in(tmp_path)


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """A folder with the cluster.yaml of four nodes."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=True)
