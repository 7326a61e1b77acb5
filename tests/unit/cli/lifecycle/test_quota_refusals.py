"""What is said when an account may not have so many machines on demand."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.events import Refusal
from clusterctl.lifecycle.capacity_refusals import quota_help
from clusterctl.lifecycle.intent import Intent
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.stack import stack_settings

from tests.unit.infra.plan.plan_cases import a_config


def refused(code: str | None) -> RunResult:
    refusals = (Refusal(code=code, text="No.", urn="u"),)
    return RunResult(succeeded=False, interrupted=False, changes={}, refusals=refusals, log=Path("/x.log"), stderr="")


def an_intent(**changes: Any) -> Intent:
    return Intent(
        config=a_config(**changes), settings=stack_settings({}), changes={}, config_text="", catalog=load_catalog()
    )


@pytest.mark.parametrize("code", ["VcpuLimitExceeded", "InstanceLimitExceeded"])
@pytest.mark.parametrize(
    ("type", "quota", "vcpus"),
    [
        ("p5.48xlarge", "L-417A185B", 768),
        ("g5.xlarge", "L-DB2E81BA", 16),
        ("gr6.4xlarge", "L-DB2E81BA", 64),
        ("c5n.18xlarge", "L-1216C47A", 288),
    ],
)
def test_the_quota_is_named_with_the_command_that_asks_for_more(code: str, type: str, quota: str, vcpus: int) -> None:
    advice = quota_help(refused(code), an_intent(instance_type=type), is_rehearsal=False)
    assert advice is not None
    assert f"4 × {type} are {vcpus}" in advice.sentence
    assert advice.hint is not None
    assert advice.hint.endswith(f"--region us-west-2 --service-code ec2 --quota-code {quota} --desired-value {vcpus}")


def test_in_a_rehearsal_the_hint_raises_the_simulated_quota() -> None:
    advice = quota_help(refused("VcpuLimitExceeded"), an_intent(), is_rehearsal=True)
    assert advice is not None
    assert advice.hint == "clusterctl rehearse fault quota vcpus=768"


@pytest.mark.parametrize(
    ("code", "capacity"),
    [("InsufficientInstanceCapacity", "on-demand"), (None, "on-demand"), ("VcpuLimitExceeded", "spot")],
)
def test_what_is_no_quota_of_machines_on_demand_is_left_as_aws_says_it(code: str | None, capacity: str) -> None:
    assert quota_help(refused(code), an_intent(capacity=capacity), is_rehearsal=False) is None
