"""What ends a cluster ends its NAT gateway and addresses, and what comes after makes them anew, or needs none."""

from __future__ import annotations

import json

from clusterctl.cloud.deadline_resources import state_machines
from clusterctl_infra.plan.ending_machine import SCHEDULE_INPUT

from tests.integration.region_access import clients_of
from tests.integration.rehearsed import Rehearsed, wait_until


def test_the_way_out_goes_with_the_machines_and_comes_with_the_next_ones(ready: Rehearsed) -> None:
    first = ways_out(ready)
    assert sorted(id.partition("-")[0] for id in first) == ["eipalloc", "nat"]
    end_as_the_deadline_does(ready)
    assert ways_out(ready) == frozenset()
    cost = json.loads(ready.ok("cost", "--json"))
    assert {row["kind"]: row["ended_at"] for row in cost["rows"]}["gateway"] is not None, "it bills no more"
    for words in (("extend", "1h"), ("replace", "--node", "0", "--yes")):
        refused = ready.run(*words)
        assert refused.exit_code == 1, refused.text
        assert "NatGateway" in refused.stderr
        assert f"next: clusterctl up {ready.folder}" in refused.stderr
    ready.up()
    again = ways_out(ready)
    assert len(again) == 2
    assert not again & first
    assert routed_to(ready) in again
    end_as_the_deadline_does(ready)
    down = ready.run("down", str(ready.folder))
    assert down.exit_code == 0, down.text
    assert ready.resources() == []


def ways_out(cluster: Rehearsed) -> frozenset[str]:
    """The ids of NAT gateways and elastic IPs that the region has."""
    kinds = (":NatGateway", ":Eip")
    return frozenset(row.id for row in cluster.resources() if row.token.endswith(kinds))


def routed_to(cluster: Rehearsed) -> str:
    """The NAT gateway that private nodes' route leads to."""
    (route,) = [row for row in cluster.resources() if row.token.endswith(":Route") and row.inputs.get("natGatewayId")]
    return str(route.inputs["natGatewayId"])


def end_as_the_deadline_does(cluster: Rehearsed) -> None:
    """Starts the state machine as the schedule does, and waits for its end."""
    clients = clients_of(cluster.env)
    (machine,) = state_machines(clients, cluster.inventory()["cluster_id"])
    arn = clients.sfn.start_execution(stateMachineArn=machine.id, input=SCHEDULE_INPUT)["executionArn"]

    def is_over() -> bool:
        return str(clients.sfn.describe_execution(executionArn=arn)["status"]) == "SUCCEEDED"

    wait_until(is_over, what="the end of the cluster", timeout_s=90)
