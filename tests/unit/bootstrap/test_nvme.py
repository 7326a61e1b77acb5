"""Instance-store disks: which they are, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusterctl_bootstrap.node.nvme import choice, volume
from clusterctl_bootstrap.node.phase import PhaseFailed

from tests.unit.bootstrap.fake_outside import FakeOutside

STORE = "Amazon EC2 NVMe Instance Storage"
ROOT = "/dev/nvme0n1 Amazon Elastic Block Store"
EMPTY = {"fstype": None, "mountpoint": None}


class Disks(FakeOutside):
    """lsblk over `names`, whose rows are `rows`; the shell that formats gives `made`."""

    def __init__(self, *names: str, rows: list[dict[str, Any]], made: list[dict[str, Any]] | None = None) -> None:
        super().__init__()
        self.rows, self.made = rows, made
        self.listed = "\n".join([ROOT, *(f"{name} {STORE}" for name in names), "/dev/loop0 "])
        self.answer = self._answer

    def _answer(self, argv: list[str]) -> tuple[int, str] | None:
        if argv[:2] == ["lsblk", "-dnpo"]:
            return 0, self.listed
        if argv[0] == "lsblk":
            return 0, json.dumps({"blockdevices": self.rows})
        if argv[0] == "sh" and self.made is None:
            return 1, "mdadm: command not found"
        if argv[0] == "sh":
            self.rows = self.made or []
        return 0, ""


def disk(name: str, **row: Any) -> dict[str, Any]:
    return {"name": name, **EMPTY, **row}


PAIR = ("/dev/nvme2n1", "/dev/nvme1n1")
ARRAY = disk("/dev/md127", fstype="ext4")
MEMBERS = [disk(name, fstype="linux_raid_member") for name in PAIR]


def test_empty_disks_become_one_volume_in_the_order_of_their_names() -> None:
    outside = Disks(*PAIR, rows=[disk(name) for name in PAIR], made=[*MEMBERS, ARRAY])
    assert volume(outside, "stripe") == ("/dev/md127", "ext4", "noatime")
    (formatted,) = (argv for argv in outside.commands if argv[0] == "sh")
    assert formatted[3:] == ["sh", "/dev/nvme1n1", "/dev/nvme2n1"]


def test_single_takes_the_first_alone() -> None:
    outside = Disks(*PAIR, rows=[disk(PAIR[1])], made=[disk(PAIR[1], fstype="ext4")])
    assert volume(outside, "single") == ("/dev/nvme1n1", "ext4", "noatime")
    assert outside.commands[-1][-1] == "/dev/nvme1n1"
    assert not any(PAIR[0] in argv for argv in outside.commands)


def test_the_root_disk_is_never_looked_at() -> None:
    outside = Disks(*PAIR, rows=[*MEMBERS, ARRAY])
    volume(outside, "stripe")
    assert not any("/dev/nvme0n1" in argv for argv in outside.commands)


def test_a_model_with_underscores_for_blanks_is_the_same() -> None:
    outside = Disks(rows=[*MEMBERS, ARRAY])
    outside.listed += "\n/dev/nvme1n1 " + STORE.replace(" ", "_")
    assert volume(outside, "stripe") == ("/dev/md127", "ext4", "noatime")


def test_the_images_own_service_is_waited_for_first() -> None:
    outside = Disks(*PAIR, rows=[*MEMBERS, ARRAY])
    volume(outside, "stripe")
    assert outside.commands[0] == ["systemctl", "start", "dlami-nvme.service"]


def test_a_volume_from_before_the_reboot_is_kept() -> None:
    outside = Disks(*PAIR, rows=[*MEMBERS, ARRAY])
    assert volume(outside, "stripe") == ("/dev/md127", "ext4", "noatime")
    assert not any(argv[0] == "sh" for argv in outside.commands)


def test_what_the_image_has_mounted_is_bound() -> None:
    rows = [
        disk(PAIR[0], fstype="LVM2_member"),
        disk("/dev/mapper/vg.01-lv_ephemeral", fstype="ext4", mountpoint="/opt/dlami/nvme"),
    ]
    assert choice(rows) == ("/opt/dlami/nvme", "none", "bind")


def test_members_of_an_array_that_nothing_has_put_together_are_not_formatted() -> None:
    with pytest.raises(PhaseFailed, match=r"/dev/nvme2n1 is a linux_raid_member that is part of nothing"):
        volume(Disks(*PAIR, rows=MEMBERS), "stripe")


def test_a_machine_without_such_disks_says_so() -> None:
    with pytest.raises(PhaseFailed, match="no disk of the model Amazon EC2 NVMe Instance Storage"):
        volume(Disks(rows=[]), "stripe")


def test_a_format_that_fails_is_named() -> None:
    with pytest.raises(PhaseFailed, match="exit 1: mdadm: command not found"):
        volume(Disks(*PAIR, rows=[disk(name) for name in PAIR]), "stripe")
