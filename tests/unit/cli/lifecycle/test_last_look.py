"""What `down` finds when it asks AWS again."""

from __future__ import annotations

import pytest
from clusterctl.cloud.found import Found
from clusterctl.cloud.kinds import KINDS
from clusterctl.engine.state import EIP_TYPE, StackState, StateResource
from clusterctl.lifecycle.last_look import (
    ENDPOINT_TYPE,
    bill_of,
    billing_of,
    leftovers,
    network_bill_lines,
    refuse_leftovers,
)
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError, StillBills
from clusterctl_infra.names import ID_TAG, SLOT_TAG

from tests.unit.cli.cloud.fake_session import clients_of
from tests.unit.cli.test_cost import an_inventory

EIP = "aws:ec2/eip:Eip"
NAT = "aws:ec2/natGateway:NatGateway"


def thing(kind: str, id: str) -> Found:
    return Found(kind=kind, id=id)


def test_what_bills_and_is_in_no_state_is_left_over() -> None:
    found = [thing("elastic IP", "eipalloc-1"), thing("elastic IP", "eipalloc-2"), thing("subnet", "subnet-1")]
    assert [one.id for one in leftovers(found, {EIP: frozenset({"eipalloc-1"})})] == ["eipalloc-2"]


@pytest.mark.parametrize("kind", ["FSx file system", "EFS file system", "volume"])
def test_data_is_never_left_over_it_is_kept(kind: str) -> None:
    assert leftovers([thing(kind, "x-1")], {}) == ()


def test_every_kind_that_bills_and_holds_no_data_is_looked_for() -> None:
    billing = [row.name for row in KINDS if row.bills is not None and not row.is_data]
    assert {"instance", "capacity reservation", "elastic IP", "NAT gateway"} <= set(billing)
    found = [thing(name, f"{name}-1") for name in billing]
    assert [one.kind for one in leftovers(found, {})] == billing


def test_what_is_left_is_listed_with_its_bill_and_the_exit_code_says_so() -> None:
    left = [thing("instance", "i-1"), thing("NAT gateway", "nat-1")]
    with pytest.raises(StillBills, match="2 things that bill are left") as refused:
        refuse_leftovers(left, again="clusterctl down stacks/train")
    assert refused.value.exit_code == 4
    assert refused.value.problems == (
        "  instance i-1: bills its hourly price",
        "  NAT gateway nat-1: bills by the hour, and for each GB that it carries",
    )
    assert refused.value.hint == "clusterctl down stacks/train"
    refuse_leftovers([], again="")


def test_the_network_that_is_kept_is_named_with_its_bill() -> None:
    rows = (
        StateResource(urn="u::nat", type=NAT, id="nat-1"),
        StateResource(urn="u::s3", type=ENDPOINT_TYPE, id="vpce-1", inputs={"vpcEndpointType": "Gateway"}),
        StateResource(urn="u::ssm", type=ENDPOINT_TYPE, id="vpce-2", inputs={"vpcEndpointType": "Interface"}),
        StateResource(urn="u::nat", type=EIP_TYPE, id="eipalloc-1", inputs={"tags": {}}),
        StateResource(urn="u::node", type=EIP_TYPE, id="eipalloc-2", inputs={"tags": {SLOT_TAG: "0"}}),
    )
    assert network_bill_lines(StackState(resources=rows), load_catalog(), region="us-west-2") == [
        "NAT gateway nat-1: about $0.045 an hour",
        "VPC endpoint vpce-2: about $0.01 an hour",
        "elastic IP eipalloc-1: about $0.005 an hour",
    ]
    assert network_bill_lines(StackState(resources=rows[:1]), load_catalog(), region="eu-south-2") == [
        "NAT gateway nat-1: bills by the hour, at a price not known here"
    ]


def test_every_thing_that_is_found_has_a_row_of_the_table() -> None:
    assert all(bill_of(thing(row.name, "x")) == row.bills for row in KINDS)


def test_what_this_computer_knows_is_looked_for_in_its_own_region_and_not_in_the_one_of_the_file() -> None:
    known = an_inventory()
    address = {"AllocationId": "eipalloc-1", "Tags": [{"Key": ID_TAG, "Value": known.cluster_id}]}
    of_the_file = clients_of({(known.region, "describe_addresses", "Addresses"): [address]}, region="us-east-1")
    assert [one.id for one in billing_of(known, of_the_file)] == ["eipalloc-1"]


def test_with_another_accounts_credentials_nobody_says_that_nothing_bills() -> None:
    with pytest.raises(CloudError, match="in the AWS account 444455556666"):
        billing_of(an_inventory(account_id="444455556666"), clients_of({}))
