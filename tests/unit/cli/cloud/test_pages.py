"""Every list of EC2 is asked for in pages, and machines are read without their interfaces: seen at botocore's wire."""

from __future__ import annotations

from typing import Any  # botocore's parameters
from urllib.parse import parse_qs

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import EC2_PAGE, AwsClients
from clusterctl_infra.region_keys import KeyPair

MACHINE = (
    "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>{0}"
    "<tagSet><item><key>clusterctl:slot</key><value>&lt;networkInterfaceSet&gt;</value></item></tagSet>{0}"
    "<instanceType>p5.48xlarge</instanceType></item></instancesSet></item></reservationSet></DescribeInstancesResponse>"
)
CARDS = "<networkInterfaceSet><item><networkInterfaceId>eni-1</networkInterfaceId></item>\n</networkInterfaceSet>"
EMPTY = "<{0}Response><requestId>r</requestId></{0}Response>"
LAST = "<{0}Response><nextToken>{1}</nextToken></{0}Response>"


class Wire:
    """Answers instead of the network, and keeps what was asked."""

    def __init__(self, tokens: tuple[str, ...] = (), *, answer: str = EMPTY) -> None:
        self.tokens = list(tokens)
        self.answer = answer
        self.asked: list[dict[str, list[str]]] = []

    def __call__(self, request: Any, **_: object) -> Any:
        body = parse_qs(request.body if isinstance(request.body, str) else request.body.decode())
        self.asked.append(body)
        action = body["Action"][0]
        text = LAST.format(action, self.tokens.pop(0)) if self.tokens else self.answer.format(action)
        response: Any = AWSResponse(request.url, 200, HTTPHeaders(), None)
        response._content = text.encode()  # as if botocore had read it from the network
        return response


def clients(wire: Wire) -> Clients:
    keys = KeyPair(access_key_id="AKIAX", secret_access_key="x")
    found = AwsClients(region="us-west-2", endpoint_url="http://127.0.0.1:1", keys=keys)
    events: Any = found.ec2.meta.events  # its types want a listener without an answer
    events.register("before-send.ec2", wire)
    return found


@pytest.mark.parametrize(
    "operation",
    ["describe_instances", "describe_route_tables", "describe_launch_templates", "describe_capacity_reservations"],
)
def test_a_list_is_asked_for_page_by_page(operation: str) -> None:
    wire = Wire(tokens=("second",))
    list(clients(wire).ec2.get_paginator(operation).paginate())  # type: ignore[call-overload]  # names are literals
    assert [row["MaxResults"] for row in wire.asked] == [[str(EC2_PAGE)]] * 2
    assert [row.get("NextToken") for row in wire.asked] == [None, ["second"]]


def test_ids_and_a_size_of_its_own_stay_as_they_are() -> None:
    wire = Wire()
    ec2 = clients(wire).ec2
    ec2.describe_capacity_reservations(CapacityReservationIds=["cr-0123456789abcdef0"])
    ec2.describe_instances(MaxResults=5)
    ec2.describe_addresses()
    assert [row.get("MaxResults") for row in wire.asked] == [None, ["5"], None]


def test_of_instances_all_is_read_but_their_interfaces() -> None:
    wire = Wire(answer=MACHINE.format(CARDS))
    answer = clients(wire).ec2.describe_instances()
    (row,) = answer["Reservations"][0]["Instances"]
    tags = [{"Key": "clusterctl:slot", "Value": "<networkInterfaceSet>"}]
    assert row == {"InstanceId": "i-1", "Tags": tags, "InstanceType": "p5.48xlarge"}


def test_interfaces_that_are_asked_for_are_read() -> None:
    text = f"<DescribeNetworkInterfacesResponse>{CARDS}</DescribeNetworkInterfacesResponse>"
    answer = clients(Wire(answer=text)).ec2.describe_network_interfaces()
    assert [row["NetworkInterfaceId"] for row in answer["NetworkInterfaces"]] == ["eni-1"]
