"""Warnings about variables that were copied from elsewhere."""

from __future__ import annotations

import re

import pytest
from clusterctl_infra.plan.env_advice import ADVICE, Advice

from tests.unit.infra.plan.plan_cases import a_plan, problems_of

EFA = "p5.48xlarge"
PLAIN = "m5.large"

CASES = [
    (EFA, "NCCL_TREE_THRESHOLD", "0", "dead: NCCL removed it"),
    (EFA, "NCCL_TIMEOUT", "3600", "dead: NCCL has no variable of that name"),
    (EFA, "NCCL_ASYNC_ERROR_HANDLING", "1", "old: torch's former name"),
    (EFA, "NCCL_PROTO", "simple", "harmful: was for aws-ofi-nccl 1.5"),
    (EFA, "NCCL_IB_DISABLE", "1", "dead: is about InfiniBand"),
    (PLAIN, "NCCL_IB_DISABLE", "1", None),
    (EFA, "NCCL_P2P_DISABLE", "1", "harmful: is for finding faults"),
    (EFA, "NCCL_P2P_DISABLE", "0", None),
    (EFA, "NCCL_SOCKET_IFNAME", "^docker,lo", "risky: names are prefixes"),
    (EFA, "NCCL_SOCKET_IFNAME", "=ens32", None),
    (EFA, "GLOO_SOCKET_IFNAME", "^lo", "harmful: takes exact names only"),
    (EFA, "GLOO_SOCKET_IFNAME", "ens32", None),
    (EFA, "FI_PROVIDER", "efa", "dead: the plugin has chosen efa"),
    (EFA, "FI_PROVIDER", "tcp", "harmful: anything but efa"),
    (PLAIN, "FI_PROVIDER", "tcp", None),
    (EFA, "RDMAV_FORK_SAFE", "1", "harmful: breaks things"),
    (EFA, "MASTER_ADDR", "10.0.0.9", "risky: replaces slot 0"),
    (EFA, "PATH", "/opt/bin:$PATH", "risky: replaces what a node has there"),
    (EFA, "NCCL_DEBUG", "INFO", None),
    (EFA, "FI_EFA_USE_HUGE_PAGE", "0", None),
    (EFA, "WANDB_MODE", "offline", None),
]


@pytest.mark.parametrize(("kind", "name", "value", "sentence"), CASES)
def test_a_copied_variable_is_told_what_it_does(kind: str, name: str, value: str, sentence: str | None) -> None:
    made = a_plan(instance_type=kind, placement="none", env={name: value})
    warning = problems_of(made, "warning").get(f"env.{name}")
    assert problems_of(made) == {}, "it is allowed"
    assert warning is None if sentence is None else str(warning).startswith(sentence)


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: f"{advice.name} {advice.value}")
def test_every_row_has_a_source_and_names_some_variable(advice: Advice) -> None:
    assert advice.source
    assert re.compile(advice.name).fullmatch("") is None
