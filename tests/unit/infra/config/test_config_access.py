"""Who reaches the nodes, as cluster.yaml may say it."""

from __future__ import annotations

import pytest
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.model import ClusterConfig
from clusterctl_infra.config.rules import broken_rules
from pydantic import ValidationError

SMALL = {"name": "train", "region": "us-west-2", "nodes": 1, "instance_type": "p5.48xlarge"}


@pytest.mark.parametrize(
    ("access", "path", "words"),
    [
        ({"bastion": "gate", "ssh_from": ["10.9.0.5/32"]}, ("access", "bastion"), "reached directly"),
        ({"mode": "private", "bastion": "gate"}, ("access", "ssh_from"), "gate is not let in"),
        ({"mode": "private", "bastion": "a@gate", "ssh_from": ["10.9.0.5/32"]}, ("access", "bastion"), "made new"),
    ],
)
def test_a_bastion_leads_to_private_nodes_that_let_it_in(
    access: dict[str, object], path: tuple[str, ...], words: str
) -> None:
    found = broken_rules(ClusterConfig.model_validate({**SMALL, "access": access}), load_catalog())
    assert [problem.path for problem in found] == [path]
    assert words in found[0].message


def test_a_bastion_is_in_the_network_that_is_adopted() -> None:
    access = {"mode": "private", "bastion": "a@gate", "ssh_from": ["10.9.0.5/32"]}
    network = {"adopt": {"vpc_id": "vpc-0a1b2c3d", "node_subnet_id": "subnet-0a1b2c3d"}}
    config = ClusterConfig.model_validate({**SMALL, "access": access, "network": network})
    assert broken_rules(config, load_catalog()) == []


@pytest.mark.parametrize("bastion", ["-oProxyCommand=sh", "gate:2222", "a b", "gate; rm", "", "@gate", 7])
def test_a_bastion_is_a_host_and_nothing_that_ssh_could_take_for_an_option(bastion: object) -> None:
    with pytest.raises(ValidationError):
        ClusterConfig.model_validate({**SMALL, "access": {"mode": "private", "bastion": bastion}})
