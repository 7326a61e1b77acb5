"""Unit tests open no socket, start no process and do not sleep: whoever tries is told so.

An audit hook sees every way there is, from C code as well, which replacing functions would not.
It cannot be taken out again, so it is put in once and listens only while a unit test runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

FORBIDDEN = {
    "socket.connect": "reached for the network",
    "socket.bind": "opened a socket",
    "socket.sendto": "reached for the network",
    "socket.getaddrinfo": "looked up a host name",
    "socket.gethostbyname": "looked up a host name",
    "subprocess.Popen": "started a process",
    "os.fork": "started a process",
    "os.forkpty": "started a process",
    "os.posix_spawn": "started a process",
    "os.exec": "replaced the process",
    "os.system": "started a shell",
}


class UnitTestWentOutside(RuntimeError):
    """A unit test did what only tests in tests/integration may."""


class OutsideWatch:
    """The audit hook; it speaks up only while `is_watching`."""

    def __init__(self) -> None:
        self.is_watching = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_watching or event not in FORBIDDEN:
            return
        raise refusal(FORBIDDEN[event], event, *arguments)


def refusal(deed: str, name: str, *arguments: object) -> UnitTestWentOutside:
    shown = ", ".join(repr(argument)[:80] for argument in arguments)
    advice = "Give the code a fake, or move the test to tests/integration"
    return UnitTestWentOutside(f"a unit test {deed}: {name}({shown}). {advice}")


def refuse_to_sleep(seconds: float) -> None:
    """In place of time.sleep, which tells audit hooks nothing before Python 3.13."""
    raise refusal("slept", "time.sleep", seconds)


@pytest.fixture(scope="session")
def outside_watch() -> OutsideWatch:
    watch = OutsideWatch()
    sys.addaudithook(watch)
    return watch


@pytest.fixture(autouse=True)
def nothing_outside(outside_watch: OutsideWatch, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Holds for every test in this folder."""
    monkeypatch.setattr(time, "sleep", refuse_to_sleep)
    outside_watch.is_watching = True
    yield
    outside_watch.is_watching = False
