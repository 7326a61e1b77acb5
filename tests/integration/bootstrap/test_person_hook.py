"""A person's hook that cannot be started is named, and is in nobody's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.node import status
from clusterctl_bootstrap.node.spot_market import SpotNotices

from tests.unit.bootstrap.machine_that_ends import Ending

AT = "2027-01-15T08:00:00Z"


def test_a_recommendation_whose_hook_cannot_be_started_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(tmp_path)
    status.begin(ending.root)
    ending.deadline(3600)
    hook = ending.root / "etc/clusterctl/hooks/rebalance"
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))  # no sh: as where no process can be made
    ending.notices = SpotNotices(rebalance=AT, at=AT)
    assert "rebalance does not run: " in ending.look(3)
    assert ending.look(4) == ""
