"""Networks that nobody can log in from are refused before a cluster on AWS is made."""

from __future__ import annotations

import pytest
from clusterctl_infra.config.network import AccessConfig
from clusterctl_infra.plan.ssh_networks import refused_on_aws


@pytest.mark.parametrize(
    ("mode", "cidr", "reason"),
    [
        ("public", "192.0.2.0/24", "RFC 5737"),
        ("public", "198.51.100.9/32", "RFC 5737"),
        ("private", "203.0.113.7/32", "RFC 5737"),
        ("public", "10.1.2.3/32", "a private network"),
        ("public", "100.64.0.0/10", "a private network"),
        ("public", "172.31.0.0/16", "a private network"),
        ("public", "192.168.1.0/24", "a private network"),
    ],
)
def test_a_network_that_nobody_comes_from_is_refused(mode: str, cidr: str, reason: str) -> None:
    access = AccessConfig.model_validate({"mode": mode, "ssh_from": ["18.246.31.7/32", cidr]})
    [problem] = refused_on_aws(access)
    assert (problem.level, problem.path) == ("error", "access.ssh_from[1]")
    assert problem.message.startswith(f"{cidr}: ")
    assert reason in problem.message


@pytest.mark.parametrize(
    ("mode", "cidr"),
    [("public", "18.246.31.7/32"), ("public", "0.0.0.0/0"), ("public", "172.32.0.0/16"), ("private", "10.9.0.5/32")],
)
def test_a_network_that_somebody_may_come_from_is_taken(mode: str, cidr: str) -> None:
    assert refused_on_aws(AccessConfig.model_validate({"mode": mode, "ssh_from": [cidr]})) == ()
