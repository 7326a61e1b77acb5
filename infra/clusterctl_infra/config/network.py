"""The `network:` and `access:` parts of cluster.yaml: the network that nodes are in, and who reaches them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from clusterctl_infra.config.fields import Bastion, Cidr, PublicKey, SubnetId, VpcId
from clusterctl_infra.config.storage import STRICT

LOGIN_USER = "ubuntu"


def check_user(value: object) -> str:
    """The login user. Raises ValueError for any other name."""
    if value != LOGIN_USER:
        raise ValueError(f"the login user is {LOGIN_USER} on every image; leave the key out")
    return LOGIN_USER


User = Annotated[str, BeforeValidator(check_user), WithJsonSchema({"const": LOGIN_USER})]


class AdoptConfig(BaseModel):
    """A network that exists: it is neither changed nor ended; the cluster only makes a security group in it."""

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
