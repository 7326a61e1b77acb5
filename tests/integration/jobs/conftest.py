"""Clusters that files of this folder share: made when the first test asks for one, two nodes each.

`SHARING` in `tests/integration/conftest.py` has one worker take all files that use one.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator

import pytest
from framework_packages import framework_folder, framework_pins

from tests.integration.rehearsed import Rehearsed, rehearsed


@pytest.fixture(scope="session")
def booted_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Booted machines that have nothing in common but their network: jobs are on their own disks."""
    with rehearsed(tmp_path_factory.mktemp("booted"), machines="nspawn", nodes=2) as cluster:
        cluster.up()
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Ends what a test that failed left running on the nodes that others share with it."""
    report = yield
    if report.when == "call" and report.failed:
        for pair in ("booted_pair", "process_pair"):
            cluster = getattr(item, "funcargs", {}).get(pair)
            if cluster is not None:
                cancel_all(cluster)
    return report


def cancel_all(cluster: Rehearsed) -> None:
    """Cancels every job of the cluster that has not ended."""
    for row in json.loads(cluster.run("jobs", "--json").stdout or "[]"):
        if row["state"] in ("waiting", "preparing", "starting", "running", "stopping"):
            cluster.run("job", "cancel", row["name"])
