"""A proxy command as a socket: the way to nodes in a private network."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence

from clusterctl.ssh.connect_failures import TURNED_AWAY
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.shared_session_argv import own_session
from clusterctl.ssh.way_in import missing_programs

END_S = 1.0


class Proxy:
    """The running command; `socket` is its standard input and output."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Starts the command. Raises NodeFailure when there is no such program."""
        self.argv = tuple(argv)
        if (missing := missing_programs(own_session(self.argv), which=shutil.which)) is not None:
            raise NodeFailure("proxy", missing)
        self.socket, theirs = socket.socketpair()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the proxy; a pipe could fill up
        try:
            self._process = subprocess.Popen(
                self.argv,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._complaints,
                start_new_session=True,
            )
        except OSError as e:
            self.socket.close()
            self._complaints.close()
            raise NodeFailure("proxy", f"the proxy command {argv[0]} did not start: {e.strerror}") from e
        finally:
            theirs.close()

    def descriptors(self) -> set[int]:
        """The file descriptors that must stay open for the command to live."""
        return {self.socket.fileno(), self._complaints.fileno()}

    def end_descriptor(self) -> int | None:
        """A descriptor that can be read once the command has ended, for the caller to close; None if it has ended."""
        return os.pidfd_open(self._process.pid) if self._process.poll() is None else None

    def complaint(self, *, wait_s: float = 0.2) -> str | None:
        """The ended command's last line, or its last about being turned away; None if it runs after `wait_s`."""
        try:
            code = self._process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            return None
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        turned_away = [line for line in lines if line.startswith(TURNED_AWAY)]
        return (turned_away or lines or [f"exit {code}"])[-1]

    def close(self) -> None:
        """Ends the command and waits for it."""
        self.socket.close()
        try:
            self._process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=END_S)
        self._complaints.close()
