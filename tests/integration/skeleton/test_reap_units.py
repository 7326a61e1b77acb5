"""systemd itself reads the example units."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.integration.rehearsed import ROOT, run


def test_systemd_takes_the_timer_and_its_service() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.fail("no systemd-analyze: scripts/system-packages installs it")
    units = [str(ROOT / "examples" / "reap" / f"clusterctl-reap.{kind}") for kind in ("service", "timer")]
    done = run(["systemd-analyze", "verify", *units], env=os.environ, cwd=ROOT, timeout_s=60)
    assert done.exit_code == 0, done.text
    assert "clusterctl-reap" not in done.text, done.text
