"""What boto3 gets from the region."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.api.filters import check_page_size
from clusterctl_rehearsal.api.model import ServiceModel
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.lookups import parameter_value
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.addresses import EIP_ASSOCIATION
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY_ATTACHMENT
from clusterctl_rehearsal.region.types.security import EGRESS_RULE, INGRESS_RULE

from tests.unit.rehearsal.api_client import Client
from tests.unit.rehearsal.small_region import EVERYTHING, REGION, TAGS, TRUST, SmallRegion

BY_ID = [{"Name": "tag:clusterctl:id", "Values": [TAGS["clusterctl:id"]]}]


def test_an_instance_is_described_as_aws_does(world: SmallRegion, client: Client) -> None:
    node = world.node(2)
    row = client.ec2("DescribeInstances", Filters=BY_ID)["Reservations"][0]["Instances"][0]
    assert (row["InstanceId"], row["State"]) == (node.id, {"Code": 16, "Name": "running"})
    assert (row["PrivateIpAddress"], row["Placement"]["AvailabilityZone"]) == ("10.0.8.2", "us-west-2b")
    assert {tag["Key"]: tag["Value"] for tag in row["Tags"]} == {**TAGS, "clusterctl:slot": "2"}
    assert row["NetworkInterfaces"][0]["Attachment"]["NetworkCardIndex"] == 0


@pytest.mark.parametrize(("settings", "limit"), [({}, "5"), ({"quotas": {"addresses": 20}}, "20")])
def test_the_account_says_how_many_elastic_addresses_it_may_have(
    world: SmallRegion, client: Client, settings: dict[str, Any], limit: str
) -> None:
    world.behaviour.register(settings)
    (row,) = client.ec2("DescribeAccountAttributes", AttributeNames=["vpc-max-elastic-ips"])["AccountAttributes"]
    assert row == {"AttributeName": "vpc-max-elastic-ips", "AttributeValues": [{"AttributeValue": limit}]}


FILTERS: list[tuple[str, str, bool]] = [
    ("instance-state-name", "running", True),
    ("instance-state-name", "terminated", False),
    ("tag:clusterctl:slot", "0", True),
    ("tag:clusterctl:slot", "1", False),
    ("tag:clusterctl:name", "tr*n", True),
    ("tag-key", "clusterctl:slot", True),
    ("private-ip-address", "10.0.8.0", True),
    ("instance-type", "p4d.24xlarge", False),
    ("availability-zone", "us-west-2b", True),
]


@pytest.mark.parametrize(("name", "value", "found"), FILTERS)
def test_a_filter_finds_the_machines_that_have_the_value(
    world: SmallRegion, client: Client, name: str, value: str, found: bool
) -> None:
    world.node()
    rows = client.ec2("DescribeInstances", Filters=[{"Name": name, "Values": [value]}])["Reservations"]
    assert bool(rows) is found


def test_a_filter_that_aws_does_not_know_is_refused(world: SmallRegion, client: Client) -> None:
    world.node()
    asked = [{"Name": "nonsense", "Values": ["x"]}]
    assert client.ec2("DescribeInstances", Filters=asked) == "InvalidParameterValue"


def test_pages_hold_everything_once(world: SmallRegion, client: Client) -> None:
    _, subnet, group = world.network()
    made = {world.launch(world.template(subnet, group, slot)).id for slot in range(12)}
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        answer = client.ec2("DescribeInstances", MaxResults=5, **token)
        seen += [row["Instances"][0]["InstanceId"] for row in answer["Reservations"]]
        if not answer.get("NextToken"):
            break
        token = {"NextToken": answer["NextToken"]}
    assert sorted(seen) == sorted(made)


def test_another_region_sees_nothing(world: SmallRegion, client: Client) -> None:
    world.node()
    assert client.ec2("DescribeInstances", region="eu-west-1")["Reservations"] == []


def test_a_dry_run_terminates_nothing(world: SmallRegion, client: Client) -> None:
    node = world.node()
    assert client.ec2("TerminateInstances", InstanceIds=[node.id], DryRun=True) == "DryRunOperation"
    assert client.ec2("TerminateInstances", InstanceIds=[node.id, "i-0"]) == "InvalidInstanceID.NotFound"
    assert world.region.read(network.INSTANCE, node.id) is not None


DESCRIBED = [
    ("DescribeVpcs", "Vpcs", 1),
    ("DescribeSubnets", "Subnets", 1),
    ("DescribeSecurityGroups", "SecurityGroups", 2),
    ("DescribeSecurityGroupRules", "SecurityGroupRules", 2),
    ("DescribeRouteTables", "RouteTables", 2),
    ("DescribeInternetGateways", "InternetGateways", 1),
    ("DescribeNatGateways", "NatGateways", 1),
    ("DescribeVpcEndpoints", "VpcEndpoints", 1),
    ("DescribeAddresses", "Addresses", 2),
    ("DescribeNetworkInterfaces", "NetworkInterfaces", 2),
    ("DescribeLaunchTemplates", "LaunchTemplates", 1),
    ("DescribePlacementGroups", "PlacementGroups", 1),
    ("DescribeCapacityReservations", "CapacityReservations", 1),
    ("DescribeVolumes", "Volumes", 1),
    ("DescribeKeyPairs", "KeyPairs", 0),
]


def _everything(world: SmallRegion) -> dict[str, str]:
    vpc, subnet, group = world.network()
    gateway = world.make(network.INTERNET_GATEWAY, vpcId=vpc.id, tags=TAGS)
    routes = [{"cidrBlock": "0.0.0.0/0", "gatewayId": gateway.id}]
    table = world.make(network.ROUTE_TABLE, vpcId=vpc.id, routes=routes, tags=TAGS)
    association = world.make(network.ROUTE_TABLE_ASSOCIATION, routeTableId=table.id, subnetId=subnet.id)
    rule = {"securityGroupId": group.id, "ipProtocol": "-1", "referencedSecurityGroupId": group.id}
    rules = [world.make(token, **rule) for token in (INGRESS_RULE, EGRESS_RULE)]
    held = world.make(network.CIDR_RESERVATION, subnetId=subnet.id, cidrBlock="10.0.8.0/21", reservationType="explicit")
    world.make(PLACEMENT_GROUP, name="neighbours", strategy="cluster", tags=TAGS)
    reserved = world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)
    template = world.template(subnet, group, placement={"groupName": "neighbours"})
    node = world.launch(template)
    own, public = (world.make(network.EIP, domain="vpc", tags=TAGS) for _ in range(2))
    tied = world.make(
        EIP_ASSOCIATION, allocationId=own.id, networkInterfaceId=node.outputs["primaryNetworkInterfaceId"]
    )
    nat = world.make(network.NAT_GATEWAY, subnetId=subnet.id, allocationId=public.id, tags=TAGS)
    endpoint = world.make(network.VPC_ENDPOINT, vpcId=vpc.id, serviceName="com.amazonaws.us-west-2.s3", tags=TAGS)
    return {
        "vpc": vpc.id, "subnet": subnet.id, "group": group.id, "gateway": gateway.id, "table": table.id,
        "association": association.id, "ingress": rules[0].id, "egress": rules[1].id, "held": held.id,
        "reserved": reserved.id, "template": template.id, "node": node.id, "own": own.id, "public": public.id,
        "tied": tied.id, "nat": nat.id, "endpoint": endpoint.id,
    }  # fmt: skip


@pytest.mark.parametrize(("operation", "key", "count"), DESCRIBED)
def test_each_thing_of_a_cluster_is_described(
    world: SmallRegion, client: Client, operation: str, key: str, count: int
) -> None:
    _everything(world)
    rows = client.ec2(operation)[key]
    assert len(rows) == count
    assert all(row for row in rows)


def test_a_whole_cluster_ends_through_the_api(world: SmallRegion, client: Client) -> None:
    ids = _everything(world)
    world.region.delete(network.INSTANCE, ids["node"])
    for operation, parameters in (
        ("ReleaseAddress", {"AllocationId": ids["own"]}),
        ("DeleteNatGateway", {"NatGatewayId": ids["nat"]}),
        ("ReleaseAddress", {"AllocationId": ids["public"]}),
        ("DeleteVpcEndpoints", {"VpcEndpointIds": [ids["endpoint"]]}),
        ("CancelCapacityReservation", {"CapacityReservationId": ids["reserved"]}),
        ("DeletePlacementGroup", {"GroupName": "neighbours"}),
        ("DeleteLaunchTemplate", {"LaunchTemplateId": ids["template"]}),
        ("DisassociateRouteTable", {"AssociationId": ids["association"]}),
        ("DeleteRouteTable", {"RouteTableId": ids["table"]}),
        ("RevokeSecurityGroupIngress", {"GroupId": ids["group"], "SecurityGroupRuleIds": [ids["ingress"]]}),
        ("RevokeSecurityGroupEgress", {"GroupId": ids["group"], "SecurityGroupRuleIds": [ids["egress"]]}),
        ("DeleteSecurityGroup", {"GroupId": ids["group"]}),
        ("DeleteSubnetCidrReservation", {"SubnetCidrReservationId": ids["held"]}),
        ("DeleteSubnet", {"SubnetId": ids["subnet"]}),
        ("DetachInternetGateway", {"InternetGatewayId": ids["gateway"], "VpcId": ids["vpc"]}),
        ("DeleteInternetGateway", {"InternetGatewayId": ids["gateway"]}),
        ("DeleteVpc", {"VpcId": ids["vpc"]}),
    ):
        assert isinstance(client.ec2(operation, **parameters), dict), operation
    assert list(world.store.live()) == []


def test_an_attached_gateway_is_not_deleted(world: SmallRegion, client: Client) -> None:
    vpc, _, _ = world.network()
    gateway = world.make(network.INTERNET_GATEWAY, vpcId=vpc.id)
    assert client.ec2("DeleteInternetGateway", InternetGatewayId=gateway.id) == "DependencyViolation"


def test_an_elastic_address_is_untied_and_released(world: SmallRegion, client: Client) -> None:
    ids = _everything(world)
    assert client.ec2("ReleaseAddress", AllocationId=ids["own"]) == "InvalidIPAddress.InUse"
    shown = client.ec2("DescribeAddresses", AllocationIds=[ids["own"]])["Addresses"][0]
    assert (shown["InstanceId"], shown["AssociationId"]) == (ids["node"], ids["tied"])
    client.ec2("DisassociateAddress", AssociationId=ids["tied"])
    client.ec2("ReleaseAddress", AllocationId=ids["own"])
    assert client.ec2("DescribeAddresses", AllocationIds=[ids["own"]]) == "InvalidAllocationID.NotFound"


def test_a_role_and_its_profile_end_in_iams_order(world: SmallRegion, client: Client) -> None:
    world.make(ROLE, name="node", assumeRolePolicy=TRUST, tags=TAGS)
    world.make(INSTANCE_PROFILE, name="node", role="node", tags=TAGS)
    policy = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    world.make(ROLE_POLICY_ATTACHMENT, role="node", policyArn=policy)
    assert "Tags" not in client.call("iam", "ListRoles")["Roles"][0]
    assert client.call("iam", "ListRoleTags", RoleName="node")["Tags"][0]["Key"] == "clusterctl:id"
    assert client.call("iam", "ListAttachedRolePolicies", RoleName="node")["AttachedPolicies"][0]["PolicyArn"] == policy
    assert client.call("iam", "DeleteRole", RoleName="node") == "DeleteConflict"
    assert client.call("iam", "DeleteInstanceProfile", InstanceProfileName="node") == "DeleteConflict"
    for operation, parameters in (
        ("RemoveRoleFromInstanceProfile", {"InstanceProfileName": "node", "RoleName": "node"}),
        ("DeleteInstanceProfile", {"InstanceProfileName": "node"}),
        ("DetachRolePolicy", {"RoleName": "node", "PolicyArn": policy}),
        ("DeleteRole", {"RoleName": "node"}),
    ):
        assert isinstance(client.call("iam", operation, **parameters), dict), operation
    assert client.call("iam", "GetRole", RoleName="node") == "NoSuchEntity"


def test_the_account_is_one_that_aws_does_not_have(client: Client) -> None:
    assert client.call("sts", "GetCallerIdentity")["Account"] == "000000000000"


def test_an_image_parameter_is_an_image_id_and_newer_ones_come_out(world: SmallRegion, client: Client) -> None:
    name = next(iter(load_catalog().images.values())).parameters["x86_64"]
    value = client.call("ssm", "GetParameter", Name=name)["Parameter"]["Value"]
    assert value == parameter_value(name, world.behaviour.settings(), load_catalog())
    world.behaviour.set_fault("images_dated", "2027-01")
    assert client.call("ssm", "GetParameter", Name=name)["Parameter"]["Value"] != value
    for unknown in ("/mine", name.replace("22.04", "22.05"), "/aws/service/deeplearning/ami/x86_64/latest/ami-id"):
        assert client.call("ssm", "GetParameter", Name=unknown) == "ParameterNotFound"


def test_a_page_that_aws_does_not_make_is_refused(world: SmallRegion, client: Client) -> None:
    node = world.node()
    assert client.ec2("DescribeInstances", MaxResults=4) == "InvalidParameterValue"
    assert client.ec2("DescribeTags", MaxResults=1001) == "InvalidParameterValue"
    both = client.ec2("DescribeInstances", MaxResults=5, InstanceIds=[node.id])
    assert both == "InvalidParameterCombination"
    assert isinstance(client.ec2("DescribeCapacityReservations", MaxResults=1), dict)


def test_a_page_is_bounded_by_what_the_service_s_model_says() -> None:
    bounds = ServiceModel("ec2").bounds
    check_page_size("DescribeVpcs", {"MaxResults": 5}, bounds)
    check_page_size("DescribeVpcs", {}, bounds)
    for asked in (4, 1001):
        with pytest.raises(AwsError, match=rf"Value \( {asked} \) for parameter maxResults is invalid"):
            check_page_size("DescribeVpcs", {"MaxResults": asked}, bounds)


def test_iam_answers_in_pages(world: SmallRegion, client: Client) -> None:
    for number in range(5):
        world.make(ROLE, name=f"role-{number}", assumeRolePolicy=TRUST)
    seen: list[str] = []
    mark: dict[str, str] = {}
    for rows in (2, 2, 1):
        answer = client.call("iam", "ListRoles", MaxItems=2, **mark)
        seen += [row["RoleName"] for row in answer["Roles"]]
        assert len(answer["Roles"]) == rows
        assert answer["IsTruncated"] is (rows == 2)
        mark = {"Marker": answer["Marker"]} if rows == 2 else {}
    assert sorted(seen) == [f"role-{number}" for number in range(5)]
    assert client.call("iam", "ListRoles", Marker="not ours") == "InvalidInput"


def test_an_instance_shows_what_it_was_launched_with(world: SmallRegion, client: Client) -> None:
    _, subnet, group = world.network()
    plain = shown(client, world.launch(world.template(subnet, group)).id)
    assert plain["MetadataOptions"]["HttpTokens"] == "optional"
    assert plain["CapacityReservationSpecification"] == {"CapacityReservationPreference": "open"}
    reserved = world.make(
        CAPACITY_RESERVATION,
        **{**EVERYTHING[CAPACITY_RESERVATION], "instanceMatchCriteria": "targeted"},
    )
    target = {"capacityReservationTarget": {"capacityReservationId": reserved.id}}
    options = {"httpTokens": "required", "httpPutResponseHopLimit": 2, "instanceMetadataTags": "enabled"}
    template = world.template(subnet, group, 1, metadataOptions=options, capacityReservationSpecification=target)
    view = shown(client, world.launch(template).id)
    assert view["MetadataOptions"]["HttpTokens"] == "required"
    assert view["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert view["MetadataOptions"]["InstanceMetadataTags"] == "enabled"
    reservation_id = view["CapacityReservationSpecification"]["CapacityReservationTarget"]["CapacityReservationId"]
    assert reservation_id == reserved.id


def shown(client: Client, id: str) -> dict[str, Any]:
    """The instance in DescribeInstances."""
    view: dict[str, Any] = client.ec2("DescribeInstances", InstanceIds=[id])["Reservations"][0]["Instances"][0]
    return view


def test_a_quota_of_vcpus_is_told_where_the_region_has_one(world: SmallRegion, client: Client) -> None:
    asked = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}
    assert client.call("service-quotas", "GetServiceQuota", **asked) == "NoSuchResourceException"
    world.behaviour.set_fault("quotas", {"vcpus": 384})
    assert client.call("service-quotas", "GetServiceQuota", **asked)["Quota"]["Value"] == 384.0


def test_the_tagging_api_finds_what_carries_the_id(world: SmallRegion, client: Client) -> None:
    world.node()
    wanted = [{"Key": "clusterctl:id", "Values": [TAGS["clusterctl:id"]]}]
    rows = client.call("resourcegroupstaggingapi", "GetResources", TagFilters=wanted)["ResourceTagMappingList"]
    assert len(rows) == 5
    rows = client.call(
        "resourcegroupstaggingapi", "GetResources", TagFilters=wanted, ResourceTypeFilters=["ec2:instance"]
    )["ResourceTagMappingList"]
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("ec2", "RebootInstances", "InvalidAction"),
        ("iam", "CreateUser", "InvalidAction"),
        ("ssm", "GetParameters", "UnknownOperationException"),
    ],
)
def test_an_operation_that_is_not_known_is_never_a_silent_ok(
    client: Client, service: str, operation: str, code: str
) -> None:
    parameters: dict[str, Any] = {
        "RebootInstances": {"InstanceIds": ["i-0"]},
        "CreateUser": {"UserName": "x"},
        "GetParameters": {"Names": ["x"]},
    }
    assert client.call(service, operation, **parameters[operation]) == code


def test_buckets_are_listed_by_name(world: SmallRegion, client: Client) -> None:
    names = [f"data-{letter}" for letter in "hcgafbed"]
    world.behaviour.register({"buckets": names[:4]})
    for name in names[4:]:
        client.call("s3", "CreateBucket", Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    assert [row["Name"] for row in client.call("s3", "ListBuckets")["Buckets"]] == sorted(names)


def test_an_object_that_is_too_large_is_refused_in_s3_s_own_words(client: Client) -> None:
    assert client.too_large("s3") == (400, "EntityTooLarge")
    assert client.too_large("states") == (413, None)


def test_tags_of_aws_s_own_stay_where_all_are_deleted(world: SmallRegion, client: Client) -> None:
    vpc, _, _ = world.network()
    own = {"aws:cloudformation:stack-name": "theirs"}
    world.store.put(dataclasses.replace(vpc, outputs={**vpc.outputs, "tagsAll": {**own, "team": "vision"}}))
    client.ec2("DeleteTags", Resources=[vpc.id])
    (shown,) = client.ec2("DescribeVpcs", VpcIds=[vpc.id])["Vpcs"]
    assert {tag["Key"]: tag["Value"] for tag in shown["Tags"]} == own


def test_a_gateway_of_another_region_is_not_found(world: SmallRegion, client: Client) -> None:
    vpc, _, _ = world.network()
    gateway = client.ec2("CreateInternetGateway")["InternetGateway"]["InternetGatewayId"]
    asked = {"InternetGatewayId": gateway, "VpcId": vpc.id}
    elsewhere = client.call("ec2", "AttachInternetGateway", region="eu-north-1", **asked)
    assert elsewhere == "InvalidInternetGatewayID.NotFound"
    assert client.ec2("DescribeInternetGateways")["InternetGateways"][0]["Attachments"] == []


def test_an_association_that_cannot_be_replaced_stays(world: SmallRegion, client: Client) -> None:
    vpc, subnet, _ = world.network()
    table = world.make(network.ROUTE_TABLE, vpcId=vpc.id, tags=TAGS)
    other_vpc = world.make(network.VPC, cidrBlock="10.1.0.0/16", tags=TAGS)
    other_table = world.make(network.ROUTE_TABLE, vpcId=other_vpc.id, tags=TAGS)
    tie = client.ec2("AssociateRouteTable", RouteTableId=table.id, SubnetId=subnet.id)["AssociationId"]
    refused = client.ec2("ReplaceRouteTableAssociation", AssociationId=tie, RouteTableId=other_table.id)
    assert refused == "InvalidParameterValue"
    (shown,) = client.ec2("DescribeRouteTables", RouteTableIds=[table.id])["RouteTables"]
    assert [row["RouteTableAssociationId"] for row in shown["Associations"]] == [tie]
