"""What a preflight will ask AWS about: the facts of the configuration, and of the cluster that may exist already."""

from __future__ import annotations

import pytest
from clusterctl.lifecycle.preflight import needs_of

from tests.unit.infra.plan.plan_cases import CATALOG, IDENTITY, a_config, a_plan

MOUNTED = {"mount": "/data", "s3": {"bucket": "mounted-one"}}
LINKED = {"mount": "/shared", "fsx-lustre": {"size": "1200GiB", "data_repository": {"bucket": "linked-one"}}}
OWN = "ami-0123456789abcdef0"


UBUNTU = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"


@pytest.mark.parametrize(("image", "asked"), [(OWN, OWN), ("ubuntu-22.04", UBUNTU)])
def test_a_named_image_is_asked_for_by_its_parameter_and_an_ami_by_its_id(image: str, asked: str) -> None:
    config = a_config(image=image)
    needs = needs_of(config, CATALOG, a_plan(image=image), machines=4, own_id=None, source="cluster.yaml")
    assert needs.image == asked


def test_a_cluster_that_is_there_is_asked_about_with_the_image_of_its_birth() -> None:
    made = a_plan(image="ubuntu-22.04")
    needs = needs_of(
        a_config(image="ubuntu-22.04"), CATALOG, made, machines=0, own_id=made.cluster_id, source="cluster.yaml"
    )
    assert needs.image == IDENTITY.image_id


def test_buckets_that_are_mounted_or_linked_are_asked_for() -> None:
    rows = [LINKED, MOUNTED]
    made = a_plan(storage=rows)
    needs = needs_of(a_config(storage=rows), CATALOG, made, machines=4, own_id=None, source="cluster.yaml")
    assert needs.buckets == ("mounted-one", "linked-one")
