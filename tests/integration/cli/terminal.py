"""A terminal with a program in its foreground."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass
class Terminal:
    """A person's terminal with a clusterctl in its foreground."""

    master: int
    process: subprocess.Popen[bytes]

    def type(self, keys: bytes) -> None:
        """As if typed."""
        os.write(self.master, keys)

    def remote_pid(self) -> int:
        """The process id that the command on the node prints, once it is on the screen."""
        screen = self.screen_until(lambda seen: b"pid " in seen and b"\n" in seen.partition(b"pid ")[2])
        return int(screen.partition(b"pid ")[2].split()[0])

    def screen_until(self, is_there: Callable[[bytes], bool], *, timeout_s: float = 30) -> bytes:
        """What came to the screen until `is_there` is true of it; fails the test when that does not happen in time."""
        screen, ends_at = b"", time.monotonic() + timeout_s
        while not is_there(screen):
            assert time.monotonic() < ends_at, f"not on the screen: {screen!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                screen += os.read(self.master, 4096)
        return screen

    def rest(self, *, timeout_s: float = 30) -> str:
        """What came to the screen until the program ended."""
        screen, ends_at = b"", time.monotonic() + timeout_s
        while time.monotonic() < ends_at:
            try:
                if select.select([self.master], [], [], 0.2)[0]:
                    screen += os.read(self.master, 4096)
            except OSError:  # EIO: the last program at this terminal has ended (pty(7))
                self.process.wait(timeout=timeout_s)
                return screen.decode()
        raise AssertionError(f"the program goes on: {screen!r}")


@contextlib.contextmanager
def at_a_terminal(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[Terminal]:
    """A program in a session of its own, all three streams on its controlling terminal."""
    master, slave = pty.openpty()
    # Whoever runs the tests may be deaf to a hang-up (nohup), and children inherit that.
    deaf_to_nothing = ["env", "--default-signal=HUP", "setsid", "--ctty", *argv]
    process = subprocess.Popen(deaf_to_nothing, env=environ, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        os.close(master)
        process.wait(timeout=20)
