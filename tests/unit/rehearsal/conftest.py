"""A small region for every test of the rehearsal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import SmallRegion


@pytest.fixture
def world(tmp_path: Path) -> SmallRegion:
    """An empty region with AWS's usual limits."""
    return SmallRegion(tmp_path / "rehearsal")


@pytest.fixture
def client(world: SmallRegion) -> Client:
    """What a person's boto3 would be."""
    return Client(world)
