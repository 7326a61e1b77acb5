"""A budget that is spent while the cluster runs: the nodes end themselves at the second that the arithmetic says.

And what counts in it: also a machine that AWS showed, and that a command which was cut off never wrote down.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta

from tests.integration.rehearsed import Rehearsed, alive_without_root, wait_until

NODES_USD_PER_HOUR = 4 * (55.04 + 200 * 0.08 / 730)
"""With their root disks."""
GATEWAY_USD_PER_HOUR = 0.045 + 0.005
"""With its address."""
BUDGET_USD = 4
TOLERANCE_S = 5


def test_four_dear_nodes_end_when_four_dollars_are_spent(light: Rehearsed) -> None:
    light.write(machines="process", caps={"runtime": "1h", "budget_usd": BUDGET_USD})
    light.up()
    status = light.status()
    lasts_s = BUDGET_USD / (NODES_USD_PER_HOUR + GATEWAY_USD_PER_HOUR) * 3600
    end = datetime.fromisoformat(status["started_at"]).timestamp() + lasts_s
    assert status["deadline_reason"] == "budget"
    assert abs(datetime.fromisoformat(status["deadline"]).timestamp() - end) <= 1
    time.sleep(max(0.0, end - TOLERANCE_S - time.time()))  # time itself is what is waited for
    assert len(alive_without_root(light.name)) == 4
    left_s = end - time.time() + TOLERANCE_S
    wait_until(lambda: alive_without_root(light.name) == [], what="all four nodes are gone", timeout_s=left_s)
    cost = json.loads(light.ok("cost", "--json"))["kinds"]["node"]
    assert cost["spent_usd"] <= BUDGET_USD


def test_a_machine_that_no_command_wrote_down_is_counted_from_the_next_one_on(light: Rehearsed) -> None:
    light.write(machines="none", caps={"runtime": "20h", "budget_usd": 1000})
    light.up()
    before = light.status()
    began = datetime.fromisoformat(before["started_at"])
    sighting = {
        "instance_id": "i-0123456789abcdef0",
        "slot": 4,
        "instance_type": "p5.48xlarge",
        "launched_at": (began - timedelta(hours=1)).isoformat(),
        "at": began.isoformat(),
        "alive": False,
        "ended_at": began.isoformat(),
    }
    with (light.home / "observed" / f"{before['cluster_id']}.jsonl").open("a") as stream:
        stream.write(json.dumps(sighting) + "\n")
    light.up()
    hours = NODES_USD_PER_HOUR / 4 / (NODES_USD_PER_HOUR + GATEWAY_USD_PER_HOUR)
    after = light.status()
    earlier = datetime.fromisoformat(before["deadline"]) - datetime.fromisoformat(after["deadline"])
    assert abs(earlier.total_seconds() - hours * 3600) < 5
    light.up()
    assert light.status()["deadline"] == after["deadline"]
