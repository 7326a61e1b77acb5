"""A command that meets the process of another version: it runs by itself, and does not hang."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusterctl.ssh.broker.frames import ACCEPTED, EXIT, REFUSED, frame
from clusterctl.ssh.broker.place import write_stamp

SECRET = "hush-hush"
ARGV = ["ssh", "--node", "0", "--env", f"TOKEN={SECRET}", "true"]
CLIENT = (
    "import os, sys; from clusterctl.ssh.broker.client import done_warm; print(done_warm(sys.argv[1:], os.environ))"
)


class Listener:
    """Listens where the process would; gives each command the same answer, and keeps what it was sent."""

    def __init__(self, home: Path, answer: bytes, *, drips: bool = False, has_stamp: bool = True) -> None:
        folder = home / "warm"
        folder.mkdir(parents=True, mode=0o700)
        self._answer, self._drips = answer, drips
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / "socket"))
        self._socket.listen()
        if has_stamp:
            write_stamp(str(folder), (folder / "socket").stat().st_ino)
        self.ended = threading.Event()
        self.received = b""
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                if self.ended.is_set():
                    return
                self._speak(connection)

    def _speak(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        self.received += connection.recv(1 << 20)
        for start in range(0, len(self._answer), 1 if self._drips else 1 << 20):
            try:
                connection.sendall(self._answer[start : start + (1 if self._drips else 1 << 20)])
            except OSError:
                return  # the command has gone
            if self._drips and self.ended.wait(0.2):
                return
        try:
            while chunk := connection.recv(1 << 16):
                self.received += chunk
        except OSError:
            return

    def close(self, home: Path) -> None:
        self.ended.set()
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(home / "warm" / "socket"))
        self.thread.join()
        self._socket.close()


@contextmanager
def listening(home: Path, answer: bytes, *, drips: bool = False, has_stamp: bool = True) -> Iterator[Listener]:
    found = Listener(home, answer, drips=drips, has_stamp=has_stamp)
    try:
        yield found
    finally:
        found.close(home)


def left_to(home: Path) -> tuple[str, str]:
    """What `done_warm` returns, None or an exit code, as text; and its stderr."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, *ARGV],
        env={**os.environ, "CLUSTERCTL_HOME": str(home), "CLUSTERCTL_WARM": "yes"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(REFUSED),
        frame(b"v", b"2"),
        frame(ACCEPTED, b"255"),
        frame(ACCEPTED, b"255 1 new"),
        frame(ACCEPTED, b"yes no"),
        frame(ACCEPTED, bytes(1 << 16)),
        b"a\xff\xff\xff\xff",
        b"a\x00\x00",
    ],
)
def test_an_answer_of_another_protocol_leaves_the_command_to_itself(tmp_path: Path, answer: bytes) -> None:
    with listening(tmp_path, answer) as listener:
        assert left_to(tmp_path) == ("None", "")
    assert SECRET.encode() in listener.received
    assert not listener.received.endswith(frame(b"g"))  # no command was let begin


def test_an_answer_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    with listening(tmp_path, frame(ACCEPTED, bytes(1 << 20)), drips=True):
        assert left_to(tmp_path) == ("None", "")


def test_an_exit_code_that_is_none_is_a_process_that_was_lost(tmp_path: Path) -> None:
    with listening(tmp_path, frame(ACCEPTED, b"255 0") + frame(EXIT, b"-x")):
        code, stderr = left_to(tmp_path)
    assert code == "255"
    assert "has ended, and with it what ran" in stderr


@pytest.mark.parametrize("stamp", [None, "", "12 0.0.1 /old/clusterctl net:[1] mnt:[1]"])
def test_a_process_of_another_version_is_told_nothing(tmp_path: Path, stamp: str | None) -> None:
    with listening(tmp_path, frame(ACCEPTED, b"255 0"), has_stamp=False) as listener:
        if stamp is not None:
            (tmp_path / "warm" / "stamp").write_text(stamp)
        assert left_to(tmp_path) == ("None", "")
    assert listener.received == b""


def test_a_stamp_of_a_process_before_this_one_does_not_count(tmp_path: Path) -> None:
    with listening(tmp_path / "first", b""):
        stamp = (tmp_path / "first" / "warm" / "stamp").read_bytes()
    with listening(tmp_path, frame(ACCEPTED, b"255 0"), has_stamp=False) as listener:
        (tmp_path / "warm" / "stamp").write_bytes(stamp)
        assert left_to(tmp_path) == ("None", "")
    assert listener.received == b""
