"""A program that is started without some of its streams, or with some that take nothing."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.kept_connections import WARM

if TYPE_CHECKING:
    from tests.integration.cli.conftest import LoopbackCluster

CLOSED = "clusterctl: stdout cannot be written: Bad file descriptor\n"
FULL = "clusterctl: stdout cannot be written: No space left on device\n"
ON_ONE = ("ssh", "--node", "0", "echo here")
COMPLAINT = ("ssh", "--node", "0", "echo there >&2")


def ended(cluster: LoopbackCluster, words: tuple[str, ...], streams: str, **environ: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `clusterctl WORDS STREAMS`, as a shell starts it."""
    line = f"{shlex.join(cluster.command(*words))} {streams}"
    done = subprocess.run(
        ["bash", "-c", line],
        env={**cluster.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("nodes", "--json"),
        ("status",),
        ("cost",),
        ("--version",),
        ("ssh", "--gather", "echo here"),
        ("ssh", "--json", "true"),
        ("sweep", "--probe", "load"),
        ("logs", "/etc/hostname"),
        ("top",),
    ],
    ids=shlex.join,
)
def test_a_closed_stdout_is_a_failure_of_every_verb_that_has_something_to_say(
    steady_cluster: LoopbackCluster, words: tuple[str, ...]
) -> None:
    assert ended(steady_cluster, words, ">&-") == (1, "", CLOSED)


@pytest.mark.parametrize("words", [("nodes",), ("ssh", "--help"), ON_ONE, ("ssh", "echo here")], ids=shlex.join)
@pytest.mark.parametrize(
    ("streams", "stderr"), [(">&-", CLOSED), (">/dev/full", FULL), (">&- 2>&-", ""), ("<&- >&- 2>&-", "")]
)
def test_what_stdout_does_not_take_is_a_failure(
    steady_cluster: LoopbackCluster, words: tuple[str, ...], streams: str, stderr: str
) -> None:
    assert ended(steady_cluster, words, streams) == (1, "", stderr)


@pytest.mark.parametrize(
    ("words", "streams", "code", "came"),
    [
        (ON_ONE, "2>&-", 0, "here\n"),
        (ON_ONE, "<&-", 0, "here\n"),
        (ON_ONE, "2>/dev/full", 0, "here\n"),
        (COMPLAINT, "2>&-", 0, ""),
        (COMPLAINT, "2>/dev/full", 1, ""),
        (COMPLAINT, ">&- 2>&-", 0, ""),
        (("ssh", "--node", "0", "cat; echo here"), "<&-", 0, "here\n"),
        (("ssh", "--node", "0", "exit 7"), "<&- >&- 2>&-", 7, ""),
        (("ssh", "--node", "0", "echo there >&2; exit 7"), "2>/dev/full", 7, ""),
    ],
)
@pytest.mark.parametrize("is_warm", [False, True])
def test_streams_that_are_not_there_lose_nothing_else(
    steady_warm_cluster: LoopbackCluster, words: tuple[str, ...], streams: str, code: int, came: str, is_warm: bool
) -> None:
    assert ended(steady_warm_cluster, words, streams, **(WARM if is_warm else {})) == (code, came, "")


@pytest.mark.parametrize(("streams", "stderr"), [(">&-", CLOSED), (">&- 2>&-", "")])
def test_the_process_that_keeps_connections_is_told_of_no_other_stdout(
    steady_warm_cluster: LoopbackCluster, streams: str, stderr: str
) -> None:
    assert ended(steady_warm_cluster, ON_ONE, streams, **WARM) == (1, "", stderr)
