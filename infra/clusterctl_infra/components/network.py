"""The cluster's network: two subnets, the range held for slots, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from clusterctl_infra.plan.model import NetworkPlan

EVERYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What the network is made from; `tags` are the cluster's."""

    plan: NetworkPlan
    has_nodes: bool
    """Without nodes, no NAT gateway is made, since it bills by the hour."""
    region: str
    zone: pulumi.Input[str]
    tags: pulumi.Output[Mapping[str, str]]


class Network(pulumi.ComponentResource):
    """A VPC with a subnet for nodes and one for services, all in one zone, made or adopted.

    `ready` is what a node has to wait for: earlier, a machine might boot without a way out, or something else might
    have taken a slot's address.
    """

    vpc_id: pulumi.Output[str]
    node_subnet_id: pulumi.Output[str]
    service_subnet_id: pulumi.Output[str]
    ready: list[pulumi.Resource]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("clusterctl:infra:Network", name, None, opts)
        self._prefix = name
        self._args = args
        if args.plan.adopted_vpc_id is None:
            self._make()
        else:
            self._adopt(args.plan)
        self.register_outputs({})

    def _make(self) -> None:
        """A network of the cluster's own."""
        name, args = self._prefix, self._args
        vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args.plan.vpc_cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=self._tags("vpc"),
            opts=self._child(),
        )
        nodes = self._subnet("nodes", vpc, args.plan.node_subnet_cidr)
        services = self._subnet("services", vpc, args.plan.service_subnet_cidr)
        # Before anything else is put into the subnet: AWS then gives these addresses only to requests that name one.
        slots = aws.ec2.SubnetCidrReservation(
            f"{name}-slots",
            subnet_id=nodes.id,
            cidr_block=args.plan.slot_cidr,
            reservation_type="explicit",
            description="clusterctl: addresses of nodes, by slot",
            opts=self._child(),
        )
        gateway = aws.ec2.InternetGateway(
            f"{name}-gateway", vpc_id=vpc.id, tags=self._tags("gateway"), opts=self._child()
        )
        self.vpc_id = vpc.id
        self.node_subnet_id = nodes.id
        self.service_subnet_id = services.id
        self.ready = [slots]
        out = self._route_table("services", vpc, services)
        to_internet = self._route("services", out, gateway_id=gateway.id)
        if args.plan.public_addresses == "none":
            self._private_way_out(vpc, nodes, services, to_internet)
        else:
            self._public_way_out(nodes, out, to_internet)

    def _adopt(self, plan: NetworkPlan) -> None:
        """Uses a network that exists: makes, changes and waits for nothing."""
        self.vpc_id = pulumi.Output.from_input(plan.adopted_vpc_id or "")
        self.node_subnet_id = pulumi.Output.from_input(plan.adopted_node_subnet_id or "")
        services = plan.adopted_service_subnet_id or plan.adopted_node_subnet_id or ""
        self.service_subnet_id = pulumi.Output.from_input(services)
        self.ready = []

    def _public_way_out(self, nodes: aws.ec2.Subnet, table: aws.ec2.RouteTable, to_internet: aws.ec2.Route) -> None:
        """Nodes have addresses of their own and share the services' routes."""
        self.ready += [to_internet, self._association("nodes", nodes, table)]

    def _private_way_out(
        self, vpc: aws.ec2.Vpc, nodes: aws.ec2.Subnet, services: aws.ec2.Subnet, to_internet: aws.ec2.Route
    ) -> None:
        """Nodes go out through a NAT gateway, and to S3 through a gateway endpoint, which costs nothing."""
        table = self._route_table("nodes", vpc, nodes)
        s3 = aws.ec2.VpcEndpoint(
            f"{self._prefix}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{self._args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id],
            tags=self._tags("s3"),
            opts=self._child(),
        )
        self.ready.append(s3)
        if not self._args.has_nodes:
            return
        address = aws.ec2.Eip(
            f"{self._prefix}-nat", domain="vpc", tags=self._tags("nat"), opts=self._child(depends_on=[to_internet])
        )
        nat = aws.ec2.NatGateway(
            f"{self._prefix}-nat",
            subnet_id=services.id,
            allocation_id=address.id,
            tags=self._tags("nat"),
            opts=self._child(depends_on=[to_internet]),
        )
        self.ready.append(self._route("nodes", table, nat_gateway_id=nat.id))

    def _subnet(self, role: str, vpc: aws.ec2.Vpc, cidr: str) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            f"{self._prefix}-{role}",
            vpc_id=vpc.id,
            cidr_block=cidr,
            availability_zone=self._args.zone,
            tags=self._tags(role),
            opts=self._child(),
        )

    def _route_table(self, role: str, vpc: aws.ec2.Vpc, subnet: aws.ec2.Subnet) -> aws.ec2.RouteTable:
        """A table and its association with the subnet, which nodes wait for."""
        table = aws.ec2.RouteTable(f"{self._prefix}-{role}", vpc_id=vpc.id, tags=self._tags(role), opts=self._child())
        self.ready.append(self._association(role, subnet, table))
        return table

    def _association(
        self, role: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable
    ) -> aws.ec2.RouteTableAssociation:
        return aws.ec2.RouteTableAssociation(
            f"{self._prefix}-{role}", subnet_id=subnet.id, route_table_id=table.id, opts=self._child()
        )

    def _route(
        self,
        role: str,
        table: aws.ec2.RouteTable,
        *,
        gateway_id: pulumi.Input[str] | None = None,
        nat_gateway_id: pulumi.Input[str] | None = None,
    ) -> aws.ec2.Route:
        return aws.ec2.Route(
            f"{self._prefix}-{role}-out",
            route_table_id=table.id,
            destination_cidr_block=EVERYWHERE,
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
            opts=self._child(),
        )

    def _tags(self, role: str) -> pulumi.Output[Mapping[str, str]]:
        return named(self._args.tags, f"{self._prefix}-{role}")

    def _child(self, *, depends_on: list[pulumi.Resource] | None = None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=depends_on)


def named(tags: pulumi.Output[Mapping[str, str]], name: str) -> pulumi.Output[Mapping[str, str]]:
    """The tags with the name that AWS's console shows."""
    return tags.apply(lambda rows: {**rows, "Name": name})
