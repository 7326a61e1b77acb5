"""What tests of a cluster's way share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.lifecycle.recorded_runs import Runner, runner_in


@pytest.fixture
def runner(tmp_path: Path) -> Callable[..., Runner]:
    """Makes changes whose runs of the engine end as they are told."""
    return runner_in(tmp_path)
