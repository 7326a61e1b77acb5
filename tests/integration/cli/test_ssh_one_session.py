"""A server that allows one session for a connection: what needs a second one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.integration.cli.conftest import LoopbackCluster

FIRST_ALONE = "#!/bin/sh\nmkdir {folder}/first 2>/dev/null && exec nc $1 $2\nexec sleep 60\n"
TIMEOUT_S = 2


def test_a_commands_timeout_counts_while_its_watcher_is_waited_for(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    loopback_cluster.stop(0)
    loopback_cluster.start(0, more="MaxSessions 1\n")
    way = tmp_path / "way"
    way.write_text(FIRST_ALONE.format(folder=tmp_path))
    way.chmod(0o755)
    loopback_cluster.by_proxy(str(way), "{host}", "{port}")
    reader, writer = os.pipe()
    argv = loopback_cluster.command("ssh", "--node", "0", "--timeout", f"{TIMEOUT_S}s", "cat; sleep 300")
    with os.fdopen(writer, "wb"), os.fdopen(reader, "rb") as stdin:
        done = subprocess.run(argv, stdin=stdin, capture_output=True, timeout=30, env=loopback_cluster.environ)
    assert b"train-0 allows one session at a time, and no second connection" in done.stderr
    assert b"the command is ended there within 45 s" in done.stderr


def test_cp_which_needs_a_second_session_says_what_refuses_it(
    loopback_cluster: LoopbackCluster, tmp_path: Path
) -> None:
    loopback_cluster.stop(0)
    loopback_cluster.start(0, more="MaxSessions 1\n")
    (tmp_path / "file").write_text("short")
    done = loopback_cluster.run("cp", str(tmp_path / "file"), "0:file")
    assert done.returncode != 0
    assert (
        b"train-0 refused a session (Connect failed): does its sshd allow one for a connection (MaxSessions)?"
        in done.stderr
    )
