"""The Cluster component: which resources it makes, and how they hang together."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl_infra.config.fields import KMS_EXAMPLE
from clusterctl_infra.names import BIRTH_TAG
from clusterctl_infra.outputs import inventory_from_json
from clusterctl_infra.replaceable import birth_facts, trigger_facts
from pulumi.runtime.settings import SETTINGS

from tests.unit.infra.components.recorded_program import (
    ELASTIC_IP,
    INSTANCE,
    LAUNCH_TEMPLATE,
    SECRET_SIGNATURE,
    Recording,
    as_text,
    cluster_program,
    graph,
    record,
    short,
)
from tests.unit.infra.components.write_golden import GOLDEN

PRIVATE: dict[str, Any] = {"access": {"mode": "private"}}
RULES = (
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
)
OUR_TAGS = {"clusterctl:id", "clusterctl:name", "clusterctl:owner", "clusterctl:deadline"}
WITHOUT_TAGS = {
    "aws:ec2/route:Route",
    "aws:ec2/routeTableAssociation:RouteTableAssociation",
    "aws:ec2/subnetCidrReservation:SubnetCidrReservation",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:scheduler/schedule:Schedule",
}


def test_names_parents_dependencies_and_options_are_those_of_the_golden_graph(four_nodes: Recording) -> None:
    message = "if it is meant: python -m tests.unit.infra.components.write_golden"
    assert as_text(graph(four_nodes)) == GOLDEN.read_text(encoding="utf-8"), message


@pytest.mark.usefixtures("four_nodes")
def test_the_sdk_has_a_registration_to_wait_for_when_the_program_ends() -> None:
    """Else it waits for all outputs of all resources, again for each of them: minutes at 256 nodes.

    In a process's first program the SDK also waits for calls of its own, so another program runs before.
    """
    under_way: list[int] = []

    def program() -> Any:
        exported = cluster_program()()
        under_way.append(len(SETTINGS.rpc_manager.rpcs))
        return exported

    record(program)
    assert under_way == [1]


def test_a_node_costs_three_resources_at_most() -> None:
    few, more = record(cluster_program(nodes=2)), record(cluster_program(nodes=3))
    assert len(more.resources) - len(few.resources) == 3
    few, more = record(cluster_program(nodes=2, **PRIVATE)), record(cluster_program(nodes=3, **PRIVATE))
    assert len(more.resources) - len(few.resources) == 2


def test_a_node_is_replaced_by_its_trigger_alone_and_before_its_successor_is_made(four_nodes: Recording) -> None:
    for row in four_nodes.of_type(INSTANCE):
        assert row.request.deleteBeforeReplace
        disk = [f"rootBlockDevice.{name}" for name in ("encrypted", "kmsKeyId", "volumeSize", "volumeType")]
        ignored = ["launchTemplate.version", "userDataBase64", *disk, 'tags["clusterctl:birth"]']
        assert list(row.request.ignoreChanges) == ignored
        assert trigger_facts(row.request.replacement_trigger.string_value)["instance_type"] == "p5.48xlarge"
        assert birth_facts(row.inputs["tags"]["clusterctl:birth"])["imds"] == "root"
        assert row.inputs["launchTemplate"] == {"id": f"{row.name}-id", "version": "1"}


def test_the_placement_group_is_said_at_the_launch_too(four_nodes: Recording) -> None:
    group = four_nodes.one("aws:ec2/placementGroup:PlacementGroup").inputs["name"]
    assert {row.inputs["placementGroup"] for row in four_nodes.of_type(INSTANCE)} == {group}


def test_a_large_machine_is_waited_for_longer_than_the_provider_would(four_nodes: Recording) -> None:
    for row in four_nodes.of_type(INSTANCE):
        assert (row.request.customTimeouts.create, row.request.customTimeouts.delete) == ("30m", "60m")


def test_only_instances_are_deleted_before_they_are_replaced(four_nodes: Recording) -> None:
    """A resource with this option that depends on an instance would be deleted along with a replaced instance."""
    types = {row.type for row in four_nodes.resources if row.request.deleteBeforeReplace}
    assert types == {INSTANCE}


def test_nodes_wait_for_rules_reservation_inventory_and_routes(four_nodes: Recording) -> None:
    waited = {short(urn).partition(" ")[0] for urn in four_nodes.one(INSTANCE, "train-0").request.dependencies}
    assert waited >= {
        "SecurityGroupIngressRule",
        "SecurityGroupEgressRule",
        "SubnetCidrReservation",
        "RouteTableAssociation",
        "Route",
        "Inventory",
        "LaunchTemplate",
        "InstanceProfile",
    }


def test_capacity_is_reserved_in_the_placement_group_after_the_inventory_and_before_any_node(
    four_nodes: Recording,
) -> None:
    row = four_nodes.one("aws:ec2/capacityReservation:CapacityReservation")
    assert row.inputs["instanceCount"] == 4
    assert (row.inputs["instanceMatchCriteria"], row.inputs["endDateType"]) == ("targeted", "limited")
    assert row.inputs["endDate"] == "2026-03-02T12:00:00Z"
    assert row.inputs["placementGroupArn"] == "train-neighbourhood-arn"
    assert "Inventory train-inventory" in {short(urn) for urn in row.request.dependencies}
    for template in four_nodes.of_type(LAUNCH_TEMPLATE):
        target = template.inputs["capacityReservationSpecification"]["capacityReservationTarget"]
        assert target == {"capacityReservationId": "train-reservation-id"}


def test_a_shortage_is_said_within_minutes(four_nodes: Recording) -> None:
    """The provider repeats InsufficientInstanceCapacity, by default for more than half an hour."""
    (provider,) = four_nodes.of_type("pulumi:providers:aws")
    assert provider.inputs["maxRetries"] in (8, "8")


def test_the_provider_works_in_the_account_that_was_written_down_and_in_any_before(four_nodes: Recording) -> None:
    (anywhere,) = four_nodes.of_type("pulumi:providers:aws")
    assert "allowedAccountIds" not in anywhere.inputs
    (provider,) = record(cluster_program(account="111122223333")).of_type("pulumi:providers:aws")
    assert "111122223333" in str(provider.inputs["allowedAccountIds"])


def test_the_firewall_names_itself_in_both_directions(four_nodes: Recording) -> None:
    rows = {row.name: row.inputs for token in RULES for row in four_nodes.of_type(token)}
    for name in ("train-from-nodes", "train-to-nodes"):
        assert rows[name]["referencedSecurityGroupId"] == rows[name]["securityGroupId"] == "train-nodes-id"
        assert rows[name]["ipProtocol"] == "-1"
        assert not {"fromPort", "toPort", "cidrIpv4"} & rows[name].keys()
    assert rows["train-to-everywhere"]["cidrIpv4"] == "0.0.0.0/0"
    assert rows["train-ssh-203.0.113.7-32"]["cidrIpv4"] == "203.0.113.7/32"
    assert rows["train-ssh-203.0.113.7-32"]["toPort"] == 22


def test_no_interface_outlives_its_machine(four_nodes: Recording) -> None:
    interfaces = four_nodes.one(LAUNCH_TEMPLATE, "train-1").inputs["networkInterfaces"]
    assert len(interfaces) == 33
    assert {row["deleteOnTermination"] for row in interfaces} == {"true"}


def test_only_the_first_interface_has_an_address_and_none_asks_for_a_public_one(four_nodes: Recording) -> None:
    first, *others = four_nodes.one(LAUNCH_TEMPLATE, "train-1").inputs["networkInterfaces"]
    assert (first["networkCardIndex"], first["deviceIndex"]) == (0, 0)
    assert first["privateIpAddress"] == "10.0.8.1"
    assert {row["interfaceType"] for row in others} == {"efa-only"}
    assert not [row for row in (first, *others) if "associatePublicIpAddress" in row]
    assert not [row for row in others if "privateIpAddress" in row]


@pytest.mark.parametrize(("access", "expected"), [("public", "true"), ("private", "false")])
def test_a_single_interface_says_whether_it_gets_a_public_address(access: str, expected: str) -> None:
    changes: dict[str, Any] = {"fabric": "none", "access": {"mode": access, "ssh_from": ["203.0.113.7/32"]}}
    recording = record(cluster_program(**changes))
    (interface,) = recording.one(LAUNCH_TEMPLATE, "train-0").inputs["networkInterfaces"]
    assert interface["associatePublicIpAddress"] == expected
    assert [row.name for row in recording.of_type(ELASTIC_IP) if row.name != "train-nat"] == []


def test_an_elastic_address_is_on_the_primary_interface(four_nodes: Recording) -> None:
    rows = four_nodes.of_type(ELASTIC_IP)
    assert [row.inputs["networkInterface"] for row in rows] == [f"train-{slot}-eni" for slot in range(4)]
    assert not [row for row in rows if "instance" in row.inputs]


def test_private_nodes_go_out_through_a_gateway_and_to_s3_past_it() -> None:
    recording = record(cluster_program(**PRIVATE))
    assert recording.one("aws:ec2/natGateway:NatGateway").inputs["subnetId"] == "train-services-id"
    endpoint = recording.one("aws:ec2/vpcEndpoint:VpcEndpoint").inputs
    assert (endpoint["serviceName"], endpoint["routeTableIds"]) == ("com.amazonaws.us-west-2.s3", ["train-nodes-id"])
    policy = json.loads(recording.one("aws:iam/rolePolicy:RolePolicy", "train-session-manager").inputs["policy"])
    (statement,) = policy["Statement"]
    assert not [action for action in statement["Action"] if "Parameter" in action or "*" in action]
    assert "ssmmessages:OpenDataChannel" in statement["Action"]
    waited = {short(urn) for urn in recording.one(INSTANCE, "train-0").request.dependencies}
    assert {"Route train-nodes-out", "VpcEndpoint train-s3"} <= waited


def test_a_public_cluster_s_nodes_may_do_nothing_in_the_account(four_nodes: Recording) -> None:
    assert [row.name for row in four_nodes.of_type("aws:iam/rolePolicy:RolePolicy")] == ["train-deadline"]


def test_a_policy_of_the_account_bounds_every_role() -> None:
    boundary = "arn:aws:iam::123456789012:policy/engineers"
    recording = record(cluster_program(permissions_boundary=boundary))
    roles = recording.of_type("aws:iam/role:Role")
    assert {row.inputs["permissionsBoundary"] for row in roles} == {boundary}
    assert len(roles) == 2


def test_only_this_account_s_schedules_and_state_machines_may_take_the_deadline_s_role(four_nodes: Recording) -> None:
    role = four_nodes.one("aws:iam/role:Role", "train-deadline")
    (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}


@pytest.mark.parametrize(("imds", "hops"), [("root", 1), ("users", 2)])
def test_the_metadata_service_answers_containers_only_where_users_may_ask(imds: str, hops: int) -> None:
    recording = record(cluster_program(imds=imds))
    options = recording.one(LAUNCH_TEMPLATE, "train-0").inputs["metadataOptions"]
    assert options["httpPutResponseHopLimit"] == hops


def test_the_slot_range_is_held_explicitly(four_nodes: Recording) -> None:
    row = four_nodes.one("aws:ec2/subnetCidrReservation:SubnetCidrReservation")
    assert (row.inputs["cidrBlock"], row.inputs["reservationType"]) == ("10.0.8.0/21", "explicit")


def test_user_data_is_a_secret_that_carries_the_slot_s_birth(four_nodes: Recording) -> None:
    for row in four_nodes.of_type(INSTANCE):
        sent = row.request.object.fields["userDataBase64"].struct_value.fields
        assert SECRET_SIGNATURE in sent
        text = gzip.decompress(base64.b64decode(sent["value"].string_value)).decode()
        assert "0123456789ab" in text
        assert "OPENSSH PRIVATE KEY" in text
        assert list(row.request.additionalSecretOutputs) == ["userData", "userDataBase64"]


def test_a_template_carries_no_user_data_since_the_provider_would_read_it_back_in_plain_sight(
    four_nodes: Recording,
) -> None:
    """AWS keeps every version of a template, and the provider shows an instance's user-data unless it gave it."""
    assert not [row.name for row in four_nodes.of_type(LAUNCH_TEMPLATE) if "userData" in row.inputs]


def test_tags_are_no_secret_and_on_everything_that_takes_them(four_nodes: Recording) -> None:
    for row in four_nodes.resources:
        if row.type.startswith("aws:") and row.type not in WITHOUT_TAGS:
            assert row.inputs["tags"].keys() >= OUR_TAGS, row.urn
    instance = four_nodes.one(INSTANCE, "train-3").inputs
    assert instance["tags"]["clusterctl:slot"] == "3"
    shared = {name: tag for name, tag in instance["tags"].items() if name != BIRTH_TAG}
    disk = {"volumeType": "gp3", "volumeSize": 200, "deleteOnTermination": True, "encrypted": True}
    assert instance["rootBlockDevice"] == {**disk, "tags": shared}


def test_disks_and_interfaces_carry_their_tags_from_the_start(four_nodes: Recording) -> None:
    template = four_nodes.one(LAUNCH_TEMPLATE, "train-3").inputs
    tags = {row["resourceType"]: row["tags"] for row in template["tagSpecifications"]}
    assert tags == {"network-interface": template["tags"], "volume": template["tags"]}


def test_a_key_of_a_persons_own_encrypts_disks(four_nodes: Recording) -> None:
    recording = record(cluster_program(kms_key=KMS_EXAMPLE))
    assert recording.one(INSTANCE, "train-0").inputs["rootBlockDevice"]["kmsKeyId"] == KMS_EXAMPLE
    triggers = [
        made.one(INSTANCE, "train-0").request.replacement_trigger.string_value for made in (recording, four_nodes)
    ]
    assert triggers[0] == triggers[1]


def test_a_machine_that_shuts_down_is_gone_and_speaks_imdsv2_only(four_nodes: Recording) -> None:
    inputs = four_nodes.one(LAUNCH_TEMPLATE, "train-0").inputs
    assert inputs["instanceInitiatedShutdownBehavior"] == "terminate"
    assert inputs["metadataOptions"]["httpTokens"] == "required"


def test_the_inventory_is_exported_with_the_members_in_it(four_nodes: Recording) -> None:
    made = inventory_from_json(dict(four_nodes.exported), source="a test")
    assert [node.instance_id for node in made.nodes] == [f"train-{slot}-id" for slot in range(4)]
    assert [node.public_ip for node in made.nodes] == [f"train-{slot}-elastic" for slot in range(4)]
    assert (made.generation, made.cluster, made.zone) == (1, "train", "us-west-2b")


def test_no_resource_input_is_a_path_of_this_computer(four_nodes: Recording) -> None:
    def texts(value: object) -> list[str]:
        if isinstance(value, dict):
            return [text for item in value.values() for text in texts(item)]
        if isinstance(value, list):
            return [text for item in value for text in texts(item)]
        return [value] if isinstance(value, str) else []

    found = [text for row in four_nodes.resources for text in texts(row.inputs) if text.startswith("/")]
    assert found == []
