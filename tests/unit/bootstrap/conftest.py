"""Fixtures of the node's tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def caught() -> Iterator[list[int]]:
    """The SIGUSR1 signals that this process, in place of a training, has received."""
    signals: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGUSR1, before)
