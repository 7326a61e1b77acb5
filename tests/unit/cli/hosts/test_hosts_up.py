"""How long an `up` waits for hosts."""

from __future__ import annotations

from typing import Any  # what changes in a configuration

import pytest
from clusterctl.hosts.up import MOUNT_S, PHASE_S, READY_S, patience_of_hosts
from clusterctl.lifecycle.readiness import Patience
from clusterctl_bootstrap.node.mounts import MOUNTED_TIMEOUT_S
from clusterctl_infra.config.hooks import LIMIT_S
from clusterctl_infra.config.hosts import HostsConfig

LEAST: dict[str, Any] = {"target": "hosts", "name": "x", "hosts": ["10.1.0.5"], "ssh": {"user": "ada"}}
STORAGE = [{"mount": "/data", "nfs": {"source": "10.1.0.9:/export"}}]
SCRIPTS = ["setup.sh", {"run": "late.sh", "at": "after-ready"}]


@pytest.mark.parametrize(
    ("more", "usual_s", "hooks"),
    [
        ({}, READY_S, 0),
        ({"storage": STORAGE}, READY_S + MOUNT_S, 0),
        ({"packages": ["nfs-common"]}, READY_S, 1),
        ({"packages": ["nfs-common"], "scripts": SCRIPTS}, READY_S, 2),
    ],
)
def test_hosts_are_waited_for_as_long_as_their_mounts_and_hooks_may_take(
    more: dict[str, Any], usual_s: float, hooks: int
) -> None:
    config = HostsConfig.model_validate({**LEAST, **more})
    assert patience_of_hosts(config, timeout_s=None) == Patience(
        usual_s=usual_s, phase_s=PHASE_S, hooks_s=LIMIT_S * hooks
    )
    assert patience_of_hosts(config, timeout_s=7) == Patience(usual_s=7)


def test_mounts_are_waited_for_as_long_as_the_agent_tries() -> None:
    assert MOUNT_S == MOUNTED_TIMEOUT_S
