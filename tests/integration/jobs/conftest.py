"""Clusters that files of this folder share: made when the first test asks for one, two nodes each.

`SHARING` in `tests/integration/conftest.py` has one worker take all files that use one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterctl_rehearsal.home import rehearsal_home
from framework_packages import framework_folder, framework_pins

from tests.integration.rehearsed import Rehearsed, rehearsed

STORAGE = (
    {"mount": "/shared", "efs": {}},
    {"mount": "/words", "s3": {"bucket": "words", "prefix": "in/"}},
    {"mount": "/models", "s3": {"bucket": "models", "writable": True}},
)


@pytest.fixture(scope="session")
def booted_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Booted machines with a file system that both have, a bucket to read and one to fill."""
    folder = tmp_path_factory.mktemp("booted")
    with rehearsed(folder, machines="nspawn", nodes=2, storage=list(STORAGE)) as cluster:
        words = rehearsal_home(cluster.env).buckets / "words" / "in"
        words.mkdir(parents=True)
        (words / "a.txt").write_text("a word\n")
        cluster.up("--yes")
        yield cluster


@pytest.fixture(scope="session")
def process_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Process machines that see the frameworks that were installed."""
    folders = {name: framework_folder(name) for name in framework_pins()["packages"]}
    shares = {str(folder): f"/opt/{name}" for name, folder in folders.items() if folder.is_dir()}
    with rehearsed(tmp_path_factory.mktemp("processes"), machines="process", nodes=2) as cluster:
        cluster.write(machines="process", settings={"shares": shares})
        cluster.up()
        yield cluster
