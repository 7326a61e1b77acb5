"""Whatever becomes of one connection, the supervisor takes the others: a rank that nobody hears would be held up."""

from __future__ import annotations

import errno
import io
import os
import pwd
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from clusterctl.on_node.job.layout import Layout
from clusterctl.on_node.job.node_ranks import NodeRanks
from clusterctl.on_node.job.output_log import LauncherOutput, OutputLog, read_from
from clusterctl.on_node.job.output_socket import OutputReceiver

from tests.unit.cli.jobs.job_specs import spec

USER, STRANGER = 1000, 1001


class FakeConnection:
    """The connection of a rank's parent that has written something and ended."""

    def __init__(self, uid: int, output: bytes) -> None:
        self.is_closed = False
        self._uid, self._output = uid, output

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def setblocking(self, flag: bool) -> None:
        assert flag

    def getsockopt(self, *_: int) -> bytes:
        return struct.pack("3i", 1, self._uid, 1)

    def makefile(self, mode: str) -> IO[bytes]:
        return io.BytesIO(self._output)


class FakeDoor:
    """A socket whose calls of `accept` give or raise these in turn; after them nobody waits."""

    def __init__(self, *outcomes: FakeConnection | OSError) -> None:
        self._outcomes = list(outcomes)

    def accept(self) -> tuple[FakeConnection, str]:
        outcome = self._outcomes.pop(0) if self._outcomes else BlockingIOError()
        if isinstance(outcome, OSError):
            raise outcome
        return outcome, ""


def receiver(door: FakeDoor, followed: list[bytes]) -> OutputReceiver:
    def follow(stream: IO[bytes]) -> None:
        output = stream.read()
        if output == b"too much":
            raise RuntimeError("can't start new thread")
        followed.append(output)

    return OutputReceiver(door, USER, follow)  # type: ignore[arg-type]  # a fake with the only method that is called


def test_all_that_wait_are_taken_but_for_strangers() -> None:
    connections = [FakeConnection(USER, b"a"), FakeConnection(STRANGER, b"b"), FakeConnection(0, b"c")]
    followed: list[bytes] = []
    assert receiver(FakeDoor(*connections), followed).take_waiting()
    assert followed == [b"a", b"c"]
    assert all(connection.is_closed for connection in connections), "the stream alone keeps a connection open"


def test_after_a_time_without_free_files_the_next_connections_are_taken() -> None:
    followed: list[bytes] = []
    door = FakeDoor(FakeConnection(USER, b"a"), OSError(errno.EMFILE, "files"), FakeConnection(USER, b"b"))
    own = receiver(door, followed)
    assert not own.take_waiting(), "somebody still waits"
    assert own.take_waiting()
    assert followed == [b"a", b"b"]


def test_a_connection_for_which_no_thread_begins_is_closed_and_the_next_one_taken() -> None:
    followed: list[bytes] = []
    connections = [FakeConnection(USER, b"too much"), FakeConnection(USER, b"b")]
    assert receiver(FakeDoor(*connections), followed).take_waiting()
    assert connections[0].is_closed
    assert followed == [b"b"]


def test_the_end_of_the_output_is_waited_for_though_no_thread_began_for_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    output = LauncherOutput(OutputLog(tmp_path))
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        output.follow(io.BytesIO(b"words"))
    output.drain(60.0)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[NodeRanks]:
    """The ranks of mpirun's second node, which starts nothing itself; its folder's name is too long for a socket."""
    layout = Layout(tmp_path / ("x" * 108))
    layout.ranks("first", 1).mkdir(parents=True)
    me = pwd.getpwuid(os.getuid()).pw_name
    found = NodeRanks(layout, spec(user=me, launcher="mpi"), 1, tmp_path / "program")
    yield found
    found._log.close()  # a supervisor keeps it open to its own end


def test_a_job_runs_where_no_socket_can_be_opened_and_its_output_says_so(ranks: NodeRanks, tmp_path: Path) -> None:
    """As on a full disk: ranks' parents find no socket, and write to the launcher's stdout."""
    ranks.start()
    assert ranks.receiver is None
    rows = [line for _, line in read_from(Layout(tmp_path / ("x" * 108)).attempt("first", 1), (1, 0))]
    assert [row.split(" ", 2)[1:] for row in rows] == [
        ["-", "clusterctl: long lines of several ranks may mix: AF_UNIX path too long"]
    ]


def test_connections_that_still_wait_are_taken_before_the_end_of_the_output_is_waited_for(ranks: NodeRanks) -> None:
    """A rank that fails at once may have connected, written and ended before the thread at the socket has run."""
    followed: list[bytes] = []
    ranks.receiver = receiver(FakeDoor(FakeConnection(USER, b"no such program")), followed)
    ranks.drain(1.0)
    assert followed == [b"no such program"]
