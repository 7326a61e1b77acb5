"""What cluster.yaml may say: strict models for a person's file. Defaults live here, each with its reason."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from clusterctl_infra.catalog.instance import InstanceType
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.config.block_search import BlockConfig, BlockSearch, or_text
from clusterctl_infra.config.caps import CapsConfig
from clusterctl_infra.config.choice import Chosen, InstanceChoice, choose_instance
from clusterctl_infra.config.fields import (
    KMS_EXAMPLE,
    Env,
    KmsKeyArn,
    Name,
    NodeCount,
    Owner,
    PolicyArn,
    ReservationId,
    RootDiskGib,
    Tags,
    Text,
    check_text,
)
from clusterctl_infra.config.hooks import Package, ScriptConfig, or_texts
from clusterctl_infra.config.network import AccessConfig, NetworkConfig
from clusterctl_infra.config.storage import STRICT, StorageConfig
from clusterctl_infra.config.storage_fields import check_workflow_storage
from clusterctl_infra.errors import ConfigError

DEFAULT_ROOT_DISK_GIB = 200
DEFAULT_IMAGE = "dlami-base-ubuntu-22.04"
Market = Literal["on-demand", "spot", "capacity-block", "reservation"]


def check_one_or_list(value: object) -> str | tuple[str, ...]:
    """One text, or several in the order in which they are tried. Raises ValueError."""
    if isinstance(value, list | tuple):
        entries = tuple(check_text(entry).strip() for entry in value)
        if not entries:
            raise ValueError("an empty list")
        return entries[0] if len(entries) == 1 else entries
    return check_text(value).strip()


def check_target(value: object) -> str:
    """`aws`. Raises ValueError for any other target: a file for hosts has a model of its own (hosts.py)."""
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
Target = Annotated[str, BeforeValidator(check_target), WithJsonSchema({"const": "aws"})]


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
            "buys one, once you agree. Its zone is the cluster's, and the cluster ends at the latest 30 minutes before "
            "it does. Its price is paid in advance and is not counted; docs/adopted.md."
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
        """Where the machines come from, by all keys that say so."""
        if self.capacity_block is not None:
            return "capacity-block"
        return "reservation" if self.reservation is not None else self.capacity

    @property
    def grouping(self) -> Literal["cluster", "none"]:
        """Whether nodes are in a placement group: `none` for those of a capacity block, else `placement`."""
        return "none" if self.capacity_block is not None else self.placement

    @property
    def reservation_id(self) -> str | None:
        """The existing reservation or block that is to be used; None if there is none, or a block is looked for."""
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
        """The configuration with the type and the block that were found in the place of its list of types and its
        search for a block; unchanged if it has neither.
        """
        found: dict[str, object] = {}
        if chosen is not None and chosen.instance_type is not None and self.is_list:
            found |= {"gpus": None, "instance_type": chosen.instance_type}
        if block_id is not None and self.block_search is not None:
            found |= {"capacity_block": BlockConfig.model_construct(id=block_id)}
        return self.model_copy(update=found) if found else self

    def instance_choice(self, catalog: Catalog) -> InstanceChoice:
        """The instance type of the nodes, and why, if there was a choice; from a list, the most expensive.

        Raises ConfigError.
        """
        try:
            return choose_instance(
                catalog, region=self.region, gpus=self.gpus, instance_type=self.instance_type, fabric=self.fabric
            )
        except ValueError as e:
            raise ConfigError(f"cluster {self.name}: {e}") from e

    def instance_row(self, catalog: Catalog) -> InstanceType | None:
        """The catalog's row of the nodes' instance type; None if no type can be chosen."""
        try:
            return catalog.instance_type(self.instance_type_name(catalog))
        except ConfigError:
            return None

    def instance_rows(self, catalog: Catalog) -> tuple[InstanceType, ...]:
        """The catalog's rows of every type that nodes may have, such as all of a list; empty if none can be chosen."""
        try:
            choice = self.instance_choice(catalog)
        except ConfigError:
            return ()
        rows = (catalog.instance_type(name) for name in choice.tried or (choice.name,))
        return tuple(row for row in rows if row is not None)

    def instance_type_name(self, catalog: Catalog) -> str:
        """The instance type of the nodes. Raises ConfigError."""
        return self.instance_choice(catalog).name
