"""Which driver an instance has, and what a person reads about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.auto import Choice, MachineKind
from clusterctl_rehearsal.region.machine_room import MachineRoom, another_home
from clusterctl_rehearsal.region.metadata import MetadataService
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.storage.bucket_service import BucketService

from tests.unit.rehearsal.fake_driver import FakeDriver


def choose(kind: MachineKind) -> Choice:
    return Choice(driver=FakeDriver("nspawn"), sentence=f"booted machines: {kind}")


@pytest.fixture
def room(tmp_path: Path) -> MachineRoom:
    return MachineRoom(
        folder=tmp_path,
        choose=choose,
        store=Store(tmp_path),
        files=lambda record: {},
        shares=dict,
        binds=dict,
        metadata=MetadataService(lambda network, address: None),
        buckets=BucketService(tmp_path),
    )


def test_after_a_restart_auto_is_still_said_to_be_the_best_that_works(room: MachineRoom) -> None:
    """Machines that live are adopted first, by the name of the driver that booted them."""
    adopted = room.driver("nspawn")
    assert room.choice("auto").sentence == "booted machines: auto"
    assert room.choice("nspawn").sentence == "booted machines: nspawn"
    assert room.driver("auto") is adopted


@pytest.mark.parametrize(
    ("nodes", "folder", "where"),
    [
        (["train-0", "train-1"], None, "train-0, train-1"),
        (["its network only"], Path("/home/ann/rehearsal/machines"), "its network only, in the home /home/ann"),
        ([], Path("/home/ann/rehearsal/machines"), "in the home /home/ann"),
    ],
)
def test_who_has_the_name_already_is_told(nodes: list[str], folder: Path | None, where: str) -> None:
    refused = another_home("train", nodes, folder)
    assert str(refused).startswith(f"machines of another home already use the name train on this computer ({where}):")
    assert refused.hint.endswith("clusterctl rehearse clean train")
