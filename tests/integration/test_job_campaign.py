"""Ten jobs with mishaps at random moments: the state is right soon, the cause is named, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.job_campaign import FAULTS, NODES, Mishap, mishaps, survive, write_programs
from tests.integration.rehearsed import Rehearsed, rehearsed

RUNS = 10
SEED = 15
"""Draws one frozen node and one dead computer, which take the longest."""
MISHAPS = mishaps(SEED, runs=RUNS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Process machines that are up, shared by all jobs here."""
    with rehearsed(tmp_path_factory.mktemp("job-campaign"), machines="process", nodes=NODES) as cluster:
        cluster.up()
        yield cluster


@pytest.mark.parametrize(
    ("number", "mishap"), list(enumerate(MISHAPS)), ids=[mishap.fault.replace(" ", "-") for mishap in MISHAPS]
)
def test_whatever_befalls_a_job_it_ends_right_and_nothing_is_left(
    cluster: Rehearsed, tmp_path: Path, number: int, mishap: Mishap
) -> None:
    survive(cluster, write_programs(tmp_path / "work"), mishap, f"job-{number}")


def test_a_seed_draws_the_same_mishaps_again_and_of_every_kind() -> None:
    assert mishaps(SEED, runs=RUNS) == MISHAPS
    assert {mishap.fault for mishap in MISHAPS} == set(FAULTS)
    assert {mishap.program for mishap in MISHAPS} == {"obeys.py", "ignores.py"}
