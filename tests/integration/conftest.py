"""A stack that several files use, and how tests are shared out among workers: by file or folder, as those may share a
machine, or one by one.

pytest-xdist has `xdist_group` for this; 3.8 writes the group into an attribute that pytest 9.2 does not read any more
(checked 2026-11-21).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from tests.integration.processor_times import (  # noqa: F401 hooks of pytest's
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_terminal_summary,
)
from tests.integration.quick import is_quick
from tests.integration.ready_clusters import ReadyClusters
from tests.integration.recorded_stack import PRIVATE
from tests.integration.rehearsed import Rehearsed, rehearsed

APART = (
    "cli/",
    "lifecycle/test_faults.py",
    "lifecycle/test_from_up_to_down.py",
    "lifecycle/test_nothing_changes_by_itself.py",
    "machines/",
    "test_campaign.py",
    "test_down_ends_all.py",
    "test_engine_rehearsal.py",
    "test_kill_up.py",
    "test_provider_engine.py",
    "test_real_stack.py",
    "test_reap.py",
    "test_stand_in_engine.py",
    "test_up_all_or_nothing.py",
    "test_up_goes_on.py",
)
"""Folders and files whose tests each make what they need: any worker may have any of them."""
TOGETHER = ("cli/test_ssh_faults.py", "machines/test_machines_together.py")
"""Files among them whose tests use addresses of the file's own, or share machines."""
SHARING = {
    "hosts": ("hosts/",),
    "three nodes of the bootstrap": (
        "bootstrap/test_barrier_between_nodes.py",
        "bootstrap/test_torchrun.py",
        "bootstrap/test_trust_between_nodes.py",
        "bootstrap/test_unprivileged_attacks.py",
    ),
    "one node of the bootstrap": (
        "bootstrap/test_environment_round_trip.py",
        "bootstrap/test_in_machine.py",
    ),
    "two booted nodes with jobs": (
        "jobs/test_images.py",
        "jobs/test_jobs_on_booted_machines.py",
    ),
    "two process nodes with jobs": (
        "jobs/test_frameworks.py",
        "jobs/test_functions.py",
        "jobs/test_launchers.py",
    ),
}
"""Folders and files that share machines, by what these are: one worker has all of them."""


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nodes whose machines are only written down."""
    with rehearsed(tmp_path, machines="none", nodes=2, **PRIVATE) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ready_clusters(tmp_path_factory: pytest.TempPathFactory) -> ReadyClusters:
    """Clusters that are up already; each worker makes its own."""
    return ReadyClusters(folder=tmp_path_factory.mktemp("ready"))


@pytest.fixture
def ready(ready_clusters: ReadyClusters) -> Iterator[Rehearsed]:
    """The stack of two nodes, as a plain `up` left it."""
    with ready_clusters.restored(nodes=2, **PRIVATE) as cluster:
        yield cluster


LONGEST = (
    "test_campaign.py",
    "test_job_campaign.py",
    "lifecycle/test_kept_storage.py",
    "lifecycle/test_lost_reservation.py",
    "jobs/test_workflows.py",
    "jobs/test_frameworks.py",
    "jobs/test_images.py",
    "hosts/test_hosts.py",
    "bootstrap/test_torchrun.py",
    "bootstrap/test_deadlines.py",
    "lifecycle/test_deadline_from_outside.py",
    "lifecycle/test_storage_and_scripts.py",
    "lifecycle/test_ranks_by_topology.py",
    "skeleton/test_quickstart.py",
)
"""Files whose longest test, or whose tests that stay together, take more than 80 s (`--durations`), the longest first.

Begun last, such a file would keep the other workers waiting.
"""


SHORT = ("cli/",)
"""Tests of a few seconds each, which end the run: long ones at its end would leave workers without work."""


class BySharing(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker that is free the next test, or the next file whose tests stay together."""

    def _split_scope(self, nodeid: str) -> str:
        return shared_by(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a worker more only below two tests, where xdist does at two: no other worker can take what one has.

        A worker needs one test that waits, to know which fixtures to keep (xdist 3.8).
        """
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def shared_by(nodeid: str) -> str:
    """What a worker takes at once: the test alone, its file, or all that shares its machines."""
    file = file_of(nodeid)
    for machines, places in SHARING.items():
        if file.startswith(places):
            return machines
    return nodeid if file.startswith(APART) and file not in TOGETHER else file


def file_of(nodeid: str) -> str:
    """Below `tests/integration`."""
    return below_integration(nodeid).partition("::")[0]


def below_integration(nodeid: str) -> str:
    """The test's file and name, from `tests/integration` on."""
    return nodeid.removeprefix("tests/integration/")


def longest_first(nodeids: Sequence[str]) -> list[int]:
    """The order in which they begin: known to be long, then files with many tests, then as found; short ones last."""
    tests = Counter(shared_by(nodeid) for nodeid in nodeids)
    found: dict[str, int] = {}
    known: dict[str, int] = {}
    for place, nodeid in enumerate(nodeids):
        scope, file = shared_by(nodeid), file_of(nodeid)
        found.setdefault(scope, place)
        begins = LONGEST.index(file) if file in LONGEST else len(LONGEST)
        known[scope] = min(begins, known.get(scope, begins))  # machines that are shared have a deadline, too

    def rank(place: int) -> tuple[int, bool, int, int, int]:
        file, scope = file_of(nodeids[place]), shared_by(nodeids[place])
        return known[scope], file.startswith(SHORT), -tests[scope], found[scope], place

    return sorted(range(len(nodeids)), key=rank)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks the quick ones, before `-m` leaves any out."""
    if is_quick(below_integration(item.nodeid)):
        item.add_marker("quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After `-m` and `-k` have left out what is not meant; each worker comes to the same order."""
    items[:] = [items[place] for place in longest_first([item.nodeid for item in items])]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Writes down which packages the chosen tests need, for scripts/test, which then installs these."""
    if path := os.environ.get("CLUSTERCTL_NEEDED_PACKAGES"):
        Path(path).write_text("".join(f"{name}\n" for name in needed_packages(session.items)))


def needed_packages(items: Sequence[pytest.Item]) -> list[str]:
    """What their marks name, torch first: `torch`, `awscli`, and the frameworks."""
    named = {str(mark.args[0]) for item in items for mark in item.iter_markers("framework")}
    marked = [name for name in ("torch", "awscli") if any(item.get_closest_marker(name) for item in items)]
    return [*marked, *sorted(named)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> BySharing:
    """The scheduler of every run with workers, which hands out work in the order of the tests."""
    config.option.loadscopereorder = False
    return BySharing(config, log)
