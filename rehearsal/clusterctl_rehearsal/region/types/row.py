"""What the region knows about a resource type: a row of data, a few small functions."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusterctl_infra.catalog.reader import Catalog

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Properties, Record
from clusterctl_rehearsal.region.settings import Settings
from clusterctl_rehearsal.region.store import Store


@dataclass(frozen=True, kw_only=True)
class Request:
    """One create or update, with all that it is checked against."""

    id: str
    region: str
    inputs: Properties
    store: Store
    settings: Settings
    catalog: Catalog
    now: float
    old: Record | None = None
    """The record before an update."""

    def arn(self, kind: str) -> str:
        """The ARN of a resource of the EC2 kind `kind`."""
        return f"arn:aws:ec2:{self.region}:{ACCOUNT_ID}:{kind}/{self.id}"

    def timestamp(self) -> str:
        """Now, as the provider writes it."""
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def zone_names(self) -> tuple[str, ...]:
        return tuple(self.region + letter for letter in self.settings.zones)


def no_outputs(request: Request) -> Properties:
    """No outputs besides the inputs."""
    return {}


def no_check(request: Request) -> None:
    """Checks nothing, for types that have no rules of their own."""


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """What the region knows about one type. `source`: the Terraform provider's file from which `replace` was read."""

    token: str
    label: str
    """As the provider names it in errors: `EC2 VPC`."""
    prefix: str = ""
    """How random ids begin; empty: `id` makes the id, or it is the input that `name` names."""
    create: str
    """The operation of `service`'s API, such as `CreateVpc`; empty: the engine cannot make any."""
    delete: str
    service: str = "EC2"
    not_found: str
    """The error code for an id that is not there."""
    source: str
    replace: tuple[str, ...] = ()
    """Inputs whose change makes a new resource (ForceNew, RequiresReplace)."""
    one_of: tuple[str, ...] = ()
    """Inputs of which one is given; giving another one makes a new resource."""
    name: str | None = None
    """The input that the provider fills with a generated name."""
    unique: tuple[tuple[str, ...], str, str] | None = None
    """(inputs that no two resources share, error code and sentence for a second one)."""
    taggable: bool = True
    defaults: Properties = field(default_factory=dict)
    """What the provider puts into inputs that are left out."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Input (an id or a list of ids) → type of the resource that it names, which must exist."""
    part_of: str | None = None
    """Input that names the resource with whose end this one ends."""
    blocked_by: tuple[str, ...] = ()
    """Types that, while one of them needs this resource, keep it from being deleted."""
    blocked: tuple[str, str] = ("DependencyViolation", "The {kind} '{id}' has dependencies and cannot be deleted.")
    check: Callable[[Request], None] = no_check
    outputs: Callable[[Request], Properties] = no_outputs
    id: Callable[[Properties, str], str] | None = None
    """Makes the id from inputs and region, as AWS does."""
    is_file_system: bool = False
    """A folder stands for its content, and it takes a while to become available."""
    computed_on_change: tuple[str, ...] = ()
    """Outputs that a preview cannot know once an input changed."""

    @property
    def kind(self) -> str:
        """The last word of the token: `vpc`."""
        return self.token.rpartition("/")[2].partition(":")[0]

    def new_id(self, inputs: Properties, region: str) -> str:
        """An id as AWS would give it."""
        if self.id is not None:
            return self.id(inputs, region)
        if self.prefix:
            return f"{self.prefix}-{random_hex(17)}"
        return str(inputs[self.name or "name"])


def random_hex(length: int) -> str:
    """That many random hex digits."""
    return secrets.token_hex((length + 1) // 2)[:length]


def parse_cidr(text: str, *, smallest: int = 28, largest: int = 16) -> ipaddress.IPv4Network:
    """The network of a CIDR block. Raises AWS's refusal of what is no block, or has a size that AWS does not allow."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as e:
        raise AwsError(
            "InvalidParameterValue",
            f"Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block.",
        ) from e
    if not largest <= network.prefixlen <= smallest:
        raise AwsError("InvalidVpc.Range", f"The CIDR '{text}' is invalid.")
    return network
