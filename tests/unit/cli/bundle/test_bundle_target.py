"""Where the archive of a bundle may be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any  # JSON

import pytest
from clusterctl.bundle.request import BundleRequest, carry_out
from clusterctl.home import Home
from clusterctl.jobs.kept_logs import kept_folder
from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory

from tests.unit.cli.conftest import Screen
from tests.unit.cli.jobs.job_specs import spec


@pytest.fixture(autouse=True)
def a_kept_job_whose_cluster_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(path=tmp_path / "home")
    folder = kept_folder(home, "train") / "first"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"spec": spec(), "states": {}, "kept_s": 10.0}))
    monkeypatch.setenv("CLUSTERCTL_HOME", str(home.path))


def no_health(inventory: Inventory) -> Any:
    raise AssertionError(f"{inventory.cluster} is gone")


def request(target: Path) -> BundleRequest:
    return BundleRequest(cluster=None, job="first", target=target, most_bytes=1024, connect_timeout_s=1.0)


def test_an_archive_for_a_folder_that_is_not_there_is_refused_before_anything_is_collected(
    tmp_path: Path, screen: Screen
) -> None:
    with pytest.raises(UsageError, match=r"^--output .*/none/b\.tar\.gz: there is no folder .*/none$") as refused:
        carry_out(request(tmp_path / "none" / "b.tar.gz"), screen.output, no_health)
    assert refused.value.hint == f"mkdir -p {tmp_path}/none"


def test_a_folder_is_no_archive(tmp_path: Path, screen: Screen) -> None:
    with pytest.raises(UsageError, match=r" is a folder: write a file's name$") as refused:
        carry_out(request(tmp_path), screen.output, no_health)
    assert refused.value.hint == f"clusterctl bundle --output {tmp_path}/bundle.tar.gz"
