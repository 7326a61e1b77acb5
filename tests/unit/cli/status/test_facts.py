"""What AWS is asked about a cluster, depending on what AWS and the nodes have answered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any  # what boto3 gives and takes

from clusterctl.status.cloud_answers import Asked, Instances, ask_events
from clusterctl.status.facts import _unless_heard
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.fake_clients import FakeClients
from tests.unit.cli.status.status_facts import READY, SILENT, machine

PATIENCE_S = 30.0


def test_what_ended_a_cluster_is_not_asked_while_a_node_of_it_answers() -> None:
    gone = (machine(0, "terminated"), machine(1, "terminated"))
    assert _unless_heard(gone, {0: SILENT, 1: READY}) is None
    assert _unless_heard(gone, {0: SILENT}) == gone
    assert _unless_heard((), {}) == ()


class Statuses:
    """A paginator of DescribeInstanceStatus that keeps which machines were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_paginator(self, operation: str) -> Statuses:
        assert operation == "describe_instance_status"
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        self.asked += asked["InstanceIds"]
        for id in asked["InstanceIds"]:
            yield {"InstanceStatuses": [{"InstanceId": id, "Events": [{"Code": "instance-stop"}]}]}


def test_aws_is_asked_what_it_plans_for_the_machines_that_run() -> None:
    statuses, running = Statuses(), machine(0)
    machines: Instances = (running, machine(1, "terminated"), machine(2, "pending"))
    found = ask_events(lambda: FakeClients(ec2=statuses), Asked(lambda: machines))
    assert statuses.asked == [running.instance_id]
    assert [event.code for event in found or ()] == ["instance-stop"]


def test_where_nothing_runs_or_aws_is_silent_it_is_not_asked_what_it_plans() -> None:
    ended: Instances = (machine(0, "terminated"),)
    assert ask_events(FakeClients, Asked(lambda: ended)) == ()

    def silent() -> Instances:
        raise CloudError("no", code="RequestLimitExceeded")

    assert ask_events(FakeClients, Asked(silent)) is None


def test_an_answer_can_be_waited_for_by_two() -> None:
    for _ in range(20):
        waits = threading.Event()

        def also(first: Asked[bool], waits: threading.Event) -> bool | None:
            waits.set()
            return first.answer()[0]

        first = Asked(partial(waits.wait, PATIENCE_S), timeout_s=PATIENCE_S)
        second = Asked(partial(also, first, waits), timeout_s=PATIENCE_S)
        assert (first.answer(), second.answer()) == ((True, None), (True, None))
