"""How long the process that keeps connections waits for the next command."""

from __future__ import annotations

import pytest
from clusterctl.ssh.broker.process import is_wanted

USED_AT_S = 1000.0
TEN_MINUTES_S = 600.0


@pytest.mark.parametrize(
    ("commands", "is_reachable", "connections", "idle_s", "stays"),
    [
        (0, True, 4, 0.0, True),
        (0, True, 4, TEN_MINUTES_S - 0.1, True),
        (0, True, 4, TEN_MINUTES_S, False),
        (1, True, 4, 2 * TEN_MINUTES_S, True),
        (1, False, 0, TEN_MINUTES_S, True),
        (0, True, 0, 0.0, False),
        (0, False, 4, 0.0, False),
    ],
    ids=[
        "just used",
        "just before ten minutes",
        "at ten minutes",
        "a command runs for longer",
        "a command runs although no other could come",
        "no connection is left",
        "no other command would come here",
    ],
)
def test_connections_are_kept_for_ten_minutes_after_the_last_command(
    commands: int, is_reachable: bool, connections: int, idle_s: float, stays: bool
) -> None:
    wanted = is_wanted(
        commands=commands,
        is_reachable=is_reachable,
        connections=connections,
        used_at_s=USED_AT_S,
        now_s=USED_AT_S + idle_s,
    )
    assert wanted is stays
