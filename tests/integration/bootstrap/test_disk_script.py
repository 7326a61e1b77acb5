"""The script that makes a volume of empty disks, run by a real shell: files stand for disks, stubs for what writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.nvme import FORMAT

MIB = 1 << 20
PARTITION_TABLE = b"\0" * 446 + bytes([0x80, 1, 1, 0, 0x83, 1, 1, 1]) + b"\1\0\0\0\1\0\0\0" + b"\0" * 48 + b"\x55\xaa"
"""A master boot record with one partition (UEFI specification, "Legacy Master Boot Record")."""
SWAP = (b"\0" * 1024 + b"\1\0\0\0" + b"\xff\3\0\0").ljust(4086, b"\0") + b"SWAPSPACE2"
"""A page with version, last page and magic (linux/swap.h, union swap_header)."""


class Bench:
    """Disks and programs of a test; `ran` lists the commands that would have written to a disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        for name in ("mdadm", "mkfs.ext4", "udevadm"):
            stub = folder / name
            stub.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.log}"\n')
            stub.chmod(0o755)

    def disk(self, name: str, content: bytes = b"") -> str:
        path = self.folder / name
        with path.open("wb") as file:
            file.write(content)
            file.truncate(4 * MIB)
        return str(path)

    def run(self, *disks: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}:{os.environ['PATH']}:/usr/sbin:/sbin"
        return subprocess.run(
            ["sh", "-ec", FORMAT, "sh", *disks],
            env={"PATH": path},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    @property
    def ran(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if not line.startswith("udevadm")]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_empty_disks_become_an_array_with_a_file_system_and_are_not_trimmed_again(bench: Bench) -> None:
    disks = [bench.disk("one"), bench.disk("two")]
    assert bench.run(*disks).returncode == 0
    assert bench.ran == [
        f"mdadm --create /dev/md/clusterctl --run --level=0 --raid-devices=2 {' '.join(disks)}",
        "mkfs.ext4 -qE nodiscard /dev/md/clusterctl",
    ]
    assert bench.log.read_text().splitlines()[-1] == "udevadm trigger -w /dev/md/clusterctl"


def test_one_disk_needs_no_array(bench: Bench) -> None:
    disk = bench.disk("one")
    assert bench.run(disk).returncode == 0
    assert bench.ran == [f"mkfs.ext4 -qE nodiscard {disk}"]


@pytest.mark.parametrize("content", [PARTITION_TABLE, SWAP], ids=["a partition table", "swap"])
def test_a_disk_with_anything_on_it_is_left_alone_though_udev_has_not_told_of_it(bench: Bench, content: bytes) -> None:
    used = bench.disk("used", content)
    done = bench.run(bench.disk("empty"), used)
    assert (done.returncode, bench.ran) == (9, [])
    assert f"{used} is not empty" in done.stdout
