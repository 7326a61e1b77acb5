"""The region answers what the Terraform AWS provider asks of each type, and refuses as AWS does what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from clusterctl_rehearsal.region.types.table import TYPES

from tests.unit.rehearsal.api_client import SESSION, Client
from tests.unit.rehearsal.provider_calls import ANSWERED, EC2_CALLS, Asked
from tests.unit.rehearsal.provider_service_calls import ACCOUNT, NOT_ASKED, SERVICE_CALLS
from tests.unit.rehearsal.small_region import SmallRegion

CALLS = {**EC2_CALLS, **SERVICE_CALLS}
EACH = {
    f"{token.rpartition(':')[2]} {asked.operation} {number}": asked
    for token, rows in {**CALLS, "account": ACCOUNT}.items()
    for number, asked in enumerate(rows)
}
IN_RIGHTS = {"stepfunctions": "states", "efs": "elasticfilesystem"}
MODELLED = {name: asked for name, asked in EACH.items() if asked.service not in ("ec2", "s3", "sts")}


def test_every_type_that_the_region_knows_has_its_calls() -> None:
    assert CALLS.keys() == TYPES.keys()
    for token, row in TYPES.items():
        operations = {asked.operation for asked in CALLS[token]} | {"PutMetricAlarm"}
        assert {row.create, row.delete} - {""} <= operations, token


def test_every_right_that_the_provider_needs_is_a_call_in_the_table() -> None:
    text = (Path(__file__).parents[1] / "skeleton" / "provider_rights.yaml").read_text(encoding="utf-8")
    rights = {right for rows in yaml.safe_load(text).values() for right in rows}
    calls = {f"{IN_RIGHTS.get(asked.service, asked.service)}:{asked.operation}" for asked in EACH.values()}
    assert rights - calls == NOT_ASKED.keys()


@pytest.mark.parametrize("asked", EACH.values(), ids=EACH)
def test_each_call_for_what_is_not_there_is_answered_as_aws_does(
    world: SmallRegion, client: Client, asked: Asked
) -> None:
    world.behaviour.register({"buckets": ["ours"]})
    answer = client.call(asked.service, asked.operation, **dict(asked.unknown))
    if asked.code == ANSWERED:
        assert not isinstance(answer, str), answer
    else:
        assert answer == asked.code


OF_ALL_CALLS = ("404", "AccessDeniedException", "BadRequest", "ValidationException", ANSWERED)
"""Codes that AWS gives for any call, which botocore's models do not repeat everywhere."""


@pytest.mark.parametrize("asked", MODELLED.values(), ids=MODELLED)
def test_a_code_is_one_that_awss_model_has_for_the_call(asked: Asked) -> None:
    """EC2's model has none: its codes are those of the EC2 API reference, "Error codes"."""
    operation = SESSION.get_service_model(asked.service).operation_model(asked.operation)
    known = {shape.metadata.get("error", {}).get("code", shape.name) for shape in operation.error_shapes}
    assert asked.code in known or asked.code in OF_ALL_CALLS, known
