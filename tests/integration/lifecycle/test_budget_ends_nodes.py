"""A budget that is spent while the cluster runs: the nodes' deadline is the second that the arithmetic says.

And what counts in it: also a machine that AWS showed, and that a command which was cut off never wrote down.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from tests.integration.rehearsed import Rehearsed

NODES_USD_PER_HOUR = 4 * (55.04 + 200 * 0.08 / 730)
"""With their root disks."""
GATEWAY_USD_PER_HOUR = 0.045 + 0.005
"""With its address."""
BUDGET_USD = 40
LASTS_S = BUDGET_USD / (NODES_USD_PER_HOUR + GATEWAY_USD_PER_HOUR) * 3600


def test_a_budget_sets_the_deadline_that_up_and_status_show_and_the_nodes_keep(light: Rehearsed) -> None:
    """That machines end at theirs is proven by `machines/test_machines_process.py` and `test_faults.py`."""
    light.write(machines="process", caps={"runtime": "1h", "budget_usd": BUDGET_USD})
    up = json.loads(light.up("--json"))
    status = light.status()
    assert (status["deadline"], status["deadline_reason"]) == (up["deadline"], "budget")
    deadline = datetime.fromisoformat(status["deadline"])
    spent_at = datetime.fromisoformat(status["started_at"]) + timedelta(seconds=LASTS_S)
    assert timedelta(0) <= spent_at - deadline < timedelta(seconds=1)
    files = [light.on_disk(node, "/etc/clusterctl/node.json") for node in light.instance_ids()]
    assert [datetime.fromisoformat(json.loads(file)["deadline"]) for file in files] == [deadline] * 4


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
