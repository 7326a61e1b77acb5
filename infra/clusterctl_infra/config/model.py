"""What cluster.yaml may say: strict models for a person's file. Defaults live here, each with its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.block_search import BlockConfig, BlockSearch, or_text
from clusterctl_infra.config.choice import Chosen, InstanceChoice, choose_instance
from clusterctl_infra.config.fields import (
    KMS_EXAMPLE,
    Bastion,
    Cidr,
    ClusterPrice,
    Dollars,
    Duration,
    Env,
    KmsKeyArn,
    Name,
    NodeCount,
    NodePrice,
    Owner,
    PolicyArn,
    PublicKey,
    ReservationId,
    RootDiskGib,
    SubnetId,
    Tags,
    Text,
    VpcId,
    check_text,
)
from clusterctl_infra.config.hooks import Package, ScriptConfig, or_texts
from clusterctl_infra.config.storage import STRICT, StorageConfig
from clusterctl_infra.config.storage_fields import check_workflow_storage
from clusterctl_infra.errors import ConfigError

DEFAULT_ROOT_DISK_GIB = 200
DEFAULT_IMAGE = "dlami-base-ubuntu-22.04"
LOGIN_USER = "ubuntu"
Market = Literal["on-demand", "spot", "capacity-block", "reservation"]


def check_one_or_list(value: object) -> str | tuple[str, ...]:
    """One text, or several in the order in which they are tried. Raises ValueError."""
    if isinstance(value, list | tuple):
        entries = tuple(check_text(entry).strip() for entry in value)
        if not entries:
            raise ValueError("an empty list")
        return entries[0] if len(entries) == 1 else entries
    return check_text(value).strip()


def check_user(value: object) -> str:
    """Raises ValueError for any but the one user."""
    if value != LOGIN_USER:
        raise ValueError(f"the login user is {LOGIN_USER} on every image; leave the key out")
    return LOGIN_USER


def check_target(value: object) -> str:
    """Raises ValueError for any but AWS: a file for hosts has a model of its own (hosts.py)."""
    if value == "hosts":
        raise ValueError("Pulumi does not make hosts nodes: run clusterctl up (docs/hosts.md)")
    if value != "aws":
        raise ValueError("not a target: write aws or hosts")
    return "aws"


OneOrList = Annotated[
    str | tuple[str, ...],
    BeforeValidator(check_one_or_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
User = Annotated[str, BeforeValidator(check_user), WithJsonSchema({"const": LOGIN_USER})]


Target = Annotated[str, BeforeValidator(check_target), WithJsonSchema({"const": "aws"})]


class AdoptConfig(BaseModel):
    """A network that exists: nothing of it is changed or ended, and the cluster makes a security group in it."""

    model_config = STRICT
    vpc_id: VpcId = Field(description="The VPC.", examples=["vpc-0a1b2c3d4e5f67890"])
    node_subnet_id: SubnetId = Field(
        description="The subnet for nodes; its zone is the cluster's. Before the first node, a range of its free "
        "addresses is chosen, and slot i keeps the i-th address of the range.",
        examples=["subnet-0a1b2c3d4e5f67890"],
    )
    service_subnet_id: SubnetId | None = Field(
        default=None,
        description="The subnet for file systems that the cluster makes; in the nodes' own subnet, AWS could give one "
        "of them the address of a slot.",
        examples=["subnet-0f9e8d7c6b5a43210"],
    )


class NetworkConfig(BaseModel):
    """The addresses of the cluster's own network."""

    model_config = STRICT
    vpc_cidr: Cidr = Field(default="10.0.0.0/16", description="The whole network.", examples=["10.20.0.0/16"])
    node_subnet_cidr: Cidr = Field(
        default="10.0.0.0/20",
        description="Nodes live in its upper half: slot i has the half's address + i.",
        examples=["10.20.0.0/20"],
    )
    service_subnet_cidr: Cidr = Field(
        default="10.0.16.0/24",
        description="File systems and gateways, so that none takes a slot's address.",
        examples=["10.20.16.0/24"],
    )
    adopt: AdoptConfig | None = Field(
        default=None,
        description="Use a network that exists, instead of the ranges above; docs/adopted.md.",
    )


class AccessConfig(BaseModel):
    """Who reaches the nodes, and how."""

    model_config = STRICT
    mode: Literal["public", "private"] = Field(
        default="public", description="`public`: each node has a public address; `private`: none has."
    )
    ssh_from: tuple[Cidr, ...] = Field(
        default=(),
        description="Networks that may reach port 22: your address as the internet sees it, with /32. Empty by "
        "default, so nobody is let in. Addresses of examples, such as this one, are refused on AWS.",
    )
    bastion: Bastion | None = Field(
        default=None,
        description="With `private`: a host through which nodes are reached, with your own ssh settings; its address "
        "has to be in ssh_from. Left out: AWS's Session Manager, which needs no open port.",
        examples=["ada@bastion.example.com"],
    )
    user: User = Field(default=LOGIN_USER, description="The login user: made on every image, so always the same.")
    authorized_keys: tuple[PublicKey, ...] = Field(
        default=(), description="Public keys that may log in; empty: a key is derived for the cluster."
    )


class CapsConfig(BaseModel):
    """Limits that end in a refusal before, or in a deadline."""

    model_config = STRICT
    price_usd_per_hour: NodePrice | None = Field(
        default=None,
        description="Per node. A more expensive node is refused; for spot machines it is the most that AWS may bill.",
    )
    total_usd_per_hour: ClusterPrice | None = Field(
        default=None,
        description="The whole cluster: nodes with their root disks, public addresses, the NAT gateway, storage. A "
        "more expensive cluster is refused.",
    )
    budget_usd: Dollars | None = Field(
        default=None,
        description="The whole cluster, over all its runs. When it is spent, the cluster ends, whatever `runtime` "
        "says.",
    )
    runtime: Duration = Field(
        default=timedelta(hours=24),
        description="Per run, from its creation; at most 30d. There is always a limit, so a forgotten cluster costs a "
        "day and not a month.",
        json_schema_extra={"default": "24h"},
    )
    dead_man: Duration | None = Field(
        default=None,
        description=(
            "A node ends if slot 0 has not answered it for this long. Slot 0 ends if it has had no majority of the "
            "nodes for this long, and has AWS end the rest. If half of the nodes or more have lost slot 0, the lowest "
            "of them has AWS end the cluster; if fewer have, AWS ends it only if slot 0 has no machine. Left out: "
            "none of this, because a short network failure would end trainings that could go on."
        ),
        examples=["30m"],
    )
    idle: Duration | None = Field(
        default=None,
        description="The cluster ends when no node has been in use for this long. Left out: it does not, because a "
        "cluster that is prepared today and used tomorrow would be gone.",
        examples=["45m"],
    )


class ClusterConfig(BaseModel):
    """One cluster, as its cluster.yaml describes it."""

    model_config = ConfigDict(
        **STRICT, json_schema_extra={"oneOf": [{"required": ["gpus"]}, {"required": ["instance_type"]}]}
    )
    target: Target = Field(
        default="aws", description="`aws`; a file with `hosts` has other keys, for existing machines: docs/hosts.md."
    )
    name: Name = Field(description="Names the cluster and its nodes: `train` has `train-0`, `train-1`, …")
    region: Text = Field(description="The AWS region.", examples=["us-west-2"])
    zone: Text | None = Field(
        default=None,
        description="The availability zone. Left out: the first zone with capacity is chosen when the cluster is made, "
        "and kept. `clusterctl up` asks AWS for capacity first; plain `pulumi up` does not.",
        examples=["us-west-2b"],
    )
    nodes: NodeCount = Field(description="How many nodes.")
    gpus: OneOrList | None = Field(
        default=None,
        description="GPUs per node. If several instance types fit, the cheapest of the region is taken. A list is "
        "tried in order when the cluster is made.",
        examples=["h100:8", "8xh100", "h100-80gb.sxm.8x", ["h200:8", "h100:8"]],
    )
    instance_type: OneOrList | None = Field(
        default=None,
        description=(
            "The EC2 instance type, instead of `gpus`. With a list, `clusterctl up` asks AWS for capacity for one "
            "type after the other, in each zone, and the cluster keeps the first type that AWS has capacity for."
        ),
        examples=["p5.48xlarge", ["p5en.48xlarge", "p5.48xlarge"]],
    )
    image: Text = Field(
        default=DEFAULT_IMAGE,
        description="A name from the catalog, or an AMI id. The default has the NVIDIA and EFA drivers.",
        examples=[DEFAULT_IMAGE, "ami-0a1b2c3d4e5f67890"],
    )
    root_disk: RootDiskGib = Field(
        default=DEFAULT_ROOT_DISK_GIB,
        description="The disk that a node starts from and keeps /home on (gp3), gone with the node; not less than the "
        "image's own. The default has room for the image, a framework and some containers.",
        examples=["500GiB"],
        json_schema_extra={"default": "200GiB"},
    )
    placement: Literal["cluster", "none"] = Field(
        default="cluster",
        description="`cluster`: machines close to each other in AWS's network, where EFA is fast; `none`: for test "
        "machines.",
    )
    capacity: Market = Field(
        default="on-demand",
        description=(
            "Where the machines come from. `on-demand`: reserved for all nodes before the first is made. `spot`: "
            "AWS's spare capacity, cheaper; nothing is reserved, and AWS may take each machine back, two minutes "
            "after a notice. `reservation` and `capacity-block` follow from the keys below, and need not be written."
        ),
    )
    reservation: ReservationId | None = Field(
        default=None,
        description=(
            "An existing capacity reservation, open or targeted, your own or shared with you. Its zone is the "
            "cluster's, and its end date ends the cluster. clusterctl never changes or cancels it; docs/adopted.md."
        ),
        examples=["cr-0a1b2c3d4e5f67890"],
    )
    capacity_block: BlockConfig | None = Field(
        default=None,
        description=(
            "A capacity block that was bought, such as `cr-0a1b2c3d4e5f67890`, or `{find: …}`: `clusterctl up` then "
            "buys one, once you agree. Its zone is the cluster's, and the cluster ends 30 minutes before it does. Its "
            "price is paid in advance and is not counted; docs/adopted.md."
        ),
        json_schema_extra=or_text,
    )
    fabric: Literal["auto", "required", "none"] = Field(
        default="auto",
        description="EFA: `auto` where the type has it; `required`: EFA or nothing; `none`: one plain interface.",
    )
    network: NetworkConfig = Field(default_factory=NetworkConfig, description="Addresses.")
    access: AccessConfig = Field(default_factory=AccessConfig, description="Who can reach the nodes.")
    storage: tuple[StorageConfig, ...] = Field(default=(), description="What is mounted.")
    workflow_storage: Annotated[Text, BeforeValidator(check_workflow_storage)] | None = Field(
        default=None,
        description=(
            "Where `clusterctl workflow` keeps datasets, and outputs of nodes that share no file system: below this "
            "address, in a bucket that `storage` mounts writable. Left out: on the first file system that nodes "
            "share."
        ),
        examples=["s3://ml-results/workflows"],
    )
    caps: CapsConfig = Field(default_factory=CapsConfig, description="What it may cost, and how long it may live.")
    env: Env = Field(
        default_factory=dict,
        description="Environment variables of every login and job.",
        examples=[{"NCCL_DEBUG": "INFO"}],
    )
    packages: tuple[Package, ...] = Field(
        default=(),
        description="Packages that nodes install at their first boot, by apt-get or dnf.",
        examples=[["htop"]],
    )
    scripts: tuple[ScriptConfig, ...] = Field(
        default=(),
        description="Files that nodes run as root, in this order; `setup.sh` is short for `{run: setup.sh}`.",
        json_schema_extra=or_texts,
    )
    imds: Literal["root", "users"] = Field(
        default="root",
        description="Who on a node can reach the metadata service, which shows user-data with the node's host key.",
    )
    kms_key: KmsKeyArn | None = Field(
        default=None,
        description=(
            "A KMS key of the region that encrypts the nodes' root disks, and the EFS and persistent FSx for Lustre "
            "file systems that the cluster makes. Left out: AWS's own keys. The person who runs `up` needs rights to "
            "it: docs/security.md. The key of an existing file system never changes."
        ),
        examples=[KMS_EXAMPLE],
    )
    permissions_boundary: PolicyArn | None = Field(
        default=None,
        description="A policy that limits the cluster's IAM roles, for accounts that allow roles only with one.",
        examples=["arn:aws:iam::123456789012:policy/engineers"],
    )
    ranks: Literal["slot", "topology"] = Field(
        default="slot",
        description="`slot`: the rank is the slot; `topology`: neighbours in AWS's network get neighbouring ranks, "
        "ordered once, when all nodes run, and then kept.",
    )
    owner: Owner | None = Field(
        default=None,
        description="Whom to ask about the cluster; left out: the login name of the person who ran `up`.",
    )
    tags: Tags = Field(default_factory=dict, description="AWS tags on everything.", examples=[{"team": "vision"}])

    @property
    def market(self) -> Market:
        """Where the machines come from, by all that says so."""
        if self.capacity_block is not None:
            return "capacity-block"
        return "reservation" if self.reservation is not None else self.capacity

    @property
    def grouping(self) -> Literal["cluster", "none"]:
        """Whether nodes are in a placement group: those of a capacity block are in none."""
        return "none" if self.capacity_block is not None else self.placement

    @property
    def reservation_id(self) -> str | None:
        """The reservation or block that exists and is to be used; None for a block that is looked for."""
        return self.reservation if self.capacity_block is None else self.capacity_block.id

    @property
    def block_search(self) -> BlockSearch | None:
        """What a capacity block that is yet to be bought has to be like."""
        return None if self.capacity_block is None else self.capacity_block.find

    @property
    def is_list(self) -> bool:
        """Whether several types, or several kinds of GPUs, are named, to be tried in order."""
        return isinstance(self.instance_type or self.gpus, tuple)

    def narrowed(self, chosen: Chosen | None, block_id: str | None) -> ClusterConfig:
        """The configuration with what its list, and its search for a block, came to; as it is where nothing is open."""
        found: dict[str, object] = {}
        if chosen is not None and chosen.instance_type is not None and self.is_list:
            found |= {"gpus": None, "instance_type": chosen.instance_type}
        if block_id is not None and self.block_search is not None:
            found |= {"capacity_block": BlockConfig.model_construct(id=block_id)}
        return self.model_copy(update=found) if found else self

    def instance_choice(self, catalog: Catalog) -> InstanceChoice:
        """The one instance type that nodes have, and why, where there was a choice; of a list the dearest.

        Raises ConfigError.
        """
        try:
            return choose_instance(
                catalog, region=self.region, gpus=self.gpus, instance_type=self.instance_type, fabric=self.fabric
            )
        except ValueError as e:
            raise ConfigError(f"cluster {self.name}: {e}") from e

    def instance_row(self, catalog: Catalog) -> InstanceType | None:
        """What the catalog knows of the one instance type that nodes have; None where none can be chosen."""
        try:
            return catalog.instance_type(self.instance_type_name(catalog))
        except ConfigError:
            return None

    def instance_rows(self, catalog: Catalog) -> tuple[InstanceType, ...]:
        """What the catalog knows of every type that nodes may have: of each in a list; empty where none can be."""
        try:
            choice = self.instance_choice(catalog)
        except ConfigError:
            return ()
        rows = (catalog.instance_type(name) for name in choice.tried or (choice.name,))
        return tuple(row for row in rows if row is not None)

    def instance_type_name(self, catalog: Catalog) -> str:
        """The one instance type that nodes have. Raises ConfigError."""
        return self.instance_choice(catalog).name
