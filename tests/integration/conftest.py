"""A stack that several files use, and how tests are shared out among workers: by file, as those may share a machine, or
one by one.

pytest-xdist has `xdist_group` for this; 3.8 writes the group into an attribute that pytest 9.2 does not read any more
(checked 2026-11-21).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

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
    "test_reap.py",
    "test_stand_in_engine.py",
    "test_up_all_or_nothing.py",
    "test_up_goes_on.py",
)
"""Folders and files whose tests each make what they need: any worker may have any of them."""
TOGETHER = ("cli/test_ssh_faults.py",)
"""Files among them whose tests use addresses of the file's own."""


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Rehearsed]:
    """A stack of two nodes whose machines are only written down."""
    with rehearsed(tmp_path, machines="none", nodes=2, **PRIVATE) as cluster:
        yield cluster


class BySharing(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker that is free the next test, or the next file whose tests stay together."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0].removeprefix("tests/integration/")
        return nodeid if file.startswith(APART) and file not in TOGETHER else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> BySharing:
    """The scheduler of every run with workers."""
    return BySharing(config, log)
