"""A kind that AWS does not list hides no other and is never called gone; what would end its things is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from botocore.parsers import ResponseParserError
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.delete_orphans import Deletion, end_all
from clusterctl.cloud.resource import CloudResource, ResourceType
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG

from tests.unit.cli.cloud.fake_ec2 import FakeRegion, NoClients, thing


def test_where_aws_does_not_tell_of_machines_all_else_goes_but_what_would_end_them() -> None:
    region = FakeRegion(
        things={"s-1": thing("s-1", "subnet"), "r-1": thing("r-1", "role")},
        silent={"instance": "UnauthorizedOperation"},
    )
    kinds = [region.kind("instance"), region.kind("subnet"), region.kind("role", is_guard=True)]
    deletion = all_ended(region, kinds)
    assert (region.ended, [resource.id for resource in deletion.not_ended]) == (["s-1"], ["r-1"])
    assert list(deletion.not_listed) == ["instance"]


def test_machines_end_where_aws_does_not_tell_of_another_kind() -> None:
    region = FakeRegion(things={"i-1": thing("i-1"), "r-1": thing("r-1", "role")}, silent={"volume": "AccessDenied"})
    kinds = [region.kind("instance"), region.kind("volume", is_data=True), region.kind("role", is_guard=True)]
    deletion = all_ended(region, kinds)
    assert (set(region.ended), deletion.not_ended, list(deletion.not_listed)) == ({"i-1", "r-1"}, (), ["volume"])


def test_a_machine_that_aws_tells_of_no_more_is_not_said_to_be_gone() -> None:
    region = FakeRegion(things={"i-1": thing("i-1"), "s-1": thing("s-1", "subnet")})
    row = region.kind("instance")

    def delete(clients: Clients, found: CloudResource) -> None:
        region.silent["instance"] = "ExpiredToken"

    deletion = all_ended(region, [replace(row, delete=delete), region.kind("subnet")])
    assert [resource.id for resource in deletion.ended] == ["s-1"]
    assert list(deletion.not_listed) == ["instance"]


def test_where_aws_tells_of_nothing_nothing_is_called_ended() -> None:
    region = FakeRegion(silent={"instance": "ExpiredToken"})
    with pytest.raises(CloudError, match="ExpiredToken: looking for each instance of 0123456789ab in us-west-2"):
        all_ended(region, [region.kind("instance")])


def test_what_is_another_cluster_s_is_never_ended_whatever_the_filter_let_through() -> None:
    foreign = replace(thing("i-2"), tags={ID_TAG: "ba9876543210"})
    own = replace(thing("i-1"), tags={ID_TAG: "0123456789ab"})
    region = FakeRegion(things={"i-1": own, "i-2": foreign})
    all_ended(region, [region.kind("instance")])
    assert region.ended == ["i-1"]


def test_an_answer_that_is_no_answer_is_a_refusal_for_now() -> None:
    region = FakeRegion(things={"i-1": thing("i-1"), "s-1": thing("s-1", "subnet")})
    row, tries = region.kind("instance"), [ResponseParserError("<!doctype html>")]

    def delete(clients: Clients, found: CloudResource) -> None:
        if tries:
            raise tries.pop()
        row.delete(clients, found)

    deletion = all_ended(region, [replace(row, delete=delete), region.kind("subnet")])
    assert (deletion.not_ended, sorted(region.ended)) == ((), ["i-1", "s-1"])


def all_ended(region: FakeRegion, kinds: Sequence[ResourceType]) -> Deletion:
    return end_all(
        NoClients(),
        "0123456789ab",
        {},
        spares=lambda resource: False,
        pause=lambda: None,
        timeout_s=3600.0,
        tell=lambda text: None,
        kinds=kinds,
    )
