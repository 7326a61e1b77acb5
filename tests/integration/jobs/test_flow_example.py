"""Flow's example as its README starts it: one command that brings up a rehearsed cluster of its own, and ends it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.integration.rehearsed import BIN, ROOT, alive_without_root, nothing_left, own_environment, resources_of, run

SCRIPT = ROOT / "examples" / "guides" / "flow" / "train.py"
NAME = "flow-example"


@pytest.mark.torch
def test_flow_s_example_brings_its_cluster_up_trains_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    env = {
        **own_environment(tmp_path),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{tmp_path / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "a test",
        "CLUSTERCTL_REHEARSE": "1",
    }
    app = tmp_path / "clusterctl-home" / "apps" / NAME
    app.mkdir(parents=True)
    (app / "rehearsal.yaml").write_text("machines: process\n")
    with nothing_left(NAME, env=env):
        done = run([sys.executable, str(SCRIPT)], env=env, cwd=tmp_path, timeout_s=300)
        assert done.exit_code == 0, done.text
        assert "{'ranks': 2, 'off': 0.0}" in done.stdout
        assert alive_without_root(NAME) == []
        assert resources_of(env) == []
