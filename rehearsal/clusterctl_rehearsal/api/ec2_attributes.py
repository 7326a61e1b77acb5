"""EC2's calls that read one attribute, and those that list what no call makes, such as zones and network ACLs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.ec2_compute_views import STATE_CODES
from clusterctl_rehearsal.api.ec2_describe import check_all_found
from clusterctl_rehearsal.api.filters import matching, page
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.instances import instant
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.scheduled_events import description, events_of
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE
from clusterctl_rehearsal.region.types.network import EIP, INSTANCE, SUBNET, VPC

View = dict[str, Any]
Answer = dict[str, Any]
PREFIX_LISTS = {"s3": "pl-68a54001", "dynamodb": "pl-00a54069"}
"""AWS's ids in us-west-2 (VPC User Guide). Each list shows only a block of addresses for documentation (RFC 5737)."""


def _vpc_attribute(call: Call) -> Answer:
    """The value of enableDnsSupport, enableDnsHostnames or enableNetworkAddressUsageMetrics; false if never set."""
    vpc_id, asked = call.parameters["VpcId"], call.parameters["Attribute"]
    found = next((row for row in call.records(VPC) if row.id == vpc_id and row.is_live), None)
    check_all_found(VPC, [vpc_id], set() if found is None else {vpc_id})
    assert found is not None  # else refused above
    value = bool(found.outputs.get(asked, found.inputs.get(asked, False)))
    return {"VpcId": vpc_id, asked[:1].upper() + asked[1:]: {"Value": value}}


def _instance_attribute(call: Call) -> Answer:
    """The attribute of an instance that the request names; the provider reads some that DescribeInstances lacks."""
    id, name = call.parameters["InstanceId"], call.parameters["Attribute"]
    row = next((row for row in call.records(INSTANCE) if row.id == id), None)
    check_all_found(INSTANCE, [id], set() if row is None else {id})
    assert row is not None  # else refused above
    values: dict[str, Callable[[Record], Any]] = {
        "disableApiTermination": lambda row: {"Value": bool(row.facts.get("is_protected"))},
        "disableApiStop": lambda row: {"Value": bool(row.facts.get("is_kept_running"))},
        "instanceInitiatedShutdownBehavior": lambda row: {"Value": row.facts["shutdown"]},
        "instanceType": lambda row: {"Value": row.facts["instance_type"]},
        "userData": lambda row: {"Value": row.facts["user_data"] or None},
        "sourceDestCheck": lambda row: {"Value": row.facts["interfaces"][0].get("source_dest_check", True)},
        "ebsOptimized": lambda row: {"Value": True},
        "enaSupport": lambda row: {"Value": True},
        "rootDeviceName": lambda row: {"Value": "/dev/sda1"},
    }
    if name == "groupSet":
        return {"InstanceId": id, "Groups": [{"GroupId": group} for group in row.facts["interfaces"][0]["groups"]]}
    if name not in values:
        raise AwsError("InvalidParameterValue", f"Value ({name}) for parameter attribute is invalid.")
    return {"InstanceId": id, name[:1].upper() + name[1:]: values[name](row)}


def _network_acls(call: Call) -> Iterator[View]:
    """The default network ACL of each VPC, which admits everything."""
    for vpc in call.records(VPC):
        id = vpc.outputs["defaultNetworkAclId"]
        subnets = [row.id for row in call.records(SUBNET) if row.inputs["vpcId"] == vpc.id]
        entry = {"CidrBlock": "0.0.0.0/0", "Protocol": "-1", "RuleAction": "allow", "RuleNumber": 100}
        yield {
            "NetworkAclId": id,
            "VpcId": vpc.id,
            "OwnerId": ACCOUNT_ID,
            "IsDefault": True,
            "Entries": [{**entry, "Egress": is_egress} for is_egress in (True, False)],
            "Associations": [
                {"NetworkAclAssociationId": f"aclassoc-{subnet[7:]}", "NetworkAclId": id, "SubnetId": subnet}
                for subnet in subnets
            ],
            "Tags": [],
        }


def _prefix_lists(call: Call) -> Iterator[View]:
    for service, id in PREFIX_LISTS.items():
        name = f"com.amazonaws.{call.region_name}.{service}"
        yield {"PrefixListId": id, "PrefixListName": name, "Cidrs": ["192.0.2.0/24"]}


def _zones(call: Call) -> Iterator[View]:
    for letter in call.region.settings().zones:
        name, group = call.region_name + letter, call.region_name
        short = f"{name[:3].replace('-', '')}{name[3]}{name[-2]}-az{ord(letter) - 96}"
        where = {
            "ZoneName": name,
            "ZoneId": short,
            "RegionName": group,
            "GroupName": group,
            "NetworkBorderGroup": group,
        }
        yield {**where, "State": "available", "OptInStatus": "opt-in-not-required", "ZoneType": "availability-zone"}


def _instance_types(call: Call) -> Iterator[View]:
    """The instance types that were asked for (else all) with what the catalog knows of them."""
    for name in call.parameters.get("InstanceTypes") or sorted(call.region.catalog.types):
        kind = call.region.catalog.instance_type(name)
        if kind is None:
            raise AwsError("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]")
        yield {
            "InstanceType": name,
            "CurrentGeneration": True,
            "BareMetal": False,
            "Hypervisor": "nitro",
            "SupportedUsageClasses": list(kind.usage_classes),
            "ProcessorInfo": {"SupportedArchitectures": [kind.architecture]},
            "VCpuInfo": {"DefaultVCpus": kind.vcpus},
            "BurstablePerformanceSupported": False,
            "NetworkInfo": {
                "MaximumNetworkCards": kind.network_cards,
                "EfaSupported": kind.has_efa,
                "EfaInfo": {"MaximumEfaInterfaces": kind.max_efa_interfaces},
            },
        }


def _profile_associations(call: Call) -> Iterator[View]:
    profiles = list(call.region.store.live(INSTANCE_PROFILE))
    for row in call.records(INSTANCE):
        name = row.facts["profile"]
        found = next((profile for profile in profiles if name in (profile.id, profile.outputs["arn"])), None)
        if row.is_live and name and found is not None:
            yield {
                "AssociationId": f"iip-assoc-{row.id.removeprefix('i-')}",
                "InstanceId": row.id,
                "IamInstanceProfile": {"Arn": found.outputs["arn"], "Id": found.outputs["uniqueId"]},
                "State": "associated",
            }


def _statuses(call: Call) -> Iterator[View]:
    """The status of every running machine; with `IncludeAllInstances`, of every machine.

    A status check never fails here: a broken machine is silent instead.
    """
    for row in call.records(INSTANCE):
        is_running = row.state == "running"
        if is_running or call.parameters.get("IncludeAllInstances"):
            status = "ok" if is_running else "not-applicable"
            details = [{"Name": "reachability", "Status": "passed"}] if is_running else []
            yield {
                "InstanceId": row.id,
                "AvailabilityZone": row.facts["zone"],
                "InstanceState": {"Code": STATE_CODES[row.state], "Name": row.state},
                "InstanceStatus": {"Status": status, "Details": details},
                "SystemStatus": {"Status": status, "Details": details},
                "Events": _events(row),
            }


def _events(row: Record) -> list[View]:
    return [
        {
            "InstanceEventId": event["id"],
            "Code": event["code"],
            "Description": description(event),
            "NotBefore": instant(event["not_before"]),
            **({} if event["not_after"] is None else {"NotAfter": instant(event["not_after"])}),
        }
        for event in events_of(row)
    ]


def _address_names(call: Call) -> Iterator[View]:
    """Every elastic address, without a reverse DNS name: none can be set here."""
    for row in call.records(EIP):
        yield {"PublicIp": row.outputs["publicIp"], "AllocationId": row.id}


def listed(
    key: str,
    ids: str,
    id_key: str,
    rows: Callable[[Call], Iterable[View]],
    filters: Mapping[str, str] | None = None,
    not_found: str = "",
) -> Handler:
    """The handler of a Describe call that lists `rows`.

    `not_found`: AWS's error code for an id that does not exist; empty where AWS leaves such ids out of the answer.
    """

    def handler(call: Call) -> Answer:
        wanted = call.parameters.get(ids) or []
        shown = [view for view in rows(call) if not wanted or view[id_key] in wanted]
        missing = set(wanted) - {view[id_key] for view in shown} if not_found else set()
        if missing:
            raise AwsError(not_found, f"The ID '{missing.pop()}' does not exist")
        found, rest = page(matching(shown, call.parameters.get("Filters") or [], filters or {}), call.parameters)
        return {key: found, "NextToken": rest}

    return handler


def _credits(call: Call) -> Answer:
    """An empty list: only burstable types have credits, and the catalog has none of those."""
    wanted = call.parameters.get("InstanceIds") or []
    check_all_found(INSTANCE, wanted, {row.id for row in call.records(INSTANCE)})
    return {"InstanceCreditSpecifications": []}


def shown_tags(row: Record) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(id, kind, tags) of a living machine's root disk and of each of its interfaces."""
    if row.token != INSTANCE or not row.is_live:
        return
    kinds = row.facts["resource_tags"]
    yield "vol-" + row.id.removeprefix("i-"), "volume", kinds.get("volume", {})
    for card in row.facts["interfaces"]:
        yield card["id"], "network-interface", {**kinds.get("network-interface", {}), **(card.get("tags") or {})}


ATTRIBUTES: dict[str, Handler] = {
    "DescribeVpcAttribute": _vpc_attribute,
    "DescribeInstanceAttribute": _instance_attribute,
    "DescribeInstanceCreditSpecifications": _credits,
    "DescribeNetworkAcls": listed(
        *("NetworkAcls", "NetworkAclIds", "NetworkAclId", _network_acls),
        {"default": "IsDefault", "association.subnet-id": "Associations.SubnetId"},
        "InvalidNetworkAclID.NotFound",
    ),
    "DescribePrefixLists": listed(
        *("PrefixLists", "PrefixListIds", "PrefixListId", _prefix_lists), {}, "InvalidPrefixListId.NotFound"
    ),
    "DescribeAvailabilityZones": listed(
        *("AvailabilityZones", "ZoneNames", "ZoneName", _zones),
        {"state": "State", "opt-in-status": "OptInStatus"},
        "InvalidParameterValue",
    ),
    "DescribeInstanceTypes": listed("InstanceTypes", "InstanceTypes", "InstanceType", _instance_types),
    "DescribeIamInstanceProfileAssociations": listed(
        *("IamInstanceProfileAssociations", "AssociationIds", "AssociationId", _profile_associations)
    ),
    "DescribeInstanceStatus": listed(
        *("InstanceStatuses", "InstanceIds", "InstanceId", _statuses),
        {
            "instance-state-name": "InstanceState.Name",
            "instance-status.status": "InstanceStatus.Status",
            "system-status.status": "SystemStatus.Status",
            "event.code": "Events.Code",
            "event.description": "Events.Description",
            "event.instance-event-id": "Events.InstanceEventId",
            "event.not-before": "Events.NotBefore",
            "event.not-after": "Events.NotAfter",
            "event.not-before-deadline": "Events.NotBeforeDeadline",
        },
    ),
    "DescribeAddressesAttribute": listed("Addresses", "AllocationIds", "AllocationId", _address_names),
}
