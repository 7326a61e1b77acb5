"""Room is asked for by a reservation that never outlives the asking, whatever AWS says and whoever stops it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any  # requests and answers as boto3 has them

import pytest
from botocore.exceptions import ClientError
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.capacity_trial import Candidate, CapacityTrial, ask_for_capacity, offered
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG, TRIAL_TAG

from tests.unit.cli.cloud.fake_clients import FakeClients

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
ID = "0123456789ab"
OWN_TAGS = {"team": "vision", ID_TAG: "another"}
P5EN, P5 = "p5en.48xlarge", "p5.48xlarge"
ORDER = tuple(Candidate(instance_type=name, zone=f"us-west-2{zone}") for name in (P5EN, P5) for zone in "ab")


@dataclass
class FakeEc2:
    """Says yes to the candidates in `answers`; what is made stays until it is ended."""

    answers: dict[tuple[str, str], str | BaseException] = field(default_factory=dict)
    """(type, zone) → the state of its reservation, or what is raised; without a row AWS has no room."""
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    later: str = "active"
    """The state that a pending reservation has when it is looked at."""
    in_use: int = 0
    """How often AWS still calls the group in use after its reservation was cancelled."""

    def create_placement_group(self, **asked: Any) -> dict[str, Any]:
        arn = f"arn:aws:ec2:us-west-2:123456789012:placement-group/{asked['GroupName']}"
        tags = asked["TagSpecifications"][0]["Tags"]
        self.groups[asked["GroupName"]] = {"GroupName": asked["GroupName"], "Tags": tags, "State": "available"}
        return {"PlacementGroup": {"GroupArn": arn}}

    def create_capacity_reservation(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        answer = self.answers.get((asked["InstanceType"], asked["AvailabilityZone"]), refused())
        row = {
            "CapacityReservationId": f"cr-{len(self.asked)}",
            "InstanceType": asked["InstanceType"],
            "Tags": asked["TagSpecifications"][0]["Tags"],
            "State": answer,
        }
        if isinstance(answer, ClientError):
            raise answer
        self.reservations[str(row["CapacityReservationId"])] = row
        if isinstance(answer, BaseException):
            raise answer
        return {"CapacityReservation": row}

    def cancel_capacity_reservation(self, **named: str) -> None:
        if self.later == "failed":
            raise refused("IncorrectState")
        del self.reservations[named["CapacityReservationId"]]

    def delete_placement_group(self, **named: str) -> None:
        if self.in_use:
            self.in_use -= 1
            raise refused("InvalidPlacementGroup.InUse")
        assert not self._living(), "AWS refuses to delete a group with a reservation in it"
        del self.groups[named["GroupName"]]

    def describe_placement_groups(self, **_: Any) -> dict[str, Any]:
        return {"PlacementGroups": list(self.groups.values())}

    def describe_capacity_reservations(self, **named: list[str]) -> dict[str, Any]:
        rows = [self.reservations[id] for id in named["CapacityReservationIds"]]
        return {"CapacityReservations": [{**row, "State": self.later} for row in rows]}

    def _living(self) -> list[dict[str, Any]]:
        return [] if self.later == "failed" else list(self.reservations.values())

    def get_paginator(self, operation: str) -> Any:
        rows = {"describe_capacity_reservations": {"CapacityReservations": self._living()}}
        zones = [("p5en.48xlarge", "us-west-2c"), ("p5.48xlarge", "us-west-2b"), ("p5.48xlarge", "us-west-2a")]
        beside = [("p5.48xlarge", "us-west-2-lax-1a")]
        listed = [{"InstanceType": name, "Location": zone} for name, zone in (*zones, *beside)]
        pages = [rows.get(operation, {"InstanceTypeOfferings": listed})]
        return SimpleNamespace(paginate=lambda **_: pages)


def refused(code: str = "InsufficientInstanceCapacity") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "CreateCapacityReservation")


def clients_of(ec2: FakeEc2) -> Clients:
    return FakeClients(ec2=ec2)


def asked_of(ec2: FakeEc2, *, is_grouped: bool = True) -> list[tuple[str, str | None]]:
    trial = CapacityTrial(trial_id=ID, cluster="train", owner="ada", places=4, is_grouped=is_grouped, tags=OWN_TAGS)
    attempts = ask_for_capacity(
        clients_of(ec2), trial, ORDER, now=lambda: NOW, tell=lambda _: None, sleep=lambda _: None
    )
    return [(f"{each.candidate.instance_type}@{each.candidate.zone[-1]}", each.refusal) for each in attempts]


def test_candidates_are_asked_in_order_until_there_is_room_and_nothing_is_left() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2b"): refused("VcpuLimitExceeded"), (P5, "us-west-2a"): "active"})
    assert asked_of(ec2) == [
        (f"{P5EN}@a", "InsufficientInstanceCapacity"),
        (f"{P5EN}@b", "VcpuLimitExceeded"),
        (f"{P5}@a", None),
    ]
    assert (ec2.reservations, ec2.groups) == ({}, {})


def test_a_reservation_is_for_all_nodes_in_a_group_ends_soon_and_carries_the_trials_tags() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): "active"})
    asked_of(ec2)
    (asked,) = ec2.asked
    tags = {row["Key"]: row["Value"] for row in asked["TagSpecifications"][0]["Tags"]}
    assert (asked["InstanceCount"], asked["InstanceMatchCriteria"]) == (4, "targeted")
    assert asked["PlacementGroupArn"].endswith(f"/clusterctl-probe-{ID}")
    assert (asked["EndDate"] - NOW).total_seconds() == 300
    assert tags["team"] == "vision", "an account may refuse what lacks it"
    assert (tags[ID_TAG], tags[TRIAL_TAG], tags["clusterctl:deadline"]) == (ID, "true", "2026-11-25T12:05:00Z")


def test_without_a_placement_group_none_is_made() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): "active"})
    asked_of(ec2, is_grouped=False)
    assert "PlacementGroupArn" not in ec2.asked[0]


@pytest.mark.parametrize(("later", "refusal"), [("active", None), ("pending", "pending")])
def test_a_reservation_that_is_pending_is_waited_for_and_cancelled(later: str, refusal: str | None) -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): "pending"}, later=later)
    assert asked_of(ec2)[0] == (f"{P5EN}@a", refusal)
    assert ec2.reservations == {}


def test_after_a_reservation_that_failed_which_aws_does_not_cancel_the_next_zone_is_asked() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): "pending"}, later="failed")
    assert [refusal for _, refusal in asked_of(ec2)][:2] == ["failed", "InsufficientInstanceCapacity"]


def test_there_is_room_though_aws_lets_the_group_go_only_later() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): "active"}, in_use=2)
    assert asked_of(ec2) == [(f"{P5EN}@a", None)]
    assert (ec2.reservations, ec2.groups) == ({}, {})


def test_a_right_that_is_missing_ends_the_asking() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): refused("UnauthorizedOperation")})
    with pytest.raises(CloudError, match="UnauthorizedOperation: asking whether there is room for 4 machines"):
        asked_of(ec2)
    assert (len(ec2.asked), ec2.groups) == (1, {})


def test_what_was_made_when_a_person_stops_it_is_found_by_its_tag_and_ended() -> None:
    ec2 = FakeEc2(answers={(P5EN, "us-west-2a"): KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        asked_of(ec2)
    assert (ec2.reservations, ec2.groups) == ({}, {})


def test_types_keep_their_order_zones_go_by_name_and_local_zones_are_none() -> None:
    found = offered(clients_of(FakeEc2()), [P5, P5EN])
    assert [(each.instance_type, each.zone) for each in found] == [
        (P5, "us-west-2a"),
        (P5, "us-west-2b"),
        (P5EN, "us-west-2c"),
    ]
