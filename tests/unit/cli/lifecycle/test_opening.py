"""How a change begins and ends, without an engine."""

from __future__ import annotations

import io
from pathlib import Path

from clusterctl.engine.stack import Stack
from clusterctl.home import Home
from clusterctl.lifecycle.opening import open_change
from clusterctl.output import Output


def test_each_change_ends_with_the_nodes_that_ssh_knows_written_anew(tmp_path: Path) -> None:
    home = Home(path=tmp_path / "home")
    home.path.mkdir()
    file = home.path / "ssh_config"
    file.write_text("Host old-0\n")
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)
    output = Output(stdout=io.BytesIO(), stderr=io.BytesIO())
    environ = {"PATH": "/usr/bin", "PULUMI_ACCESS_TOKEN": "none"}
    with open_change(
        "up", stack, name="train", region="us-west-2", rehearse=False, home=home, environ=environ, output=output
    ):
        assert "old-0" in file.read_text()
    assert "old-0" not in file.read_text()
