"""A kill of each part during `up`, early and late: the next command puts all right, be it an `up` or a `down`.

`scripts/campaign kills` draws as many more as are asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.kill_campaign import (
    OVER_BEFORE,
    Kill,
    assert_at_rest,
    end,
    go_on_to_up,
    kill_during,
    survive,
)
from tests.integration.rehearsed import Rehearsed, rehearsed

NODES = 2
KILLS = (
    Kill(part="plugin", after_events=9, jitter_s=0.1, then="down", wait_s=0.0),
    Kill(part="region", after_events=17, jitter_s=0.0, then="down", wait_s=0.0),
    Kill(part="cli", after_events=33, jitter_s=0.0, then="down", wait_s=0.0),
    Kill(part="both", after_events=71, jitter_s=0.0, then="down", wait_s=0.0),
    Kill(part="engine", after_events=66, jitter_s=0.0, then="down", wait_s=0.0, machines="nspawn"),
    Kill(part="region", after_events=79, jitter_s=0.1, then="up", wait_s=0.0, machines="nspawn"),
)
ONE_AFTER_ANOTHER = (
    Kill(part="engine", after_events=4, jitter_s=0.0, then="up", wait_s=0.0),
    Kill(part="both", after_events=25, jitter_s=0.0, then="up", wait_s=0.0),
    Kill(part="cli", after_events=44, jitter_s=0.2, then="up", wait_s=0.0),
)
"""Each `up` goes on from what the one before it left, and further than that."""


@pytest.mark.parametrize(
    "kill", KILLS, ids=[f"{kill.part}-{kill.after_events}-{kill.then}-{kill.machines}" for kill in KILLS]
)
def test_whatever_is_killed_the_next_command_puts_it_right(tmp_path: Path, kill: Kill) -> None:
    if kill.machines == "nspawn" and os.geteuid() != 0:
        pytest.fail("these tests boot systemd-nspawn machines: run them as root")
    with rehearsed(tmp_path, machines=kill.machines, nodes=NODES) as cluster:
        killed = survive(cluster, kill, nodes=NODES)
    assert OVER_BEFORE not in killed, "nothing was killed, so nothing was survived"


def test_an_up_that_is_killed_three_times_goes_on_each_time_to_a_whole_cluster(tmp_path: Path) -> None:
    """An `up` that did not go on would not come to the step of the next kill."""
    with rehearsed(tmp_path, machines="none", nodes=NODES) as cluster:
        killed = [kill_during(cluster, kill) for kill in ONE_AFTER_ANOTHER]
        assert not [kill for kill in killed if OVER_BEFORE in kill], killed
        go_on_to_up(cluster, ", ".join(killed), nodes=NODES)
        end(cluster, ", ".join(killed))


def test_an_up_after_one_whose_plugin_was_killed_makes_all_of_it(tmp_path: Path) -> None:
    kill = Kill(part="plugin", after_events=52, jitter_s=0.0, then="up", wait_s=0.0)
    with rehearsed(tmp_path, machines="none", nodes=NODES) as cluster:
        killed = kill_during(cluster, kill)
        assert OVER_BEFORE not in killed, "nothing was killed, so nothing was survived"
        go_on_to_up(cluster, killed, nodes=NODES)
        assert_at_rest(cluster)


def test_an_up_after_a_down_whose_engine_was_killed_makes_all_of_it_anew(ready: Rehearsed) -> None:
    """Late in the `down`: the state still has things that were being deleted."""
    kill = Kill(part="engine", after_events=60, jitter_s=0.0, then="up", wait_s=0.0, during="down")
    killed = kill_during(ready, kill)
    assert OVER_BEFORE not in killed, "nothing was killed, so nothing was survived"
    go_on_to_up(ready, killed, nodes=NODES)
    assert_at_rest(ready)
