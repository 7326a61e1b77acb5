"""A region's server that lives and cannot be reached, as one that was started in a network namespace of its own."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

import pytest
from clusterctl_rehearsal.home import RehearsalHome
from clusterctl_rehearsal.verbs import main


@pytest.mark.parametrize("argv", [["list"], ["region", "stop"], ["fault", "stop-region"]])
def test_what_ends_a_region_that_does_not_answer_is_named(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    home = RehearsalHome(root=tmp_path / "rehearsal")
    home.root.mkdir()
    with home.lock_file.open("w") as held, socket.socket() as nobody_listens:
        fcntl.flock(held, fcntl.LOCK_EX)
        nobody_listens.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody_listens.getsockname()[1]}"
        row = {"endpoint": endpoint, "pid": os.getpid(), "checks_signatures": True}
        home.endpoint_file.write_text(json.dumps(row))
        home.token_file.write_text("token")
        assert main(argv) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("clusterctl rehearse: the rehearsed region does not answer (ConnectionRefusedError")
    assert stderr.endswith(f"\n  next: kill {os.getpid()}\n")
