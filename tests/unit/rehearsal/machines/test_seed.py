"""Files placed before the first boot."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.driver import MachineError, MachineFile
from clusterctl_rehearsal.machines.seed import place, resolve, seed_files

from tests.unit.rehearsal.machines.machine_specs import machine_spec

SPEC = machine_spec(
    2,
    instance_id="i-0abc",
    user_data=b"\x1f\x8b raw",
    files={"/usr/bin/nvidia-smi": MachineFile(content=b"#!/bin/sh\n", mode=0o755)},
)


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    root = tmp_path / "lower"
    (root / "usr/bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "run").mkdir()
    (root / "var").mkdir()
    (root / "var/run").symlink_to("/run")
    (root / "deep").symlink_to("var/../usr")
    (root / "loop").symlink_to("loop")
    (root / "private").mkdir(mode=0o700)
    return root


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/usr/bin/x", "usr/bin/x"),
        ("/bin/x", "usr/bin/x"),
        ("/var/run/a/x", "run/a/x"),
        ("/deep/bin/x", "usr/bin/x"),
        ("/new/folder/x", "new/folder/x"),
        ("/x", "x"),
    ],
)
def test_a_path_follows_the_links_of_the_image(lower: Path, path: str, inside: str) -> None:
    assert str(resolve(lower, path)) == inside


@pytest.mark.parametrize("path", ["relative", "/", "/../etc/passwd", "/a/../../b", "/loop/x"])
def test_a_path_that_is_no_file_in_the_machine_is_refused(lower: Path, path: str) -> None:
    with pytest.raises(MachineError):
        resolve(lower, path)


def test_placed_folders_keep_the_attributes_of_the_image(lower: Path, tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    place(upper, lower, {"/private/key": MachineFile(content=b"k", mode=0o600)})
    assert (upper / "private").stat().st_mode & 0o7777 == 0o700
    assert (upper / "private/key").stat().st_mode & 0o7777 == 0o600


def test_a_link_of_the_image_is_not_covered_by_a_folder(lower: Path, tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    place(upper, lower, {"/bin/tool": MachineFile(content=b"t", mode=0o755)})
    assert not (upper / "bin").exists()
    assert (upper / "usr/bin/tool").read_bytes() == b"t"


def test_user_data_is_seeded_byte_for_byte_and_only_for_root() -> None:
    files = seed_files(SPEC)
    assert files["/var/lib/cloud/seed/nocloud/user-data"] == MachineFile(content=SPEC.user_data, mode=0o600)
    meta_data = files["/var/lib/cloud/seed/nocloud/meta-data"].content.decode()
    assert meta_data == "instance-id: i-0abc\nlocal-hostname: train-2\n"


def test_extra_files_are_seeded_too() -> None:
    assert seed_files(SPEC)["/usr/bin/nvidia-smi"].mode == 0o755
