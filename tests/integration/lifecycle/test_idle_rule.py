"""A cluster ends itself when nobody uses it, and not while one signal on one node says otherwise."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any  # parsed JSON

import pytest
from clusterctl.cloud.boundary import Clients

from tests.integration.region_access import clients_of
from tests.integration.rehearsed import CLUSTERCTL, Rehearsed, alive_without_root, rehearsed, wait_until

LIMIT_S = 10
BUSY = "for one in 1 2 3; do (while :; do :; done) & done; wait"
"""Several, since tests that run beside this one take their share of the processors."""
COLD = {"CLUSTERCTL_WARM": "no"}
"""A kept connection of the command line would be a session for ten minutes."""


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """Three process machines whose cluster ends after ten seconds without use."""
    caps = {"runtime": "1h", "idle": f"{LIMIT_S}s"}
    with rehearsed(tmp_path_factory.mktemp("idle"), machines="process", nodes=3, caps=caps) as cluster:
        cluster.env.update(COLD)
        cluster.up()
        yield cluster


def found(cluster: Rehearsed) -> dict[str, Any]:
    """What slot 0 found last; no sign of use before its first look."""
    idle: dict[str, Any] | None = cluster.agent_status(f"{cluster.name}-0").get("idle")
    return idle or {"keeps": [], "since": None}


def idle_s(cluster: Rehearsed) -> float:
    """For how long, by what slot 0 found last."""
    since = found(cluster)["since"]
    return 0.0 if since is None else (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()


def aws(cluster: Rehearsed) -> Clients:
    """The region's API."""
    return clients_of(cluster.env)


def log(cluster: Rehearsed) -> str:
    """The log of slot 0, as long as it has a disk."""
    return cluster.on_disk(f"{cluster.name}-0", "/var/log/clusterctl.log")


@contextmanager
def after(cluster: Rehearsed, start: str, stop: str) -> Iterator[None]:
    """Slot 1 after `start` and before `stop`; no connection to it is open meanwhile."""
    cluster.ok("ssh", "--node", "1", "--", start)
    yield
    cluster.ok("ssh", "--node", "1", "--", stop)


@contextmanager
def session(cluster: Rehearsed) -> Iterator[None]:
    """Somebody is logged in on slot 1 and does nothing."""
    argv = [CLUSTERCTL, "ssh", "--node", "1", "--", "sleep", "300"]
    with subprocess.Popen(argv, env=cluster.env, cwd=cluster.folder, stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


SIGNS = {
    "a GPU that works": ("sudo simulate-gpus busy 3", "sudo simulate-gpus well", "a GPU at 97 %"),
    "a process that holds a GPU": ("sudo simulate-gpus held", "sudo simulate-gpus well", "8 GPU processes"),
    "a signal that cannot be read": ("sudo simulate-gpus lost 3", "sudo simulate-gpus well", "not readable"),
    "a job": (
        "mkdir -p /run/clusterctl/jobs && touch /run/clusterctl/jobs/train",
        "rm /run/clusterctl/jobs/train",
        "job train",
    ),
    "a program that computes": (
        f"setsid sh -c '{BUSY}' </dev/null >/dev/null 2>&1 & echo $! >/tmp/busy",
        "kill -- -$(cat /tmp/busy)",
        "processor cores in use",
    ),
    "a login": ("", "", "1 SSH session"),
}


@pytest.mark.parametrize(("start", "stop", "sign"), SIGNS.values(), ids=SIGNS.keys())
def test_one_sign_of_life_on_one_node_keeps_the_cluster(unused: Rehearsed, start: str, stop: str, sign: str) -> None:
    with after(unused, start, stop) if start else session(unused):
        wait_until(
            lambda: any(sign in line and f"{unused.name}-1" in line for line in found(unused)["keeps"]),
            what=f"slot 0 hears of {sign}: {found(unused)}",
            timeout_s=LIMIT_S,
        )
        until = time.monotonic() + LIMIT_S + 3
        while time.monotonic() < until:
            assert idle_s(unused) < LIMIT_S / 2  # a busy computer may hide a program's work from a look
            assert len(alive_without_root(unused.name)) == 3
            time.sleep(0.5)


def test_without_any_the_cluster_ends_and_its_reservation_with_it(unused: Rehearsed) -> None:
    unused.fault("kill", f"{unused.name}-2")
    logs: list[str] = []
    reasons: set[str] = set()

    def is_over() -> bool:
        logs.append(log(unused))
        reasons.update(found(unused)["keeps"])
        return alive_without_root(unused.name) == []

    try:
        # On a busy computer the agent itself may use a fifth of a core for a second, and the ten seconds begin anew.
        wait_until(is_over, what="the machines end, the lost one does not keep them", timeout_s=180)
    finally:
        print("signs of use:", *sorted(reasons), sep="\n  ")
    shown = unused.run("status")
    assert "idle since" in shown.text, max(logs, key=len)
    ec2 = aws(unused).ec2
    wait_until(
        lambda: (
            not any(row["State"] == "active" for row in ec2.describe_capacity_reservations()["CapacityReservations"])
        ),
        what="AWS cancels the reservation",
        timeout_s=60,
    )
    status = unused.status()
    assert status["ended_early"] == status["deadline"]
    assert status["deadline_reason"].startswith("idle since")
    cost = json.loads(unused.ok("cost", "--json"))
    assert cost["estimated_cost"]["usd_per_hour"] < 1  # addresses alone
    assert cost["deadline_reason"] == status["deadline_reason"]


def test_it_comes_up_again_with_a_reservation_of_its_own(unused: Rehearsed) -> None:
    """Once the state machine has looked a last time: before, it would end the new ones, too."""
    sfn = aws(unused).sfn
    machines_of = sfn.list_state_machines()["stateMachines"]
    arns = [row["stateMachineArn"] for row in machines_of if unused.status()["cluster_id"] in row["name"]]
    wait_until(
        lambda: (
            not any(
                row["status"] == "RUNNING"
                for arn in arns
                for row in sfn.list_executions(stateMachineArn=arn)["executions"]
            )
        ),
        what="the state machine is done",
        timeout_s=90,
    )
    unused.up()
    status = unused.status()
    assert (status["ready"], status["ended_early"], status["deadline_reason"]) == (3, None, "runtime")
