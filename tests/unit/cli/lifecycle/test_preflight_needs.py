"""What a plan asks of AWS before it is made: the facts of its configuration, and of the cluster that may be there."""

from __future__ import annotations

import pytest
from clusterctl.lifecycle.preflight import needs_of

from tests.unit.infra.plan.plan_cases import CATALOG, a_config, a_plan

MOUNTED = {"mount": "/data", "s3": {"bucket": "mounted-one"}}
LINKED = {"mount": "/shared", "fsx-lustre": {"size": "1200GiB", "data_repository": {"bucket": "linked-one"}}}
OWN = "ami-0123456789abcdef0"


@pytest.mark.parametrize("image", [OWN, "ubuntu-22.04"])
def test_a_named_image_is_asked_for_by_its_parameter_and_an_ami_by_its_id(image: str) -> None:
    config = a_config(image=image)
    needs = needs_of(config, CATALOG, a_plan(image=image), machines=4, own_id=None, source="cluster.yaml")
    assert needs.image == (CATALOG.image_parameter(image) or OWN)
    assert (needs.image == OWN) is (image == OWN)


def test_buckets_that_are_mounted_or_linked_are_asked_for() -> None:
    rows = [LINKED, MOUNTED]
    made = a_plan(storage=rows)
    needs = needs_of(a_config(storage=rows), CATALOG, made, machines=4, own_id=None, source="cluster.yaml")
    assert needs.buckets == ("mounted-one", "linked-one")
