"""pulumi_aws warns of its own deprecated classes while it loads: here it loads once, before warnings are errors."""

from __future__ import annotations

import warnings

import pulumi_aws as aws
import pytest

from tests.unit.infra.components.recorded_program import Recording, cluster_program, record


@pytest.fixture(scope="session", autouse=True)
def loaded_aws() -> None:
    """All parts of pulumi_aws that the components use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        used = (
            (aws.ec2, "Vpc"),
            (aws.vpc, "SecurityGroupEgressRule"),
            (aws.iam, "Role"),
            (aws.ssm, "Parameter"),
            (aws.sfn, "StateMachine"),
            (aws.scheduler, "Schedule"),
        )
        assert all(hasattr(part, name) for part, name in used)


@pytest.fixture(scope="package")
def four_nodes() -> Recording:
    """The program of the golden graph."""
    return record(cluster_program())
