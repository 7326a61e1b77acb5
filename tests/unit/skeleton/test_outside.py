"""The rule for unit tests holds for the ways out that people use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

WAYS_OUT: dict[str, Callable[[], object]] = {
    "connect": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
    "bind": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "look-up": lambda: socket.getaddrinfo("localhost", 1),
    "process": lambda: subprocess.run([sys.executable, "-c", ""], check=True, timeout=9),
    "fork": os.fork,
    "shell": lambda: os.system("true"),  # noqa: S605 (this is what is refused)
    "sleep": lambda: time.sleep(0.01),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_unit_test_that_goes_outside_is_told_so(way: str) -> None:
    with pytest.raises(RuntimeError, match=r"move the test to tests/integration"):
        WAYS_OUT[way]()
