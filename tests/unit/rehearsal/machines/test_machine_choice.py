"""Which driver is taken, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.auto import choose, first_usable
from clusterctl_rehearsal.machines.driver import MachineDriver, MachineError, MachineSpec, MachineState
from clusterctl_rehearsal.machines.process import refusal
from clusterctl_rehearsal.machines.records import RecordsDriver

SPEC = MachineSpec(
    cluster="train",
    node="train-0",
    instance_id="i-0",
    private_ip="10.0.8.0",
    prefix_length=20,
    gateway_ip="10.0.0.1",
    mac="02:00:00:00:00:00",
    user_data=b"",
)


class FakeDriver(RecordsDriver):
    def __init__(self, name: str, problem: str | None) -> None:
        super().__init__()
        self._name, self._problem = name, problem

    @property
    def name(self) -> str:
        return self._name

    def unusable(self) -> str | None:
        return self._problem


def test_the_best_driver_that_works_is_taken() -> None:
    drivers: list[MachineDriver] = [FakeDriver("nspawn", None), FakeDriver("process", None)]
    choice = first_usable(drivers)
    assert choice.driver.name == "nspawn"
    assert "the best that works here" in choice.sentence


def test_the_sentence_says_why_a_better_driver_was_not_taken() -> None:
    choice = first_usable([FakeDriver("nspawn", "booted machines need root"), FakeDriver("process", None)])
    assert choice.driver.name == "process"
    assert "because nspawn: booted machines need root" in choice.sentence
    assert "user-data is not executed" in choice.sentence


def test_without_any_driver_every_reason_is_given() -> None:
    with pytest.raises(MachineError, match="nspawn: no root; process: no namespaces"):
        first_usable([FakeDriver("nspawn", "no root"), FakeDriver("process", "no namespaces")])


def test_no_machines_are_only_taken_when_asked_for(tmp_path: Path) -> None:
    choice = choose("none", root=tmp_path, cache=tmp_path)
    assert choice.driver.name == "none"
    assert choice.sentence.endswith("as asked")


def test_a_refused_namespace_comes_with_the_setting_that_allows_it() -> None:
    sentence = refusal("\nunshare: write failed /proc/self/uid_map: Operation not permitted\n")
    assert "Operation not permitted" in sentence
    assert "sysctl -w kernel.unprivileged_userns_clone=1" in sentence


def test_a_written_down_machine_goes_through_the_same_states() -> None:
    driver = RecordsDriver()
    driver.boot(SPEC)
    with pytest.raises(MachineError, match="already running"):
        driver.boot(SPEC)
    driver.freeze("train", "train-0")
    assert driver.state("train", "train-0") is MachineState.FROZEN
    driver.thaw("train", "train-0")
    assert driver.found() == (("train", "train-0"),)
    driver.kill("train", "train-0")
    assert driver.state("train", "train-0") is MachineState.GONE
    with pytest.raises(MachineError, match="does not run"):
        driver.reboot("train", "train-0")
