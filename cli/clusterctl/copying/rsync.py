"""Runs rsync, several at a time, and ends all of them together with the command that started them."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence

from clusterctl_infra.errors import ClusterctlError

from clusterctl.copying.silence import SILENCE_MESSAGE
from clusterctl.system.other_programs import PACKAGES

SILENT_EXITS = (30, 35)
"""rsync's codes for a timeout (rsync(1), EXIT VALUES)."""
CONSEQUENCES = ("connection unexpectedly closed", "write error: Broken pipe")
"""What rsync says on one side if the other side has ended, for whatever reason."""
END_S = 5.0


class SyncFailed(Exception):
    """An rsync failed; the message is for the person."""


class SilentNode(SyncFailed):
    """Nothing was transferred for longer than is allowed."""


class Rsyncs:
    """The rsync processes that run now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._is_ended = False

    def run(self, argv: Sequence[str]) -> str:
        """Runs rsync and returns what it printed. Raises SyncFailed, and ClusterctlError if rsync is not installed."""
        with self._started(argv) as process:
            stdout, stderr = process.communicate()
        if process.returncode == 0:
            return stdout
        if process.returncode in SILENT_EXITS or SILENCE_MESSAGE in stderr:
            raise SilentNode
        raise SyncFailed(cause(stderr) or f"rsync ended with {process.returncode}")

    def end(self) -> None:
        """Ends all rsyncs that run, and lets no new one start."""
        with self._lock:
            self._is_ended = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                process.kill()

    @contextlib.contextmanager
    def _started(self, argv: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        with self._lock:
            if self._is_ended:
                raise SyncFailed("not started: the command was stopped before")
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
            except FileNotFoundError as e:
                hint = f"sudo apt-get install {PACKAGES['rsync']}"
                raise ClusterctlError("rsync is not installed on this computer", hint=hint) from e
            self._running.add(process)
        try:
            yield process
        finally:
            with self._lock:
                self._running.discard(process)


def cause(stderr: str) -> str:
    """The last line that is not merely a consequence of the other side's end; empty if stderr has none."""
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("rsync error:")]
    causes = [line for line in lines if not any(words in line for words in CONSEQUENCES)]
    return (causes or lines or [""])[-1]
