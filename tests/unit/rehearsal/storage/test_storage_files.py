"""What a machine gets so that its own units mount stand-ins."""

from __future__ import annotations

import ast
import stat
from pathlib import Path

import pytest
from clusterctl_bootstrap.node.mounts import NETWORK
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.hosts_storage import PACKAGES
from clusterctl_rehearsal.packages.files import CLIENTS_FOLDER
from clusterctl_rehearsal.storage import bucket_mount, bucket_service
from clusterctl_rehearsal.storage.files import SHARES_IN_MACHINES, storage_binds, storage_files

CATALOG = load_catalog()
FOUND = storage_files(CATALOG.types["p5.48xlarge"])
HELPERS = {path: file for path, file in FOUND.items() if path.startswith(f"{CLIENTS_FOLDER}/mount.")}


def test_every_kind_that_a_node_mounts_has_a_stand_in() -> None:
    """It lies where mount(8) does not look until a package puts it into /sbin, as on an image without clients."""
    kinds = {kind for kind, *_ in NETWORK.values()} | set(PACKAGES)
    assert set(HELPERS) == {f"{CLIENTS_FOLDER}/mount.{kind}" for kind in kinds}
    assert not [path for path in FOUND if path.startswith("/sbin")]


@pytest.mark.parametrize("path", HELPERS)
def test_a_stand_in_is_a_program_that_says_what_it_is(path: str) -> None:
    assert HELPERS[path].mode & stat.S_IXUSR
    assert HELPERS[path].content.startswith(b"#!/usr/bin/python3 -IS\n")
    assert b"SIMULATED" in HELPERS[path].content
    ast.parse(HELPERS[path].content, feature_version=(3, 9))


@pytest.mark.parametrize(("name", "has_disks"), [("p5.48xlarge", True), ("c5.large", False)])
def test_only_a_type_with_instance_store_has_a_disk(name: str, has_disks: bool) -> None:
    files = storage_files(CATALOG.types[name])
    assert ("/usr/local/bin/lsblk" in files, "/etc/systemd/system/dlami-nvme.service" in files) == (has_disks,) * 2


def test_the_folder_of_all_shares_is_bound_into_machines(tmp_path: Path) -> None:
    assert storage_binds(tmp_path / "shares")[str(tmp_path / "shares")] == SHARES_IN_MACHINES


def test_machines_ask_the_server_where_it_listens() -> None:
    assert f"http://{bucket_service.ADDRESS}" == bucket_mount.ENDPOINT
    assert bucket_service.PORT == 80


REFUSED = {
    "an option of a later version": ("s3://b/", "ro,memory-target=1", "unexpected argument '--memory-target=1'"),
    "a prefix without its slash": ("s3://b/p", "ro", "s3://b/p: not s3://bucket/"),
    "no URI": ("b", "ro", "b: not s3://bucket/"),
}


@pytest.mark.parametrize(("source", "options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_mountpoint_s3_refuses_its_stand_in_refuses(
    source: str, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bucket_mount.main(source, "/data", options) == 32
    assert message in capsys.readouterr().out
