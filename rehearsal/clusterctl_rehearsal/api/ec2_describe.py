"""EC2's Describe calls: one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api import ec2_compute_views as compute
from clusterctl_rehearsal.api import ec2_views as views
from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.filters import matching, page
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types import capacity, network, security
from clusterctl_rehearsal.region.types.table import TYPES

View = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Described:
    """One Describe call: which records it shows, and the names of its parameters and keys."""

    token: str
    key: str
    """The key of the list in the answer."""
    ids: str
    """The name of the parameter that selects by id."""
    id_key: str
    """The key of the id in a view."""
    view: views.ViewOf
    filters: Mapping[str, str] = field(default_factory=dict)
    records: Callable[[Call], list[Record]] | None = None
    around: Callable[[Call, Record, View], View] | None = None
    besides: Callable[[Call], Iterable[View]] | None = None
    """Gives the views of what AWS itself makes of this kind, such as default security groups."""


def _describe(row: Described) -> Handler:
    def handler(call: Call) -> dict[str, Any]:
        found = row.records(call) if row.records is not None else call.records(row.token)
        by_id = {resource.id: resource for resource in found}
        shown = [views.tagged(call, resource, row.view(call, resource)) for resource in found]
        shown += row.besides(call) if row.besides is not None else ()
        wanted = call.parameters.get(row.ids) or []
        if wanted:
            shown = [view for view in shown if view[row.id_key] in wanted]
            check_all_found(row.token, wanted, {view[row.id_key] for view in shown})
        asked = call.parameters.get("Filters") or call.parameters.get("Filter") or []
        rows, rest = page(matching(shown, asked, row.filters), call.parameters)
        around = row.around
        if around is not None:
            rows = [around(call, by_id[view[row.id_key]], view) for view in rows]
        return {row.key: rows, "NextToken": rest}

    return handler


def check_all_found(token: str, wanted: Sequence[str], found: set[str]) -> None:
    """Raises AWS's error for the wanted ids that were not found."""
    missing = [id for id in wanted if id not in found]
    if missing:
        kind, what = TYPES[token], "IDs" if len(missing) > 1 else "ID"
        verb = "do" if len(missing) > 1 else "does"
        raise AwsError(kind.not_found, f"The {kind.kind} {what} '{', '.join(missing)}' {verb} not exist")


def _of_subnet(call: Call) -> list[Record]:
    wanted = call.parameters["SubnetId"]
    return [row for row in call.records(network.CIDR_RESERVATION) if row.inputs["subnetId"] == wanted]


_DESCRIBED = {
    "DescribeInstances": Described(
        token=network.INSTANCE,
        key="Reservations",
        ids="InstanceIds",
        id_key="InstanceId",
        view=compute.instance,
        around=compute.reservation,
        filters={
            "instance-state-name": "State.Name",
            "instance-state-code": "State.Code",
            "availability-zone": "Placement.AvailabilityZone",
            "placement-group-name": "Placement.GroupName",
            "ip-address": "PublicIpAddress",
            "instance.group-id": "SecurityGroups.GroupId",
            "network-interface.network-interface-id": "NetworkInterfaces.NetworkInterfaceId",
            "state-reason-code": "StateReason.Code",
        },
    ),
    "DescribeVpcs": Described(token=network.VPC, key="Vpcs", ids="VpcIds", id_key="VpcId", view=views.vpc),
    "DescribeSubnets": Described(
        token=network.SUBNET, key="Subnets", ids="SubnetIds", id_key="SubnetId", view=views.subnet
    ),
    "DescribeSecurityGroups": Described(
        token=network.SECURITY_GROUP,
        key="SecurityGroups",
        ids="GroupIds",
        id_key="GroupId",
        view=views.security_group,
        besides=views.default_groups,
    ),
    "DescribeSecurityGroupRules": Described(
        token=security.INGRESS_RULE,
        records=views.rules,
        key="SecurityGroupRules",
        ids="SecurityGroupRuleIds",
        id_key="SecurityGroupRuleId",
        view=views.security_group_rule,
    ),
    "DescribeRouteTables": Described(
        token=network.ROUTE_TABLE,
        key="RouteTables",
        ids="RouteTableIds",
        id_key="RouteTableId",
        view=views.route_table,
        besides=views.main_route_tables,
        filters={
            "association.subnet-id": "Associations.SubnetId",
            "association.main": "Associations.Main",
            "association.route-table-association-id": "Associations.RouteTableAssociationId",
        },
    ),
    "DescribeInternetGateways": Described(
        token=network.INTERNET_GATEWAY,
        key="InternetGateways",
        ids="InternetGatewayIds",
        id_key="InternetGatewayId",
        view=views.internet_gateway,
        filters={"attachment.vpc-id": "Attachments.VpcId"},
    ),
    "DescribeNatGateways": Described(
        token=network.NAT_GATEWAY,
        key="NatGateways",
        ids="NatGatewayIds",
        id_key="NatGatewayId",
        view=views.nat_gateway,
    ),
    "DescribeVpcEndpoints": Described(
        token=network.VPC_ENDPOINT,
        key="VpcEndpoints",
        ids="VpcEndpointIds",
        id_key="VpcEndpointId",
        view=views.vpc_endpoint,
    ),
    "DescribeAddresses": Described(
        token=network.EIP, key="Addresses", ids="AllocationIds", id_key="AllocationId", view=views.address
    ),
    "DescribeKeyPairs": Described(
        token=security.KEY_PAIR, key="KeyPairs", ids="KeyNames", id_key="KeyName", view=views.key_pair
    ),
    "DescribePlacementGroups": Described(
        token=capacity.PLACEMENT_GROUP,
        key="PlacementGroups",
        ids="GroupNames",
        id_key="GroupName",
        view=compute.placement_group,
    ),
    "DescribeCapacityReservations": Described(
        token=CAPACITY_RESERVATION,
        key="CapacityReservations",
        ids="CapacityReservationIds",
        id_key="CapacityReservationId",
        view=compute.capacity_reservation,
    ),
    "DescribeLaunchTemplates": Described(
        token=LAUNCH_TEMPLATE,
        key="LaunchTemplates",
        ids="LaunchTemplateIds",
        id_key="LaunchTemplateId",
        view=compute.launch_template,
    ),
    "GetSubnetCidrReservations": Described(
        token=network.CIDR_RESERVATION,
        records=_of_subnet,
        key="SubnetIpv4CidrReservations",
        ids="",
        id_key="SubnetCidrReservationId",
        view=views.cidr_reservation,
    ),
}

DESCRIBE: dict[str, Handler] = {operation: _describe(row) for operation, row in _DESCRIBED.items()}
