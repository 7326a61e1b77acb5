"""Twenty kills during `up`, four of each part, spread over its way: the next command puts all right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.kill_campaign import OVER_BEFORE, PARTS, Kill, spread_kills, survive
from tests.integration.rehearsed import rehearsed

NODES = 2
SEED = 3
MACHINES = ("nspawn", "none", "none", "nspawn")
KILLS = [kill for part in PARTS for kill in spread_kills(SEED, part=part, count=4, nodes=NODES, machines=MACHINES)]


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
