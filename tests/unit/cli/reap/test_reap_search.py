"""A look through an account: what one region refuses hides nothing of the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusterctl.cloud.clients import Clients
from clusterctl.cloud.found import Found, Kind
from clusterctl.reap.request import refuse_unseen
from clusterctl.reap.search import GLOBAL_KINDS, NO_REGION, Search, search
from clusterctl_infra.errors import CloudError

from tests.unit.cli.reap.test_reap_verdict import ID, thing

REGIONS = ("ap-east-1", "us-west-2")


def searched(*, refused: Sequence[str]) -> Search:
    """An account with an instance in each region and a role in none; calls to `refused` are denied."""

    def looks(clients: Clients, kinds: Sequence[Kind]) -> tuple[Found, ...]:
        place = NO_REGION if kinds == GLOBAL_KINDS else clients.region
        if place in refused:
            raise CloudError(f"UnauthorizedOperation: {place}", code="UnauthorizedOperation")
        return (thing("role", "r-1"),) if place == NO_REGION else (thing("instance", f"i-{place}"),)

    return search(lambda region: Clients(region=region, endpoint_url=None), REGIONS, all_regions=False, looks=looks)


def test_a_region_that_is_forbidden_hides_nothing_of_the_others_and_is_named() -> None:
    found = searched(refused=["ap-east-1"])
    assert found.regions == ("us-west-2",)
    assert [(one.cluster_id, one.region, len(one.things)) for one in found.remains] == [(ID, "us-west-2", 2)]
    assert not found.is_everywhere
    with pytest.raises(CloudError, match="not looked through: ap-east-1: UnauthorizedOperation"):
        refuse_unseen(found)


def test_when_roles_are_not_told_machines_are_found_all_the_same() -> None:
    found = searched(refused=[NO_REGION])
    assert [one.kind for one in found.remains[0].things] == ["instance", "instance"]
    assert list(found.unseen) == [NO_REGION]


def test_where_no_region_answers_the_look_fails() -> None:
    with pytest.raises(CloudError, match="UnauthorizedOperation: ap-east-1"):
        searched(refused=REGIONS)


def test_a_look_that_saw_all_is_no_failure() -> None:
    found = searched(refused=[])
    refuse_unseen(found)
    assert found.unseen == {}
