"""The table of kinds has all that the program makes: repairs, `down` and `reap` find nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any  # AWS's answers

import pytest
from clusterctl.cloud.resource import Meter
from clusterctl.cloud.resource_types import KINDS
from clusterctl_infra.names import ID_TAG

from tests.unit.cli.cloud.fake_answers import clients_of

ROOT = Path(__file__).resolve().parents[4]
COMPONENTS = ROOT / "infra" / "clusterctl_infra" / "components"
GOES_WITH_ITS_ROLE = ("RolePolicy", "RolePolicyAttachment")
NOT_MADE = ("Provider",)
MADE = sorted(
    {
        name
        for path in COMPONENTS.rglob("*.py")
        for name in re.findall(r"\baws\.(?:\w+\.)?([A-Z]\w+)\(", path.read_text(encoding="utf-8"))
    }
    - {*GOES_WITH_ITS_ROLE, *NOT_MADE}
)


def test_the_components_were_read() -> None:
    assert {"Instance", "CapacityReservation", "Eip", "NatGateway", "Schedule"} <= set(MADE)


def test_a_public_address_that_came_with_a_machine_bills_and_an_elastic_one_is_counted_once() -> None:
    tags = [{"Key": ID_TAG, "Value": "0123456789ab"}]
    interfaces: list[dict[str, Any]] = [
        {
            "NetworkInterfaceId": "eni-1",
            "Association": {"IpOwnerId": "amazon", "PublicIp": "203.0.113.1"},
            "TagSet": tags,
        },
        {"NetworkInterfaceId": "eni-2", "Association": {"IpOwnerId": "111122223333", "PublicIp": "203.0.113.2"}},
        {"NetworkInterfaceId": "eni-3"},
    ]
    clients = clients_of({("us-west-2", "describe_network_interfaces", "NetworkInterfaces"): interfaces})
    (row,) = [kind for kind in KINDS if kind.name == "network interface"]
    assert [resource.meter for resource in row.find(clients, None)] == [Meter(unit="address"), None, None]


@pytest.mark.parametrize(
    ("lifecycle", "meter"),
    [
        ({"InstanceLifecycle": "spot"}, Meter(unit="spot machine", name="p5.48xlarge", zone="us-west-2b")),
        ({}, Meter(unit="machine", name="p5.48xlarge")),
    ],
)
def test_a_spot_machine_bills_by_its_zone_and_another_by_its_type(lifecycle: dict[str, str], meter: Meter) -> None:
    machine = {"InstanceId": "i-1", "InstanceType": "p5.48xlarge", "Placement": {"AvailabilityZone": "us-west-2b"}}
    held = [{"Instances": [{**machine, **lifecycle}]}]
    clients = clients_of({("us-west-2", "describe_instances", "Reservations"): held})
    (row,) = [kind for kind in KINDS if kind.name == "instance"]
    assert [resource.meter for resource in row.find(clients, None)] == [meter]


@pytest.mark.parametrize("name", MADE)
def test_what_the_program_makes_has_a_row(name: str) -> None:
    known = {type.rpartition(":")[2] for kind in KINDS for type in kind.types}
    assert name in known, f"nothing would find and end a {name}: cloud/*_kinds.py"
