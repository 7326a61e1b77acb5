"""How long nodes are waited for."""

from __future__ import annotations

import pytest
from clusterctl.lifecycle.readiness import Patience

USUAL = Patience(usual_s=120, phase_s=60)
TYPED = Patience(usual_s=120)


@pytest.mark.parametrize(
    ("patience", "waited_s", "quiet_s", "is_over"),
    [
        (USUAL, 119, [119, 119], False),
        (USUAL, 120, [120, 61], True),
        (USUAL, 120, [120, 59], False),
        (USUAL, 200, [30], False),
        (USUAL, 200, [60], True),
        (USUAL, 359, [1], False),
        (USUAL, 360, [1], True),
        (TYPED, 119, [119], False),
        (TYPED, 120, [0], True),
    ],
    ids=[
        "all are waited for until the usual time",
        "no node makes progress",
        "one node makes progress",
        "later, the node still makes progress",
        "later, the node makes no progress any more",
        "progress counts until three times the usual time",
        "at three times the usual time nothing counts",
        "all are waited for until a time that was typed",
        "progress does not count after a time that was typed",
    ],
)
def test_nodes_that_make_progress_are_waited_for_beyond_their_usual_time(
    patience: Patience, waited_s: float, quiet_s: list[float], is_over: bool
) -> None:
    assert patience.is_over(waited_s, quiet_s) == is_over
