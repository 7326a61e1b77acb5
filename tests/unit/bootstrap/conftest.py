"""Fixtures of the node's tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def caught() -> Iterator[list[int]]:
    """The SIGUSR1 that this process, which plays a training, is sent."""
    signals: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGUSR1, before)
