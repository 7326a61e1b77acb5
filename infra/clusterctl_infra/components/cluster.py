"""The cluster as one Pulumi component: identity → network → inventory → storage → capacity → nodes → membership."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any  # resource outputs before they are read

import pulumi
import pulumi_aws as aws

from clusterctl_infra.catalog.reader import Catalog, load_catalog
from clusterctl_infra.components import lookups
from clusterctl_infra.components.access import Access, AccessArgs
from clusterctl_infra.components.birth import (
    FACTS,
    Birth,
    Facts,
    inventory_with_members,
    login_private_key,
    login_public_key,
)
from clusterctl_infra.components.capacity import Capacity, CapacityArgs
from clusterctl_infra.components.choices import (
    architecture_of,
    has_login_key,
    reserved_places,
    slot_range,
    uses_session_manager,
)
from clusterctl_infra.components.deadline_guard import DeadlineGuard, DeadlineGuardArgs
from clusterctl_infra.components.early_end import EarlyEnd, EarlyEndArgs, is_needed
from clusterctl_infra.components.firewall import Firewall, FirewallArgs
from clusterctl_infra.components.network import Network, NetworkArgs
from clusterctl_infra.components.nodes import Nodes, NodesArgs, SlotInputs
from clusterctl_infra.components.own_resources import IdentityResource, InventoryResource, MembershipResource
from clusterctl_infra.components.registrations import wait_in_turn
from clusterctl_infra.components.stack import current_settings
from clusterctl_infra.components.storage.storage import Mounts, Storage, StorageArgs
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.stack import StackSettings
from clusterctl_infra.home_path import home_path
from clusterctl_infra.launch import launch_facts
from clusterctl_infra.ledger_correction import correction_to_json
from clusterctl_infra.names import DEADLINE_TAG, PRICES_FILE
from clusterctl_infra.plan.inventory import cluster_name
from clusterctl_infra.plan.live_facts import live_facts_hash, ordered_ranks
from clusterctl_infra.plan.model import ClusterPlan, SlotPlan

Tags = pulumi.Output[Mapping[str, str]]
AWS_ATTEMPTS = 8
"""About two minutes of waiting. The provider's default, 25, takes more than half an hour to say that there is no
capacity: it retries InsufficientInstanceCapacity like any other failure (terraform-provider-aws,
ec2/service_package_extra.go)."""


def utc_now() -> datetime:
    """The present second."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """What a cluster is made from; `settings` defaults to those of the stack that runs."""

    config: ClusterConfig
    settings: StackSettings | None = None
    catalog: Catalog | None = None
    clock: Callable[[], datetime] = utc_now


class Cluster(pulumi.ComponentResource):
    """A cluster on AWS; `inventory` is what a stack exports and the command line reads.

    Raises PlanRefused before anything is created when the configuration has problems or a cap says no. AWS resources
    are made in the configuration's region, by a provider of the component's own, or by the one given in `opts`.
    """

    inventory: pulumi.Output[Mapping[str, Any]]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self._prefix = name
        self._birth = Birth(
            config=args.config,
            catalog=args.catalog if args.catalog is not None else load_catalog(home_path(os.environ) / PRICES_FILE),
            settings=args.settings if args.settings is not None else current_settings(),
            now=args.clock(),
        )
        self._draft = self._birth.draft()
        super().__init__("clusterctl:infra:Cluster", name, None, opts)
        self._aws: pulumi.ProviderResource = self._aws_provider()
        self._account_id = lookups.account_id(self._invoke_options())
        # Not looked up for `down`: a bucket that is gone by then must not prevent the end.
        mounted = () if self._birth.settings.down else self._draft.storage
        self._bucket_regions = lookups.bucket_regions(mounted, region=self._draft.region, opts=self._invoke_options())
        self._identity = self._make_identity()
        # The seed is a secret, so everything made from the facts is one, until `unsecret` marks it as plain.
        facts = pulumi.Output.all(**{fact: getattr(self._identity, fact) for fact in FACTS})
        self._facts: pulumi.Output[Facts] = pulumi.Output.secret(facts)
        # Of the keys a plan holds only the public halves: nothing in it is a secret.
        self._plan: pulumi.Output[ClusterPlan] = pulumi.Output.unsecret(self._facts.apply(self._birth.plan))
        self._tags: Tags = self._plan.apply(lambda plan: plan.tags)
        self.inventory = self._make()
        wait_in_turn()
        self.register_outputs({})

    def _make(self) -> pulumi.Output[Mapping[str, Any]]:
        network = Network(self._prefix, self._network_args(), self._aws_child())
        firewall = Firewall(
            self._prefix,
            FirewallArgs(vpc_id=network.vpc_id, ssh_cidrs=self._draft.network.ssh_cidrs, tags=self._tags),
            self._aws_child(),
        )
        access = Access(self._prefix, self._access_args(), self._aws_child())
        planned = pulumi.Output.all(self._plan, self._account_id).apply(lambda both: self._birth.inventory_json(*both))
        written = self._make_inventory(planned)
        storage = self._make_storage(network, firewall, access)
        stored = [] if storage is None else storage.ready
        mounts: Mounts = pulumi.Output.from_input(()) if storage is None else storage.mounts
        # Storage first: it may take ten minutes, and a reservation is paid from its first second.
        guard = [*self._make_guard(), *self._make_early_end(access)]
        before_capacity = [*network.ready, written, *stored, *guard]
        capacity = Capacity(self._prefix, self._capacity_args(), self._aws_child(), after=before_capacity)
        nodes = Nodes(
            self._prefix,
            self._nodes_args(network, firewall, access, capacity, mounts),
            self._aws_child(),
            after=[*network.ready, *firewall.rules, *access.ready, written, *stored, *guard],
        )
        membership = self._make_membership(nodes, written)
        return pulumi.Output.all(planned, membership.members, membership.generation, membership.deadline).apply(
            lambda rows: inventory_with_members(*rows)
        )

    def _make_identity(self) -> IdentityResource:
        config, draft, invoke = self._birth.config, self._draft, self._invoke_options()
        zone = lookups.zone_candidate(
            config,
            known=self._birth.settings.zone,
            instance_type=draft.instance_type,
            must_exist=not self._birth.settings.down,
            opts=invoke,
        )
        image = lookups.image_candidate(
            config, self._birth.catalog, architecture=architecture_of(self._draft, self._birth.catalog), opts=invoke
        )
        return IdentityResource(
            f"{self._prefix}-identity",
            name=config.name,
            owner=config.owner or "unknown",
            image_spec=config.image,
            image_candidate=image,
            # Waits for the account and the buckets, too, so that AWS has answered everything before anything is made.
            zone_candidate=pulumi.Output.all(zone, self._account_id, *self._bucket_regions.values()).apply(
                lambda answers: answers[0]
            ),
            run=self._birth.settings.run,
            launch=launch_facts(placement=draft.placement, capacity=draft.capacity) if draft.slots else None,
            slot_range=slot_range(draft),
            layout=self._birth.settings.layout,
            instance_type=None if self._birth.settings.chosen is None else self._birth.settings.chosen.instance_type,
            opts=self._child(),
        )

    def _make_storage(self, network: Network, firewall: Firewall, access: Access) -> Storage | None:
        if not self._draft.storage:
            return None
        args = StorageArgs(
            plan=self._draft.storage,
            region=self._draft.region,
            bucket_regions=self._bucket_regions,
            vpc_id=network.vpc_id,
            subnet_id=network.service_subnet_id,
            node_group_id=firewall.security_group_id,
            role_name=access.role_name,
            tags=self._tags,
        )
        return Storage(self._prefix, args, self._aws_child())

    def _make_guard(self) -> list[pulumi.Resource]:
        """The guard that ends the machines at the deadline: made before any machine bills, and not without machines."""
        if not self._draft.slots:
            return []
        args = DeadlineGuardArgs(
            cluster_id=self._identity.cluster_id,
            account_id=self._account_id,
            region=self._draft.region,
            deadline=self._tags.apply(lambda tags: tags[DEADLINE_TAG]),
            permissions_boundary=self._birth.config.permissions_boundary,
            tags=self._tags,
        )
        return DeadlineGuard(self._prefix, args, self._aws_child()).ready

    def _make_early_end(self, access: Access) -> list[pulumi.Resource]:
        if not self._draft.slots or not is_needed(self._birth.config.caps):
            return []
        args = EarlyEndArgs(
            cluster_id=self._identity.cluster_id,
            account_id=self._account_id,
            region=self._draft.region,
            role_name=access.role_name,
        )
        return EarlyEnd(self._prefix, args, self._aws_child()).ready

    def _make_inventory(self, planned: pulumi.Output[Mapping[str, Any]]) -> InventoryResource:
        return InventoryResource(
            f"{self._prefix}-inventory",
            inventory=planned,
            login_key=self._facts.apply(login_private_key) if has_login_key(self._birth.config) else None,
            opts=self._child(),
        )

    def _make_membership(self, nodes: Nodes, written: InventoryResource) -> MembershipResource:
        correction = self._birth.settings.correction
        return MembershipResource(
            f"{self._prefix}-membership",
            cluster=self._account_id.apply(lambda id: cluster_name(self._draft.name, account_id=id)),
            cluster_id=self._identity.cluster_id,
            run=self._identity.run,
            started_at=self._identity.started_at,
            deadline=self._plan.apply(lambda plan: plan.deadline.at.isoformat()),
            planned_at=self._birth.now.isoformat(),
            rates={
                "node_price_usd_per_hour": self._draft.price.node_usd_per_hour,
                "disks_usd_per_hour": self._draft.price.disks_usd_per_hour,
                "addresses_usd_per_hour": self._draft.price.addresses_usd_per_hour,
                "gateway_usd_per_hour": self._draft.price.gateway_usd_per_hour,
                "storage_usd_per_hour": self._draft.price.storage_usd_per_hour,
            },
            members=nodes.members,
            live=live_facts_hash(self._birth.config),
            ranks=ordered_ranks(self._draft),
            correction=None if correction is None else correction_to_json(correction),
            generation_floor=self._birth.settings.generation_floor or None,
            opts=self._child(depends_on=[written, *nodes.resources]),
        )

    def _network_args(self) -> NetworkArgs:
        return NetworkArgs(
            plan=self._draft.network,
            has_nodes=bool(self._draft.slots),
            region=self._draft.region,
            zone=self._identity.zone,
            tags=self._tags,
        )

    def _access_args(self) -> AccessArgs:
        public = (
            pulumi.Output.unsecret(self._facts.apply(login_public_key)) if has_login_key(self._birth.config) else None
        )
        return AccessArgs(
            cluster_id=self._identity.cluster_id,
            region=self._draft.region,
            login_public_key=public,
            with_session_manager=uses_session_manager(self._birth.config, self._draft),
            permissions_boundary=self._birth.config.permissions_boundary,
            tags=self._tags,
        )

    def _capacity_args(self) -> CapacityArgs:
        return CapacityArgs(
            cluster_id=self._identity.cluster_id,
            instance_type=self._draft.instance_type,
            places=reserved_places(self._draft, self._birth.settings),
            placement=self._draft.placement if self._draft.placement_group is None else "none",
            zone=self._identity.zone,
            end_date=self._tags.apply(lambda tags: tags[DEADLINE_TAG]),
            tags=self._tags,
        )

    def _nodes_args(
        self, network: Network, firewall: Firewall, access: Access, capacity: Capacity, mounts: Mounts
    ) -> NodesArgs:
        return NodesArgs(
            cluster_id=self._identity.cluster_id,
            instance_type=self._draft.instance_type,
            image_id=self._identity.image_id,
            root_disk_gib=self._birth.config.root_disk,
            kms_key=self._birth.config.kms_key,
            subnet_id=network.node_subnet_id,
            security_group_id=firewall.security_group_id,
            public_addresses=self._draft.network.public_addresses,
            birth=self._draft.birth,
            imds=self._birth.config.imds,
            instance_profile_name=access.instance_profile_name,
            key_name=access.key_name,
            placement_group_name=self._draft.placement_group or capacity.placement_group_name,
            reservation_id=self._draft.reservation_id or capacity.reservation_id,
            market=self._draft.capacity,
            spot=self._draft.price.spot,
            slots=tuple(self._slot_inputs(slot, mounts) for slot in self._draft.slots),
        )

    def _slot_inputs(self, slot: SlotPlan, mounts: Mounts) -> SlotInputs:
        number = slot.slot
        return SlotInputs(
            plan=slot,
            tags=self._plan.apply(lambda plan: plan.slots[number].tags),
            replacement_trigger=self._plan.apply(lambda plan: plan.slots[number].replacement_trigger),
            user_data_base64=pulumi.Output.all(self._facts, self._plan, mounts).apply(
                lambda known: self._birth.user_data_base64(known[0], known[1], known[2], number)
            ),
        )

    def _aws_provider(self) -> pulumi.ProviderResource:
        given = self.get_provider("aws:ec2/instance:Instance")
        if given is not None:
            return given
        account = self._birth.settings.account
        return aws.Provider(
            f"{self._prefix}-aws",
            region=self._birth.config.region,
            # With another account's credentials a refresh would find no machine, and forget those that live.
            allowed_account_ids=None if account is None else [account],
            max_retries=AWS_ATTEMPTS,
            opts=self._child(),
        )

    def _invoke_options(self) -> pulumi.InvokeOutputOptions:
        return pulumi.InvokeOutputOptions(parent=self, provider=self._aws)

    def _child(self, *, depends_on: list[pulumi.Resource] | None = None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=depends_on)

    def _aws_child(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, providers=[self._aws])
