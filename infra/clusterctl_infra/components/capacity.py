"""Room for all nodes, or for none: one reservation, inside one placement group, before any node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws

from clusterctl_infra.components.network import named


@dataclass(frozen=True, kw_only=True)
class CapacityArgs:
    """What capacity is made from; `end_date` as EC2 writes it, `2026-11-21T17:22:00Z`."""

    cluster_id: pulumi.Output[str]
    instance_type: str
    places: int
    """0: nothing is reserved. A reservation costs the same whether machines use it or not, so none is made without
    nodes, or beside nodes that run outside it."""
    placement: Literal["cluster", "none"]
    zone: pulumi.Input[str]
    end_date: pulumi.Input[str]
    tags: pulumi.Output[Mapping[str, str]]


class Capacity(pulumi.ComponentResource):
    """The placement group and the reservation; None where there is none."""

    placement_group_name: pulumi.Output[str] | None
    reservation_id: pulumi.Output[str] | None

    def __init__(
        self,
        name: str,
        args: CapacityArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        after: list[pulumi.Resource],
    ) -> None:
        """`after`: what has to exist before the first second is paid."""
        super().__init__("clusterctl:infra:Capacity", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = None
        if args.placement == "cluster":
            group = aws.ec2.PlacementGroup(
                f"{name}-neighbourhood",
                name=args.cluster_id.apply(lambda id: f"clusterctl-{id}"),
                strategy="cluster",
                tags=named(args.tags, f"{name}-neighbourhood"),
                opts=child,
            )
        reservation = None
        if args.places > 0:
            reservation = aws.ec2.CapacityReservation(
                f"{name}-reservation",
                instance_type=args.instance_type,
                instance_count=args.places,
                instance_platform="Linux/UNIX",
                availability_zone=args.zone,
                instance_match_criteria="targeted",
                placement_group_arn=None if group is None else group.arn,
                end_date_type="limited",
                end_date=args.end_date,
                tags=named(args.tags, f"{name}-reservation"),
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
        self.placement_group_name = None if group is None else group.name
        self.reservation_id = None if reservation is None else reservation.id
        self.register_outputs({})
