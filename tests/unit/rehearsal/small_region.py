"""A region on a temporary folder, without machines and without a server: the real code, told the time."""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any  # property values

from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.machines.auto import choose
from clusterctl_rehearsal.region.behaviour import Behaviour
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.failure_alarms import turn_on
from clusterctl_rehearsal.region.instances import Instances
from clusterctl_rehearsal.region.launch import LAUNCH_TEMPLATE
from clusterctl_rehearsal.region.machine_room import MachineRoom
from clusterctl_rehearsal.region.metadata import MetadataService
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.region import Region
from clusterctl_rehearsal.region.shares import Shares
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types import network
from clusterctl_rehearsal.region.types.capacity import PLACEMENT_GROUP
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE
from clusterctl_rehearsal.region.types.security import INGRESS_RULE
from clusterctl_rehearsal.states.executions import Executions
from clusterctl_rehearsal.states.interpreter import Call
from clusterctl_rehearsal.storage.bucket_service import BucketService

CATALOG = load_catalog()
REGION = "us-west-2"
CLUSTER_ID = "0123456789ab"
TAGS = {"clusterctl:id": CLUSTER_ID, "clusterctl:name": "train"}
TRUST = json.dumps({"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]})


class SmallRegion:
    """Makes resources by their types' defaults; `now` is what its clock says."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now = 1_800_000_000.0
        self.folder = folder
        self.behaviour = Behaviour(folder)
        self.buckets = folder / "buckets"
        (folder / "store").mkdir(parents=True, exist_ok=True)
        self.behaviour.register(settings)
        self.store = Store(folder / "store", clock=lambda: self.now)
        room = MachineRoom(
            folder=folder / "machines",
            choose=partial(choose, root=folder / "machines", cache=folder / "cache"),
            store=self.store,
            files=lambda record: {},
            shares=dict,
            binds=dict,
            metadata=MetadataService(lambda network, address: None),
            buckets=BucketService(self.buckets),
        )
        self.instances = Instances(store=self.store, room=room, clock=lambda: self.now)
        self.region = Region(
            store=self.store,
            catalog=CATALOG,
            settings=self.behaviour.settings,
            instances=self.instances,
            shares=Shares(folder / "shares"),
            clock=lambda: self.now,
            pause=self._let_time_pass,
        )

        self.ec2: Call = nobody
        """EC2 as state machines call it; a test that runs one sets it."""
        self.executions = Executions(
            file=folder / "executions.jsonl",
            calls=lambda region: self.ec2,
            after=partial(turn_on, self.region),
            clock=lambda: self.now,
            pause=self._let_time_pass,
            begin=lambda run: run(),
        )

    def _let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    def make(self, token: str, request: str = "", **inputs: Any) -> Record:
        """The new resource."""
        self.now += 1
        return self.region.create(
            token, inputs, region=REGION, request=request, machines="none", progress=lambda message: None
        )

    def network(self) -> tuple[Record, Record, Record]:
        """VPC, subnet, security group."""
        vpc = self.make(network.VPC, cidrBlock="10.0.0.0/16", tags=TAGS)
        subnet = self.make(
            network.SUBNET, vpcId=vpc.id, cidrBlock="10.0.0.0/20", availabilityZone="us-west-2b", tags=TAGS
        )
        return vpc, subnet, self.make(network.SECURITY_GROUP, vpcId=vpc.id, name="nodes", tags=TAGS)

    def template(self, subnet: Record, group: Record, slot: int = 0, **data: Any) -> Record:
        """A launch template for one interface at the slot's address."""
        card = interface(subnet, group, privateIpAddress=f"10.0.8.{slot}")
        return self.make(
            LAUNCH_TEMPLATE,
            **{
                "name": f"train-{slot}",
                "imageId": "ami-0123456789abcdef0",
                "instanceType": "p5.48xlarge",
                "userData": base64.b64encode(f"slot {slot}".encode()).decode(),
                "networkInterfaces": [card],
                "tagSpecifications": [
                    {"resourceType": "instance", "tags": {**TAGS, "clusterctl:slot": str(slot)}},
                ],
                "tags": TAGS,
                **data,
            },
        )

    def launch(self, template: Record, request: str = "", **inputs: Any) -> Record:
        """An instance of a template."""
        return self.make(network.INSTANCE, request, launchTemplate={"id": template.id, "version": "$Latest"}, **inputs)

    def node(self, slot: int = 0, **data: Any) -> Record:
        """An instance in a network of its own."""
        _, subnet, group = self.network()
        return self.launch(self.template(subnet, group, slot, **data))


def nobody(action: str, parameters: Any) -> Any:
    """Fails the test: no state machine was to call EC2."""
    raise AssertionError(f"{action} was not expected")


def interface(subnet: Record, group: Record, **more: Any) -> dict[str, Any]:
    """A primary interface of a launch template, changed by `more`."""
    card = {"networkCardIndex": 0, "deviceIndex": 0, "subnetId": subnet.id, "securityGroups": [group.id]}
    return {**card, "deleteOnTermination": "true", **more}


EVERYTHING: dict[str, dict[str, Any]] = {
    PLACEMENT_GROUP: {"name": "neighbours", "strategy": "cluster"},
    CAPACITY_RESERVATION: {
        "availabilityZone": "us-west-2b",
        "instanceCount": 2,
        "instancePlatform": "Linux/UNIX",
        "instanceType": "p5.48xlarge",
    },
    ROLE: {"name": "node", "assumeRolePolicy": TRUST},
    INSTANCE_PROFILE: {"name": "node"},
    INGRESS_RULE: {"ipProtocol": "-1"},
}
"""The fewest inputs that AWS takes; a test adds ids of other resources."""
