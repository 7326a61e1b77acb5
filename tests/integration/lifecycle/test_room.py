"""A list of types: the first that AWS has room for, in the first zone with room; nothing of the asking is left."""

from __future__ import annotations

import os
import signal
import subprocess

import yaml
from clusterctl_infra.names import TRIAL_TAG

from tests.integration.recorded_stack import RESERVATION, instances
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, wait_until

LIST = ["p5en.48xlarge", "p5.48xlarge"]
ROOM = {"p5en.48xlarge": 1, "p5.48xlarge@us-west-2a": 0}


def trials(cluster: Rehearsed) -> list[str]:
    return [row.token for row in cluster.resources() if TRIAL_TAG in row.tags]


def written(cluster: Rehearsed, key: str) -> str:
    return str(yaml.safe_load((cluster.folder / "Pulumi.dev.yaml").read_text())["config"][f"clusterctl:{key}"])


def test_a_list_is_asked_for_in_order_and_a_killed_asking_leaves_nothing(recorded: Rehearsed) -> None:
    del recorded.config["zone"]
    recorded.write(machines="none", instance_type=LIST, settings={"capacity": ROOM, "latency_ms": 250})
    asked = recorded.run("up", str(recorded.folder), "--ask")
    assert "p5en.48xlarge is the most expensive of p5en.48xlarge, p5.48xlarge" in asked.stderr, asked.text
    assert "for each minute that it exists" in asked.stderr, asked.text

    recorded.keep_steps()
    quiet = subprocess.DEVNULL
    argv = [CLUSTERCTL, "up", str(recorded.folder)]
    with subprocess.Popen(argv, env=recorded.env, stdin=quiet, stdout=quiet, stderr=quiet) as child:
        wait_until(lambda: RESERVATION in trials(recorded), what="room is being asked for", timeout_s=60)
        os.kill(child.pid, signal.SIGKILL)
    assert RESERVATION in trials(recorded)

    recorded.write(machines="none", settings={"capacity": ROOM})
    made = recorded.run("up", str(recorded.folder))
    assert made.exit_code == 0, made.text
    assert "which was made to ask for capacity" in made.stderr, made.text
    assert "p5en.48xlarge  us-west-2a, us-west-2b, us-west-2c  InsufficientInstanceCapacity" in made.stderr, made.text
    assert "p5.48xlarge    us-west-2b                          room for 2" in made.stderr, made.text
    assert trials(recorded) == []
    assert written(recorded, "chosen") == '{"instance_type":"p5.48xlarge","zone":"us-west-2b"}'
    (reservation,) = (row for row in recorded.resources() if row.token == RESERVATION)
    assert (reservation.inputs["instanceType"], reservation.inputs["availabilityZone"]) == ("p5.48xlarge", "us-west-2b")

    before = instances(recorded)
    recorded.write(machines="none", instance_type=["p6-b200.48xlarge", "p5en.48xlarge"])
    recorded.up()
    assert instances(recorded) == before, "a list replaces no living node"
    assert "p5.48xlarge" in written(recorded, "chosen")
    plain = recorded.pulumi("preview", "--expect-no-changes")
    assert plain.exit_code == 0, plain.text
    assert_the_account_is_looked_at(recorded, before)


def assert_the_account_is_looked_at(cluster: Rehearsed, before: list[str]) -> None:
    """On the same cluster: with another account's credentials nothing is even previewed."""
    cluster.pulumi("config", "rm", "clusterctl:account")
    old = cluster.pulumi("up", "--yes", "--skip-preview")
    assert old.exit_code == 0, old.text
    cluster.up()
    assert instances(cluster) == before, "an old state, without the account, is left as it is"
    assert written(cluster, "account") == "000000000000"
    cluster.pulumi("config", "set", "clusterctl:account", "111122223333")
    refused = cluster.pulumi("preview")
    assert (refused.exit_code != 0, "AWS account ID not allowed: 000000000000" in refused.text) == (True, True)
