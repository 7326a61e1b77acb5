"""Which driver is taken, and why."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.auto import choose, first_usable
from clusterctl_rehearsal.machines.driver import MachineDriver, MachineError, MachineState
from clusterctl_rehearsal.machines.process import refusal
from clusterctl_rehearsal.machines.records import RecordsDriver
from clusterctl_rehearsal.machines.requirements import what_is_missing

from tests.unit.rehearsal.fake_driver import FakeDriver
from tests.unit.rehearsal.machines.machine_specs import machine_spec

SPEC = machine_spec()


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


TOOLS = {"nft": "nftables", "ip": "iproute2"}


@pytest.mark.parametrize(
    ("platform", "user_id", "found", "sentence"),
    [
        ("linux", 0, TOOLS, None),
        ("darwin", 0, TOOLS, "booted machines need Linux, this is darwin"),
        ("darwin", 501, {}, "booted machines need Linux, this is darwin"),
        (
            "linux",
            1000,
            {},
            'booted machines need root: run the same command with sudo -E "$(command -v clusterctl)" for clusterctl',
        ),
        ("linux", 0, {"ip"}, "tools are missing: apt-get install -y --no-install-recommends nftables"),
    ],
)
def test_what_a_computer_lacks_is_said_with_what_helps(
    platform: str, user_id: int, found: Container[str], sentence: str | None
) -> None:
    def find(tool: str) -> str | None:
        return f"/bin/{tool}" if tool in found else None

    assert what_is_missing("booted", TOOLS, platform=platform, find=find, user_id=user_id) == sentence


def test_another_system_than_linux_is_told_why_there_are_no_machines_at_all() -> None:
    problems = {
        kind: what_is_missing(kind, {}, platform="darwin", find=lambda tool: None) for kind in ("booted", "process")
    }
    with pytest.raises(MachineError) as caught:
        first_usable([FakeDriver("nspawn", problems["booted"]), FakeDriver("process", problems["process"])])
    assert str(caught.value) == (
        "no machines can be made here: nspawn: booted machines need Linux, this is darwin; "
        "process: process machines need Linux, this is darwin; with machines: none in rehearsal.yaml they are only "
        "written down"
    )


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
