"""A bastion with no place left for a connection (MaxStartups), and one connection that asks for it again."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.conftest import LoopbackCluster, address
from tests.integration.cli.waiting import comes_true

TURNED_AWAY = "drop connection"
"""What sshd logs beyond its MaxStartups (OpenSSH 9.2, sshd.c, `drop_connection`; 2026-11-26)."""


def _copied(folder: Path) -> list[str]:
    (folder / "file").write_text("copied")
    return ["cp", str(folder / "file"), f"0:{folder}/copy"]


@pytest.mark.parametrize(
    ("words", "stdin", "stdout"),
    [
        (lambda folder: ["ssh", "--node", "0", "echo in"], b"", b"in\n"),
        (lambda folder: ["ssh", "--node", "0"], b"echo in\n", b"in\n"),
        (_copied, b"", None),
    ],
    ids=["command", "login", "cp"],
)
def test_one_connection_that_a_bastion_turns_away_is_asked_for_again(
    loopback_cluster: LoopbackCluster,
    tmp_path: Path,
    words: Callable[[Path], list[str]],
    stdin: bytes,
    stdout: bytes | None,
) -> None:
    port, log = loopback_cluster.behind_bastion(max_startups=1)
    place = socket.socket()

    def is_taken() -> bool:
        """Greeted, and never logged in: the one place is gone."""
        nonlocal place
        place.close()
        place = socket.create_connection((address(0), port))
        return place.recv(4) == b"SSH-"

    assert comes_true(is_taken)
    seen_before = log.read_text().count(TURNED_AWAY)
    argv, env, pipe = loopback_cluster.command(*words(tmp_path)), loopback_cluster.environ, subprocess.PIPE
    with place, subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        assert comes_true(lambda: log.read_text().count(TURNED_AWAY) > seen_before), log.read_text()
        place.close()
        out, error = running.communicate(stdin, timeout=30)
    assert running.returncode == 0, error
    assert out == stdout if stdout is not None else (tmp_path / "copy").read_text() == "copied"
