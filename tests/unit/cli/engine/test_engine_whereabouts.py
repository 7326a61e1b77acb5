"""Which cluster `down STACK` means, although its file is broken now."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.engine.whereabouts import Whereabouts, find_whereabouts
from clusterctl.home import Home
from clusterctl_infra.errors import ConfigError

BROKEN = "nodes: 0\nplacemnt: cluster\n"


def found(folder: Path, cluster_file: str) -> Whereabouts:
    (folder / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (folder / "cluster.yaml").write_text(cluster_file)
    return find_whereabouts(folder, None, stack_name="dev", rehearse=False, home=Home(path=folder / "home"), environ={})


def test_a_cluster_that_nobody_knows_here_is_named_by_its_broken_file(tmp_path: Path) -> None:
    where = found(tmp_path, f"name: train\nregion: eu-west-1\n{BROKEN}")
    assert (where.name, where.region) == ("train", "eu-west-1")


@pytest.mark.parametrize(
    "names", ["name: train\n", "name: Train\nregion: eu-west-1\n", "name: train\nregoin: eu-west-1\n", "name: [\n"]
)
def test_without_a_name_or_a_region_its_problems_are_told(tmp_path: Path, names: str) -> None:
    with pytest.raises(ConfigError, match="nothing was changed"):
        found(tmp_path, names + BROKEN)
