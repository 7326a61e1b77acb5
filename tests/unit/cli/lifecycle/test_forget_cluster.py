"""What this computer knows of a cluster goes with the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl.home import Home
from clusterctl.lifecycle.last_look import forget_cluster

CLUSTER = "train@rehearsal"


def home_that_knows(path: Path, cluster_id: str) -> Home:
    home = Home(path=path)
    home.inventory_dir.mkdir(parents=True)
    home.inventory_file(CLUSTER).write_text(json.dumps({"cluster_id": cluster_id}))
    (home.keys_dir / CLUSTER).mkdir(parents=True)
    (home.keys_dir / CLUSTER / "id_ed25519").write_text("a key")
    return home


def test_inventory_and_key_of_a_cluster_that_is_gone_are_removed(tmp_path: Path) -> None:
    home = home_that_knows(tmp_path, "a" * 12)
    assert forget_cluster(home, CLUSTER, cluster_id="a" * 12)
    assert not home.inventory_file(CLUSTER).exists()
    assert not (home.keys_dir / CLUSTER).exists()


def test_the_files_of_a_newer_cluster_of_that_name_stay(tmp_path: Path) -> None:
    home = home_that_knows(tmp_path, "b" * 12)
    assert not forget_cluster(home, CLUSTER, cluster_id="a" * 12)
    assert home.inventory_file(CLUSTER).exists()
    assert (home.keys_dir / CLUSTER / "id_ed25519").exists()


@pytest.mark.parametrize("text", [None, "", "[]", "{"])
def test_a_file_that_says_nothing_is_left_alone(tmp_path: Path, text: str | None) -> None:
    home = Home(path=tmp_path)
    if text is not None:
        home.inventory_dir.mkdir(parents=True)
        home.inventory_file(CLUSTER).write_text(text)
    assert not forget_cluster(home, CLUSTER, cluster_id="a" * 12)
    assert home.inventory_file(CLUSTER).exists() is (text is not None)
