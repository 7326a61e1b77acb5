"""What a command and the process that keeps connections say to each other."""

from __future__ import annotations

import os
import socket
from typing import cast

import pytest
from clusterctl.ssh.broker.command_request import BrokerRequest, broker_request_from_bytes
from clusterctl.ssh.broker.frames import EXIT, MOST_BYTES, STDERR, STDOUT, Frames, frame
from clusterctl.ssh.broker.relayed_output import MOST_BYTES as MOST_HELD_BYTES
from clusterctl.ssh.broker.relayed_output import RelayedOutput

FRAMES = [(STDOUT, b"one\n"), (STDERR, b""), (STDOUT, bytes(range(256)) * 5), (EXIT, b"4")]


class Wire:
    """One end of a connection: what was sent, and what is still to come, piece by piece."""

    def __init__(self, *pieces: bytes | BaseException) -> None:
        self.sent: list[bytes] = []
        self._pieces = iter(pieces)

    def sendall(self, data: bytes) -> None:
        self.sent.append(data)

    def recv(self, size: int) -> bytes:
        piece = next(self._pieces, b"")
        if isinstance(piece, BaseException):
            raise piece
        return piece


def frames_of(*pieces: bytes | BaseException) -> Frames:
    return Frames(cast(socket.socket, Wire(*pieces)))


@pytest.mark.parametrize("size", [1, 2, 5, 7, 4096])
def test_frames_come_out_as_they_went_in_however_they_are_cut(size: int) -> None:
    data = b"".join(frame(kind, content) for kind, content in FRAMES)
    coming = frames_of(*(data[start : start + size] for start in range(0, len(data), size)))
    assert [coming.next() for _ in FRAMES] == FRAMES
    assert coming.next() is None


def test_an_interrupted_wait_loses_nothing_of_a_frame() -> None:
    data = frame(STDOUT, b"hello")
    coming = frames_of(data[:7], KeyboardInterrupt(), data[7:])
    with pytest.raises(KeyboardInterrupt):
        coming.next()
    assert coming.next() == (STDOUT, b"hello")


@pytest.mark.parametrize("end", [b"", ConnectionResetError(), TimeoutError()])
def test_a_frame_that_breaks_off_is_the_end(end: bytes | BaseException) -> None:
    assert frames_of(frame(STDOUT, b"hello")[:-1], end).next() is None


def test_a_length_that_nobody_sends_is_the_end() -> None:
    assert frames_of(frame(STDOUT)[:1] + (MOST_BYTES + 1).to_bytes(4, "big") + b"x").next() is None


def test_words_and_variables_arrive_as_they_were_typed() -> None:
    asked = BrokerRequest(
        ["--env", "A=b=c", "", "echo 'x\n'", "\udcff"],
        stamp="1 /here",
        folder="/home/ada/my work",
        encoding="utf-8",
        is_stdout_terminal=True,
        is_stderr_terminal=False,
        environ={"HOME": "/home/ada", "CLUSTERCTL_CLUSTER": "a=b", "AWS_SECRET_ACCESS_KEY": "hunter2"},
    )
    found = broker_request_from_bytes(asked.to_bytes())
    assert vars(found) == vars(asked)
    assert found.environ == {"HOME": "/home/ada", "CLUSTERCTL_CLUSTER": "a=b"}, "no secret that nobody needs"


def test_a_request_that_is_none_is_refused() -> None:
    for data in (b"", b"\0" * 3):
        with pytest.raises(ValueError, match="not enough values"):
            broker_request_from_bytes(data)
    with pytest.raises(ValueError, match="invalid literal"):
        broker_request_from_bytes(b"stamp\0/\0utf-8\0" + b"00\0many")


def test_output_goes_back_in_order_and_in_few_frames() -> None:
    wire = Wire()
    relayed = RelayedOutput(cast(socket.socket, wire))
    stdout, stderr = relayed.stream(STDOUT), relayed.stream(STDERR)
    for stream, text in ((stdout, b"a"), (stdout, b"b"), (stderr, b"c"), (stdout, b"d")):
        stream.write(text)
        stream.flush()
    assert wire.sent == []
    relayed.send()
    relayed.send()
    assert wire.sent == [frame(STDOUT, b"ab") + frame(STDERR, b"c") + frame(STDOUT, b"d")]


def test_much_output_does_not_wait_for_quiet() -> None:
    wire = Wire()
    stream = RelayedOutput(cast(socket.socket, wire)).stream(STDOUT)
    stream.write(bytes(MOST_HELD_BYTES))
    stream.flush()
    coming = frames_of(*wire.sent)
    assert coming.next() == (STDOUT, bytes(MOST_HELD_BYTES))


def test_output_that_comes_as_one_goes_in_frames_that_are_taken() -> None:
    wire = Wire()
    data = os.urandom(1024) * (MOST_BYTES // 1024 + 1)
    RelayedOutput(cast(socket.socket, wire)).stream(STDOUT).write(data)
    coming = frames_of(*wire.sent)
    assert b"".join(came[1] for came in iter(coming.next, None)) == data
