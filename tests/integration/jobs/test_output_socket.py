"""A launcher's ranks hand their output to the supervisor over a socket that every user of the node can reach."""

from __future__ import annotations

import io
import os
import pwd
import queue
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from clusterctl.on_node.job.output_socket import OUTPUT_VARIABLE, OutputReceiver, opened_door, rank_output

WAIT_S = 30


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: a socket's may have 107 bytes (unix(7))."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def connected_as(user_id: int, path: Path) -> socket.socket:
    """A connection whose other end sees this user: the kernel keeps who it was when it connected."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(WAIT_S)
    os.seteuid(user_id)
    try:
        connection.connect(str(path))
    finally:
        os.seteuid(0)
    return connection


def test_only_the_job_s_user_and_root_are_listened_to(folder: Path) -> None:
    assert os.geteuid() == 0, "needs root: connects as other users"
    job_user, stranger = pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("nobody").pw_uid
    heard = queue.Queue[bytes]()

    def follow(stream: IO[bytes]) -> None:
        heard.put(stream.readline())

    folder.chmod(0o711)
    path = folder / "output"
    OutputReceiver(opened_door(path), job_user, follow).start()
    with connected_as(stranger, path) as refused:
        assert refused.recv(1) == b"", "the stranger's connection is not closed"
    for user_id in (job_user, 0):
        with connected_as(user_id, path) as connection:
            connection.sendall(b"words\n")
            assert heard.get(timeout=WAIT_S) == b"words\n"
    assert heard.empty()


def test_output_goes_to_stdout_where_nobody_listens(folder: Path) -> None:
    stream = io.BytesIO()
    assert rank_output({OUTPUT_VARIABLE: str(folder / "gone")}, stream) is stream


def test_what_was_said_before_anybody_listened_is_not_lost(folder: Path) -> None:
    """The rank's parent has written all and ended: neither its bytes nor its user are forgotten by the kernel."""
    followed: list[bytes] = []
    with opened_door(folder / "output") as door:
        receiver = OutputReceiver(door, os.getuid(), lambda stream: followed.append(stream.read()))
        with rank_output({OUTPUT_VARIABLE: str(folder / "output")}, io.BytesIO()) as stream:
            stream.write(b"0\tlast words\n")
        assert receiver.take_waiting()
    assert followed == [b"0\tlast words\n"]
