"""Nine mishaps at random moments: no machine outlives its deadline, and nothing bills that `reap` does not list."""

from __future__ import annotations

import pytest

from tests.integration.campaign.mishap import ACTIONS, ENDINGS, FAULTS, Life, lives
from tests.integration.campaign.whole_life import run_life

RUNS, A_LIFE = 9, 3
SEED = 49896
"""One that draws every action and every fault in so few."""
LIVES = lives(SEED, runs=RUNS, a_life=A_LIFE)


@pytest.mark.parametrize("life", LIVES, ids=[f"life-{life.number}-{life.ending}" for life in LIVES])
def test_whatever_befalls_a_cluster_nothing_is_left_that_bills_unseen(life: Life) -> None:
    report = run_life(life)
    assert (report.leaks, report.wrong) == (0, [])
    assert report.things > report.looks, "nothing billed, so nothing could have leaked"
    assert report.ledger_and_bill is not None
    compared = report.ledger_and_bill.seen_to_their_end + sum(cost.to_the_cent for cost in report.costs)
    assert compared > 0, "no machine's cost was compared with its bill"
    assert any(mishap.is_met for mishap in report.met), "all mishaps came too late"


def test_a_seed_draws_the_same_mishaps_again_and_of_every_kind() -> None:
    assert lives(SEED, runs=RUNS, a_life=A_LIFE) == LIVES
    assert sum(len(life.mishaps) for life in LIVES) == RUNS
    assert {mishap.fault for life in LIVES for mishap in life.mishaps} == set(FAULTS)
    assert {mishap.action for life in LIVES for mishap in life.mishaps} == set(ACTIONS)
    assert {life.ending for life in LIVES} == set(ENDINGS)
