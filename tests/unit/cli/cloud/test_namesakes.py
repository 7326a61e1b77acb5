"""Two clusters of one name in an account: what AWS's tags say of the other one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore.stub import Stubber
from clusterctl.cloud.clients import AwsClients
from clusterctl.cloud.instances import other_ids_alive

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OWN, OTHER = "0123456789ab", "ba9876543210"


def tags(id: str, deadline: str) -> list[dict[str, str]]:
    rows = {"clusterctl:id": id, "clusterctl:name": "train", "clusterctl:deadline": deadline}
    return [{"Key": key, "Value": value} for key, value in rows.items()]


@pytest.mark.parametrize(
    ("machine_of", "network_of", "deadline", "others"),
    [
        (OTHER, None, "2026-03-01T11:00:00Z", (OTHER,)),
        (None, OTHER, "2026-03-01T13:00:00Z", (OTHER,)),
        (None, OTHER, "2026-03-01T11:00:00Z", ()),
        (None, OTHER, "none", ()),
        (OWN, OWN, "2026-03-01T13:00:00Z", ()),
    ],
    ids=["runs", "comes up: no machine yet", "is past its deadline", "is down on purpose", "is this one"],
)
def test_another_one_is_alive_with_a_machine_or_a_network_and_time(
    machine_of: str | None, network_of: str | None, deadline: str, others: tuple[str, ...]
) -> None:
    clients = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1")
    with Stubber(clients.ec2) as aws:
        machines = [] if machine_of is None else [{"InstanceId": "i-0a", "Tags": tags(machine_of, deadline)}]
        aws.add_response("describe_instances", {"Reservations": [{"Instances": machines}]})
        vpcs = [] if network_of is None else [{"VpcId": "vpc-0a", "Tags": tags(network_of, deadline)}]
        aws.add_response("describe_vpcs", {"Vpcs": vpcs})
        assert other_ids_alive(clients, "train", own_id=OWN, now=NOW) == others
