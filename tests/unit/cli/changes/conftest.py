"""What tests of changes share."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.stack import Stack

from tests.unit.cli.changes.intent_cases import CLUSTER


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """A folder with the cluster.yaml of four nodes."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=True)
