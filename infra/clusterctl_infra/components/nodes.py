"""The nodes: a launch template and an instance per slot, and an elastic IP where AWS gives no automatic one.

They are children of one component, not components themselves: the engine's time grows with the square of the number
of resources, so a node costs three at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # Pulumi inputs as dictionaries

import pulumi
import pulumi_aws as aws

from clusterctl_infra.names import BIRTH_TAG
from clusterctl_infra.plan.model import Capacity, PublicAddresses, SlotPlan
from clusterctl_infra.plan.spot import SpotPrice

BORN_WITH = (
    "launchTemplate.version",
    "userDataBase64",
    "rootBlockDevice.encrypted",
    "rootBlockDevice.kmsKeyId",
    "rootBlockDevice.volumeSize",
    "rootBlockDevice.volumeType",
)
"""What an instance reads when it is born and never again: a larger disk would have no larger file system on it."""
IMDS_HOP_LIMITS = {"root": 1, "users": 2}
"""How far an answer of the metadata service goes: with `imds: root` it does not get into a container on a bridge, which
is one hop away, even if the node's own firewall rule is gone (EC2 user guide, "Use IMDSv2"; 2026-11-23)."""

PATIENCE = pulumi.CustomTimeouts(create="30m", delete="60m")
"""The provider waits 10 minutes for a machine to run and 20 for it to be gone (terraform-provider-aws,
ec2_instance.go). A machine with eight GPUs may take longer, and if the provider gives up, the `up` or `down` fails."""


@dataclass(frozen=True, kw_only=True)
class SlotInputs:
    """What only one slot has; `plan` is known before anything exists, the rest once the identity is known."""

    plan: SlotPlan
    tags: pulumi.Output[Mapping[str, str]]
    replacement_trigger: pulumi.Output[str]
    user_data_base64: pulumi.Output[str]
    """A secret: it holds the slot's host key."""


@dataclass(frozen=True, kw_only=True)
class NodesArgs:
    """What all nodes share, and their slots."""

    cluster_id: pulumi.Output[str]
    instance_type: str
    image_id: pulumi.Input[str]
    root_disk_gib: int
    kms_key: str | None
    """The key that encrypts the root disks; None: the account's default for EBS."""
    subnet_id: pulumi.Input[str]
    security_group_id: pulumi.Input[str]
    public_addresses: PublicAddresses
    birth: str
    imds: str
    """Who on a node reaches the metadata service: `root` or `users`."""
    instance_profile_name: pulumi.Input[str]
    key_name: pulumi.Input[str] | None
    placement_group_name: pulumi.Input[str] | None
    reservation_id: pulumi.Input[str] | None
    market: Capacity
    spot: SpotPrice | None
    slots: tuple[SlotInputs, ...]


class Nodes(pulumi.ComponentResource):
    """All nodes; `members` says which instance is in which slot, as Membership wants it."""

    members: list[Mapping[str, pulumi.Input[Any]]]
    resources: list[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: NodesArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        after: list[pulumi.Resource],
    ) -> None:
        """`after`: what has to exist before a machine boots, such as the firewall's rules."""
        super().__init__("clusterctl:infra:Nodes", name, None, opts)
        self._prefix = name
        self._args = args
        self._after = after
        self.members = []
        self.resources = []
        for slot in args.slots:
            instance = self._instance(slot, self._template(slot))
            self.members.append(
                {
                    "slot": slot.plan.slot,
                    "name": slot.plan.name,
                    "instance_id": instance.id,
                    "public_ip": self._public_ip(slot, instance),
                }
            )
        self.register_outputs({})

    def _template(self, slot: SlotInputs) -> aws.ec2.LaunchTemplate:
        """A slot's launch template. It may change in place at any time: an instance reads it only when it is born."""
        args = self._args
        number = slot.plan.slot
        return aws.ec2.LaunchTemplate(
            f"{self._prefix}-{number}",
            name=args.cluster_id.apply(lambda id: f"clusterctl-{id}-{number}"),
            image_id=args.image_id,
            instance_type=args.instance_type,
            key_name=args.key_name,
            iam_instance_profile={"name": args.instance_profile_name},
            instance_initiated_shutdown_behavior="terminate",
            metadata_options={
                "http_endpoint": "enabled",
                "http_tokens": "required",
                "http_put_response_hop_limit": IMDS_HOP_LIMITS[args.imds],
            },
            network_interfaces=self._interfaces(slot.plan),
            placement=None if args.placement_group_name is None else {"group_name": args.placement_group_name},
            capacity_reservation_specification=_reservation(args.reservation_id),
            instance_market_options=_market(args.market, args.spot),
            # With the machine; the provider tags the disk of an instance only when it runs (ec2_instance.go, 2026-11).
            tag_specifications=[{"resource_type": kind, "tags": slot.tags} for kind in ("network-interface", "volume")],
            tags=slot.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _instance(self, slot: SlotInputs, template: aws.ec2.LaunchTemplate) -> aws.ec2.Instance:
        """A slot's machine. It is replaced only when the trigger changes; the old one goes first: it has the address.

        User-data is given here and not in the template, because the provider otherwise reads it back as plain text
        (terraform-provider-aws 6, ec2_instance.go; issues 44506 and 48793): gzip is not text, so the engine would lose
        a machine that was just made. Changed user-data is ignored, because it would stop the machine.
        """
        instance = aws.ec2.Instance(
            f"{self._prefix}-{slot.plan.slot}",
            launch_template={
                "id": template.id,
                "version": template.latest_version.apply(_version_text),
            },
            user_data_base64=slot.user_data_base64,
            root_block_device={
                "volume_type": "gp3",
                "volume_size": self._args.root_disk_gib,
                "delete_on_termination": True,
                "encrypted": True,
                **({} if self._args.kms_key is None else {"kms_key_id": self._args.kms_key}),
                "tags": slot.tags,
            },
            # In the template already. But the provider sends a placement of its own with each launch (an empty zone, in
            # ec2_instance.go), and nothing says that AWS fills up the rest of it from the template.
            placement_group=self._args.placement_group_name,
            tags=slot.tags.apply(lambda tags: {**tags, BIRTH_TAG: self._args.birth}),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=self._after,
                delete_before_replace=True,
                custom_timeouts=PATIENCE,
                ignore_changes=[*BORN_WITH, f'tags["{BIRTH_TAG}"]'],
                additional_secret_outputs=["userData", "userDataBase64"],
                replacement_trigger=slot.replacement_trigger,
            ),
        )
        self.resources.append(instance)
        return instance

    def _public_ip(self, slot: SlotInputs, instance: aws.ec2.Instance) -> pulumi.Input[str] | None:
        if self._args.public_addresses == "none":
            return None
        if self._args.public_addresses == "automatic":
            return instance.public_ip
        address = aws.ec2.Eip(
            f"{self._prefix}-{slot.plan.slot}",
            domain="vpc",
            # The interface of card 0, device 0: the only one with device 0 in our layouts, which is how the provider
            # finds the primary one. `instance=` fails with several interfaces.
            network_interface=instance.primary_network_interface_id,
            tags=slot.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.resources.append(address)
        return address.public_ip

    def _interfaces(self, plan: SlotPlan) -> pulumi.Output[list[aws.ec2.LaunchTemplateNetworkInterfaceArgsDict]]:
        """All interfaces as one output: with an output in each of 33, the SDK would take most of a program's time."""
        public_addresses = self._args.public_addresses
        return pulumi.Output.all(self._args.subnet_id, self._args.security_group_id).apply(
            lambda ids: _interface_rows(plan, public_addresses, subnet_id=ids[0], security_group_id=ids[1])
        )


def _interface_rows(
    plan: SlotPlan, public_addresses: PublicAddresses, *, subnet_id: str, security_group_id: str
) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgsDict]:
    """The template's rows, one for each interface. None outlives its machine: a p5 node would leave 32 behind."""
    rows: list[aws.ec2.LaunchTemplateNetworkInterfaceArgsDict] = []
    for interface in plan.interfaces:
        row: aws.ec2.LaunchTemplateNetworkInterfaceArgsDict = {
            "network_card_index": interface.network_card_index,
            "device_index": interface.device_index,
            "subnet_id": subnet_id,
            "security_groups": [security_group_id],
            "delete_on_termination": "true",
        }
        if interface.kind != "interface":
            row["interface_type"] = interface.kind
        if interface.private_ip is not None:
            row["private_ip_address"] = interface.private_ip
        if len(plan.interfaces) == 1:
            # AWS refuses the parameter on a machine with several interfaces.
            row["associate_public_ip_address"] = "true" if public_addresses == "automatic" else "false"
        rows.append(row)
    return rows


def _version_text(number: float | None) -> str | None:
    """The version as AWS takes it; None for a template that the engine was told to leave for later."""
    return None if number is None else str(int(number))


def _reservation(
    id: pulumi.Input[str] | None,
) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgsDict | None:
    """The reservation as the launch's target: without one, EC2 silently falls back to unreserved machines."""
    return None if id is None else {"capacity_reservation_target": {"capacity_reservation_id": id}}


def _market(market: Capacity, spot: SpotPrice | None) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgsDict | None:
    """The market that a machine is launched on; None for on-demand.

    A spot request is for one machine, and nothing is left of it when the machine has gone. A capacity block needs its
    market beside its id (EC2 User Guide, "Launch instances using Capacity Blocks"; 2026-11).

    These options are in the template and not on the instance, where another maximum price would replace the machine;
    what the provider reads back there is computed (terraform-provider-aws 6, ec2_instance.go,
    `instance_market_options`; 2026-11-22).
    """
    if market == "capacity-block":
        return {"market_type": "capacity-block"}
    if spot is None:
        return None
    options: aws.ec2.LaunchTemplateInstanceMarketOptionsSpotOptionsArgsDict = {
        "spot_instance_type": "one-time",
        "instance_interruption_behavior": "terminate",
    }
    if spot.max_price is not None:
        options["max_price"] = spot.max_price
    return {"market_type": "spot", "spot_options": options}
