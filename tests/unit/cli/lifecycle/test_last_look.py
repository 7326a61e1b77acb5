"""What `down` finds when it asks AWS again."""

from __future__ import annotations

from typing import NoReturn

import pytest
from clusterctl.cloud.delete_orphans import NOT_ENDED
from clusterctl.cloud.resource import CloudResource
from clusterctl.cloud.resource_types import KINDS
from clusterctl.engine.state import EIP_TYPE, StackState, StateResource
from clusterctl.lifecycle.last_look import (
    ENDPOINT_TYPE,
    bill_of,
    billing,
    last_look,
    leftovers,
    look_for,
    network_bill_lines,
    refuse_leftovers,
)
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError, StillBills
from clusterctl_infra.names import ID_TAG, IDENTITY_TYPE, SLOT_TAG

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cost.paid_cluster import an_inventory

EIP = "aws:ec2/eip:Eip"
NAT = "aws:ec2/natGateway:NatGateway"


def thing(kind: str, id: str) -> CloudResource:
    return CloudResource(kind=kind, id=id)


def test_what_bills_and_is_in_no_state_is_left_over() -> None:
    found = [thing("elastic IP", "eipalloc-1"), thing("elastic IP", "eipalloc-2"), thing("subnet", "subnet-1")]
    assert [left.id for left in leftovers(found, {EIP: frozenset({"eipalloc-1"})})] == ["eipalloc-2"]


@pytest.mark.parametrize("kind", ["FSx file system", "EFS file system", "volume"])
def test_data_is_never_left_over_it_is_kept(kind: str) -> None:
    assert leftovers([thing(kind, "x-1")], {}) == ()


def test_every_kind_that_bills_and_holds_no_data_is_looked_for() -> None:
    billing = [row.name for row in KINDS if row.bills is not None and not row.is_data]
    assert {"instance", "capacity reservation", "elastic IP", "NAT gateway"} <= set(billing)
    found = [thing(name, f"{name}-1") for name in billing]
    assert [left.kind for left in leftovers(found, {})] == billing


def test_what_is_left_is_listed_with_its_bill_and_the_exit_code_says_so() -> None:
    left = [thing("instance", "i-1"), thing("NAT gateway", "nat-1")]
    with pytest.raises(StillBills, match="2 things that bill are left") as refused:
        refuse_leftovers(left, not_listed={}, again="clusterctl down stacks/train")
    assert refused.value.exit_code == 4
    assert refused.value.problems == (
        "  instance i-1: bills its hourly price",
        "  NAT gateway nat-1: bills by the hour, and for each GB that it carries",
    )
    assert refused.value.hint == "clusterctl down stacks/train"
    refuse_leftovers([], not_listed={}, again="")


def test_what_aws_does_not_tell_of_is_never_called_gone() -> None:
    """Two rights are missing; with an address left the list has both, without one it still says so."""
    no_fsx = {"FSx file system": CloudError("no", code="AccessDeniedException")}
    with pytest.raises(
        StillBills, match="not known whether everything is gone: AWS did not list every kind"
    ) as unknown:
        refuse_leftovers([], not_listed=no_fsx, again="clusterctl down stacks/train")
    assert unknown.value.problems == ("  AWS did not say whether it has: FSx file system (AccessDeniedException)",)
    with pytest.raises(StillBills, match="not all is gone: 1 thing that bills is left") as left:
        refuse_leftovers([thing("elastic IP", "eipalloc-1")], not_listed=no_fsx, again="")
    assert len(left.value.problems) == 2


def test_the_last_look_ends_what_it_could_ask_for_and_names_what_it_could_not() -> None:
    known = an_inventory()
    row = {"AllocationId": "eipalloc-1", "Tags": [{"Key": ID_TAG, "Value": known.cluster_id}]}
    rows, messages = [row], list[str]()
    clients = clients_of(
        {("us-west-2", "describe_addresses", "Addresses"): rows},
        refused={("fsx", "describe_file_systems"): "AccessDeniedException"},
    )
    identity = StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": known.cluster_id})
    with pytest.raises(StillBills) as refused:
        last_look(
            clients,
            known.cluster_id,
            StackState(resources=(identity,)),
            data_since=None,
            tell=messages.append,
            agreed=lambda resource: rows.clear(),
            again="clusterctl down stacks/train",
        )
    assert messages == ["ending elastic IP eipalloc-1: it is in no Pulumi state"]
    assert refused.value.problems == ("  AWS did not say whether it has: FSx file system (AccessDeniedException)",)


def test_a_refusal_in_the_middle_is_told_as_it_is_and_ends_the_look() -> None:
    """Nobody could tell whether another `up` goes on with what is there, so none of it is called left over."""
    known = an_inventory()
    row = {"AllocationId": "eipalloc-1", "Tags": [{"Key": ID_TAG, "Value": known.cluster_id}]}
    refusal = CloudError("the token has expired", code="ExpiredToken")

    def known_now() -> NoReturn:
        raise refusal

    identity = StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": known.cluster_id})
    with pytest.raises(CloudError) as raised:
        last_look(
            clients_of({("us-west-2", "describe_addresses", "Addresses"): [row]}),
            known.cluster_id,
            StackState(resources=(identity,)),
            data_since=None,
            tell=pytest.fail,
            agreed=lambda resource: None,
            again="clusterctl down stacks/train",
            known_now=known_now,
        )
    assert raised.value is refusal


def test_what_aws_does_not_let_go_of_is_told_even_where_it_bills_nothing() -> None:
    known = an_inventory()
    vpc = {"VpcId": "vpc-1", "Tags": [{"Key": ID_TAG, "Value": known.cluster_id}]}
    aws = clients_of(
        {("us-west-2", "describe_vpcs", "Vpcs"): [vpc]}, refused={("ec2", "delete_vpc"): "UnauthorizedOperation"}
    )
    identity = StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": known.cluster_id})
    with pytest.raises(CloudError, match="VPC vpc-1") as refused:
        last_look(
            aws,
            known.cluster_id,
            StackState(resources=(identity,)),
            data_since=None,
            tell=lambda what: None,
            agreed=lambda resource: None,
            again="clusterctl down stacks/train",
        )
    assert refused.value.code == NOT_ENDED


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


def test_a_thing_bills_as_the_row_of_its_kind_says() -> None:
    assert {row.name: bill_of(thing(row.name, "x")) for row in KINDS} == {row.name: row.bills for row in KINDS}
    assert bill_of(thing("capacity reservation", "cr-1")) is not None
    assert bill_of(thing("subnet", "subnet-1")) is None


def test_what_this_computer_knows_is_looked_for_in_its_own_region_and_not_in_the_one_of_the_file() -> None:
    known = an_inventory()
    address = {"AllocationId": "eipalloc-1", "Tags": [{"Key": ID_TAG, "Value": known.cluster_id}]}
    of_the_file = clients_of({(known.region, "describe_addresses", "Addresses"): [address]}, region="us-east-1")
    assert [resource.id for resource in billing(look_for(known, of_the_file))] == ["eipalloc-1"]


def test_with_another_accounts_credentials_nobody_says_that_nothing_bills() -> None:
    with pytest.raises(CloudError, match="in the AWS account 444455556666"):
        look_for(an_inventory(account_id="444455556666"), clients_of({}))
