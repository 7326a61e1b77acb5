"""A kill of each part during `up`, early and late: the next command puts all right, be it an `up` or a `down`.

`scripts/campaign kills` draws as many more as are asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.kill_campaign import OVER_BEFORE, Kill, survive
from tests.integration.rehearsed import rehearsed

NODES = 2
KILLS = (
    Kill(part="engine", after_events=4, jitter_s=0.0, then="up", wait_s=0.0),
    Kill(part="region", after_events=17, jitter_s=0.0, then="down", wait_s=0.0),
    Kill(part="cli", after_events=33, jitter_s=0.0, then="down", wait_s=0.0),
    Kill(part="plugin", after_events=52, jitter_s=0.0, then="up", wait_s=0.0),
    Kill(part="both", after_events=71, jitter_s=0.0, then="down", wait_s=0.0),
    Kill(part="plugin", after_events=9, jitter_s=0.1, then="down", wait_s=0.0),
    Kill(part="both", after_events=25, jitter_s=0.0, then="up", wait_s=0.0),
    Kill(part="cli", after_events=44, jitter_s=0.2, then="up", wait_s=0.0),
    Kill(part="engine", after_events=66, jitter_s=0.0, then="down", wait_s=0.0, machines="nspawn"),
    Kill(part="region", after_events=79, jitter_s=0.1, then="up", wait_s=0.0, machines="nspawn"),
)


@pytest.mark.parametrize(
    "kill", KILLS, ids=[f"{kill.part}-{kill.after_events}-{kill.then}-{kill.machines}" for kill in KILLS]
)
def test_whatever_is_killed_the_next_command_puts_it_right(tmp_path: Path, kill: Kill) -> None:
    if kill.machines == "nspawn" and os.geteuid() != 0:
        pytest.fail("these tests boot systemd-nspawn machines: run them as root")
    with rehearsed(tmp_path, machines=kill.machines, nodes=NODES) as cluster:
        killed = survive(cluster, kill, nodes=NODES)
    assert OVER_BEFORE not in killed, "nothing was killed, so nothing was survived"


def test_an_up_after_a_down_whose_engine_was_killed_makes_all_of_it_anew(tmp_path: Path) -> None:
    """Late in the `down`: the state still has things that were being deleted."""
    kill = Kill(part="engine", after_events=60, jitter_s=0.0, then="up", wait_s=0.0, during="down")
    with rehearsed(tmp_path, machines="none", nodes=NODES) as cluster:
        killed = survive(cluster, kill, nodes=NODES)
    assert OVER_BEFORE not in killed, "nothing was killed, so nothing was survived"
