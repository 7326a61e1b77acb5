"""A disk here fills up while a command reads or prints much: that is reported, and not taken for an end of input."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.waiting import comes_true

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

FULL = "clusterctl: {small} cannot be written: no space left on device ("
MUCH = 24 * 1024 * 1024


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Where a disk of 4 MiB is mounted for the command of a test."""
    if os.geteuid() != 0:
        pytest.fail("a small disk is mounted by root alone")
    folder = tmp_path / "small"
    folder.mkdir()
    return folder


def run_ssh(cluster: LoopbackCluster, small: Path, *words: str, stdin: bytes = b"", **environ: str) -> tuple[int, str]:
    """Exit code and stderr of a command whose temporary files are on the small disk."""
    mounted = f'mount -t tmpfs -o size=4m tmpfs {small} && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, "sh", *cluster.command("ssh", *words)],
        env={**cluster.environ, "TMPDIR": str(small), **environ},
        input=stdin,
        capture_output=True,
        timeout=60,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("node", ["0", "0-2"])
def test_input_that_cannot_be_kept_is_no_end_of_the_input(
    steady_cluster: LoopbackCluster, tmp_path: Path, small: Path, node: str
) -> None:
    """One node's share is kept, too, as long as the node does not take it."""
    ended = tmp_path / "ended"
    line = f"sleep 1; cat >/dev/null && touch {shlex.quote(str(ended))}"
    code, stderr = run_ssh(steady_cluster, small, "--node", node, line, stdin=bytes(MUCH))
    assert (code, FULL.format(small=small) in stderr) == (1, True), stderr
    assert f"next: df -h {small}" in stderr
    assert "Traceback" not in stderr
    assert not comes_true(ended.exists, within_s=2)


@pytest.mark.parametrize("flag", ["--gather", "--json"])
def test_output_that_cannot_be_kept_names_the_folder(steady_cluster: LoopbackCluster, small: Path, flag: str) -> None:
    code, stderr = run_ssh(steady_cluster, small, flag, f"head -c {MUCH} /dev/zero")
    assert (code, FULL.format(small=small) in stderr) == (1, True), stderr
    assert f"next: df -h {small}" in stderr
