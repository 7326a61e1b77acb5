"""Inventories and an output whose text can be read, for the tests of the command line."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from clusterctl.output import Output
from clusterctl_infra.outputs import Inventory

from tests.inventories import make_inventory

MakeInventory = Callable[..., Inventory]


@dataclass
class Screen:
    """What a person would see."""

    stdout: io.BytesIO = field(default_factory=io.BytesIO)
    stderr: io.BytesIO = field(default_factory=io.BytesIO)

    @property
    def output(self) -> Output:
        return Output(stdout=self.stdout, stderr=self.stderr)

    @property
    def out(self) -> str:
        return self.stdout.getvalue().decode()

    @property
    def err(self) -> str:
        return self.stderr.getvalue().decode()


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture(name="make_inventory")
def inventory_maker() -> MakeInventory:
    """A function that makes inventories, four p5 nodes unless told otherwise."""
    return make_inventory
