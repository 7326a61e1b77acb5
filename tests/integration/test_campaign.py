"""25 mishaps at random moments: no machine outlives its deadline, and nothing bills that `reap` does not list."""

from __future__ import annotations

import pytest

from tests.integration.campaign.mishap import FAULTS, Life, lives
from tests.integration.campaign.whole_life import run_life

RUNS = 25
SEED = 2
LIVES = lives(SEED, runs=RUNS)


@pytest.mark.parametrize("life", LIVES, ids=[f"life-{number}" for number in range(len(LIVES))])
def test_whatever_befalls_a_cluster_nothing_is_left_that_bills_unseen(life: Life) -> None:
    report = run_life(life)
    assert (report.leaks, report.wrong) == (0, [])


def test_a_seed_draws_the_same_mishaps_again_and_of_every_kind() -> None:
    assert lives(SEED, runs=RUNS) == LIVES
    assert sum(len(life.mishaps) for life in LIVES) == RUNS
    assert {mishap.fault for life in LIVES for mishap in life.mishaps} == set(FAULTS)
    assert {life.is_abandoned for life in LIVES} == {True, False}
