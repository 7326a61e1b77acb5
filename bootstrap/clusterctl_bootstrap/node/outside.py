"""What the agent asks of the machine around it, each question with a deadline of its own."""

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import List, Tuple

COMMAND_TIMEOUT_S = 30


class Outside:
    """What the agent wants of the machine that it runs on. No Protocol: a node would load `typing` only for that."""

    def has_address(self, address: str) -> bool:
        """Whether an interface of this machine carries the address: only then can it be bound."""
        raise NotImplementedError

    def ssh_banner(self, address: str, port: int = 22) -> str:
        """The first line of the SSH server, or why there is none."""
        raise NotImplementedError

    def run(self, argv: List[str], timeout_s: float = COMMAND_TIMEOUT_S) -> Tuple[int, str]:
        """Exit code and output of a command."""
        raise NotImplementedError

    def own(self, path: Path, user_id: int, group_id: int) -> None:
        """Gives a file to a user; without root it is the caller's already."""
        raise NotImplementedError

    def monotonic(self) -> float:
        """Seconds on a clock that only goes on."""
        raise NotImplementedError

    def sleep(self, seconds: float) -> None:
        """Sleeps for this long."""
        raise NotImplementedError


class ThisMachine(Outside):
    """The machine itself."""

    def has_address(self, address: str) -> bool:
        """Whether an interface of this machine carries the address: only then can it be bound."""
        with socket.socket(socket.getaddrinfo(address, 0)[0][0], socket.SOCK_DGRAM) as tried:
            try:
                tried.bind((address, 0))
            except OSError:
                return False
        return True

    def ssh_banner(self, address: str, port: int = 22) -> str:
        """The first line of the SSH server, or why there is none."""
        try:
            with socket.create_connection((address, port), timeout=2) as connection:
                return connection.recv(64).decode("ascii", "replace").strip() or "it hangs up"
        except OSError as e:
            return str(e)

    def run(self, argv: List[str], timeout_s: float = COMMAND_TIMEOUT_S) -> Tuple[int, str]:
        """Exit code and output of a command."""
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            return 127, str(e)
        return done.returncode, done.stdout.decode("utf-8", "replace").strip()

    def own(self, path: Path, user_id: int, group_id: int) -> None:
        """Gives a file to a user; without root it is the caller's already."""
        if os.geteuid() == 0:
            os.chown(str(path), user_id, group_id)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
