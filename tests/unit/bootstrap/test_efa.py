"""The fabric of a node: what its plan says against what is there, and how the result is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_bootstrap.node.boot import boot
from clusterctl_bootstrap.node.efa import APPEAR_TIMEOUT_S, COMMANDS

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, status, with_adapter

STAND_IN = "var/lib/clusterctl/simulated-efa"


def machine(root: Path, *, present: int, wanted: int = 4, fabric: str = "efa") -> Path:
    """A machine with real devices: as many as `present`, and one that is no EFA."""
    born(root, fabric=fabric, efa_interfaces=wanted)
    (root / STAND_IN).unlink()
    with_adapter(root, "mlx5_0", "mlx5_core", link_layer="Ethernet")
    for number in range(present):
        with_adapter(root, f"rdmap{number}s0", "efa", link_layer="Unspecified")
    return root


def verdicts(root: Path) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["verdict"], row["detail"]) for row in status(root)["checks"]}


def test_all_devices_and_all_that_they_need_are_told(tmp_path: Path) -> None:
    root = machine(tmp_path, present=4, fabric="required")
    assert boot(root, FakeOutside()) == 0
    reported = verdicts(root)
    assert reported.pop("EFA interfaces") == ("ok", "4 of 4")
    assert reported == dict.fromkeys(COMMANDS, ("ok", "said by a test"))


@pytest.mark.parametrize(("present", "count"), [(3, "3 of 4"), (0, "0 of 4"), (5, "5 of 4")])
def test_a_required_fabric_with_another_number_fails_the_node_and_names_both(
    tmp_path: Path, present: int, count: str
) -> None:
    root, outside = machine(tmp_path, present=present, fabric="required"), FakeOutside()
    assert boot(root, outside) == 1
    error = status(root)["error"]
    assert error["phase"] == "fabric"
    assert error["message"].startswith(f"fabric: required, but EFA interfaces: {count}")
    assert verdicts(root)["EFA interfaces"] == ("failed", count)
    assert outside.slept_s == pytest.approx(APPEAR_TIMEOUT_S if present < 4 else 0, abs=2), "some images are late"


def test_a_fabric_that_is_not_required_is_told_and_the_node_goes_on(tmp_path: Path) -> None:
    root = machine(tmp_path, present=3)
    assert boot(root, FakeOutside()) == 0
    assert verdicts(root)["EFA interfaces"] == ("failed", "3 of 4")
    assert "EFA interfaces: 3 of 4" in (root / "var/log/clusterctl.log").read_text()


def test_what_efa_needs_besides_is_told_and_fails_no_node(tmp_path: Path) -> None:
    root, outside = machine(tmp_path, present=4, fabric="required"), FakeOutside()
    outside.codes = {COMMANDS["libfabric"]: 127, COMMANDS["fabric manager"]: 9}
    assert boot(root, outside) == 0
    assert verdicts(root)["libfabric"] == ("failed", "said by a test")
    assert verdicts(root)["fabric manager"] == ("not applicable", "said by a test")


@pytest.mark.parametrize("fabric", ["none", "efa"])
def test_a_machine_without_efa_is_never_told_to_be_well(tmp_path: Path, fabric: str) -> None:
    root, outside = machine(tmp_path, present=0, wanted=0, fabric=fabric), FakeOutside()
    assert boot(root, outside) == 0
    assert verdicts(root) == {"EFA interfaces": ("not applicable", "none planned")}


def test_a_rehearsed_machine_says_that_its_interfaces_are_simulated(tmp_path: Path) -> None:
    root, outside = born(tmp_path, fabric="required", efa_interfaces=32), FakeOutside()
    assert boot(root, outside) == 0
    assert verdicts(root) == {"EFA interfaces": ("simulated", "32 of 32 (simulated)")}
    assert not any("fi_info" in word for argv in outside.commands for word in argv)


def test_a_rehearsed_machine_with_too_few_fails_like_a_real_one(tmp_path: Path) -> None:
    root = born(tmp_path, fabric="required", efa_interfaces=32)
    (root / STAND_IN).write_text("31\n")
    assert boot(root, FakeOutside()) == 1
    assert "31 of 32 (simulated)" in status(root)["error"]["message"]


def test_the_next_boot_looks_again(tmp_path: Path) -> None:
    root = machine(tmp_path, present=3, fabric="required")
    assert boot(root, FakeOutside()) == 1
    with_adapter(root, "rdmap3s0", "efa", link_layer="Unspecified")
    assert boot(root, FakeOutside()) == 0
    assert verdicts(root)["EFA interfaces"] == ("ok", "4 of 4")
