"""What a push and each boot start on a node that systemd runs: the watches over its end, by the newest code."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.facts import FactsError
from clusterctl_bootstrap.node.later import attend, run

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, pushed

RELOAD = ["systemctl", "daemon-reload"]


def restart(verb: str) -> list[str]:
    return ["systemctl", "restart", "--no-block", f"clusterctl-{verb}.service"]


def attended(root: Path) -> list[list[str]]:
    """The commands of a boot."""
    outside = FakeOutside()
    attend(root, outside)
    return outside.commands


@pytest.fixture
def slot_0(tmp_path: Path) -> Path:
    """Slot 0's machine, in a cluster that ends when it is idle for half an hour."""
    root = born(tmp_path, with_systemd=True, slot=0, rank=0)
    (root / "var/lib/clusterctl/cluster.json").write_text(pushed(idle_s=1800))
    return root


def test_systemd_reads_each_new_unit_before_it_starts_it(slot_0: Path) -> None:
    assert attended(slot_0) == [RELOAD, restart("watch"), RELOAD, restart("idle")]
    for verb in ("watch", "idle"):
        unit = (slot_0 / f"run/systemd/system/clusterctl-{verb}.service").read_text()
        assert f"ExecStart=/usr/local/bin/clusterctl-node {verb}\n" in unit


def test_a_push_starts_the_watches_once_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = born(tmp_path, with_systemd=True, slot=0, rank=0), FakeOutside()
    monkeypatch.setattr(sys, "stdin", io.StringIO(pushed(idle_s=1800)))
    assert run(["apply"], root, outside) == 0
    assert outside.commands[-4:] == [RELOAD, restart("watch"), RELOAD, restart("idle")]


def test_a_unit_that_is_there_is_only_started_anew_and_one_of_older_code_is_replaced(slot_0: Path) -> None:
    attended(slot_0)
    assert attended(slot_0) == [restart("watch"), restart("idle")]
    (slot_0 / "run/systemd/system/clusterctl-idle.service").write_text("of an older agent")
    assert attended(slot_0) == [restart("watch"), RELOAD, restart("idle")]


def test_a_node_that_does_not_judge_watches_its_own_end_alone(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, slot=2)
    (root / "var/lib/clusterctl/cluster.json").write_text(pushed(idle_s=1800))
    assert attended(root) == [RELOAD, restart("watch")]


def test_on_a_host_nothing_watches_for_an_end_that_does_not_come(tmp_path: Path) -> None:
    root = born(tmp_path, with_systemd=True, slot=2, host_user="ubuntu")
    assert attended(root) == []


def test_a_birth_certificate_that_cannot_be_read_keeps_no_watch_from_starting(tmp_path: Path) -> None:
    root, outside = born(tmp_path, with_systemd=True, slot=2), FakeOutside()
    (root / "var/lib/clusterctl/birth.json").write_text("{")
    with pytest.raises(FactsError):
        attend(root, outside)
    assert restart("watch") in outside.commands
