"""Clusters on booted machines, for tests of a cluster's way from up to down."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rehearsed import Rehearsed, rehearsed


@pytest.fixture
def booted(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nspawn nodes, not yet up. Needs root."""
    if os.geteuid() != 0:
        pytest.fail("these tests boot systemd-nspawn machines: run them as root")
    with rehearsed(tmp_path, machines="nspawn", nodes=2) as cluster:
        yield cluster


@pytest.fixture
def light(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of four nodes without public addresses, on process machines, not yet up."""
    with rehearsed(tmp_path, machines="process", nodes=4, access={"mode": "private"}) as cluster:
        yield cluster


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nodes whose machines are only written down, not yet up."""
    with rehearsed(tmp_path, machines="none", nodes=2) as cluster:
        yield cluster
