"""An account that sells capacity blocks, and a change that buys there."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any  # requests and answers as boto3 has them

from botocore.exceptions import ClientError
from clusterctl.engine.stack import Stack
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.output import Output
from clusterctl.text.instant import utc_now
from clusterctl_infra.names import PURCHASED_AT_TAG

from tests.unit.cli.cloud.fake_answers import always
from tests.unit.cli.cloud.fake_clients import FakeClients
from tests.unit.cli.engine.fake_engine import FakeEngine
from tests.unit.cli.lifecycle.held_cluster import environment_of
from tests.unit.cli.lifecycle.intent_cases import CLUSTER

P5, DAY = "p5.48xlarge", timedelta(hours=24)
SEARCH = CLUSTER + "capacity_block: {find: {hours: 24}}\ntags: {team: vision}\n"


class Killed(BaseException):
    """The process was killed: no code after this runs."""


@dataclass
class Account(FakeClients):
    """Sells blocks, and may be killed or lose its answer at any call."""

    offers: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    purchases: list[dict[str, Any]] = field(default_factory=list)
    fails: dict[tuple[int, str], BaseException] = field(default_factory=dict)
    """(number of the call from 1, `before` or `after` it has an effect) → what happens then."""
    shows_new: bool = True
    """Whether AWS's lists already show what was just bought."""
    begins_in: timedelta = timedelta(0)
    calls: int = 0
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    """Name of a placement group → its tags."""
    meeting: threading.Barrier | None = None
    """Where buyers wait for each other, between the last look and the purchase's lock."""

    def __post_init__(self) -> None:
        self._one_by_one = threading.RLock()
        FakeClients.__init__(self, endpoint_url=None, ec2=self)

    def account(self) -> str:
        return "123456789012"

    def get_paginator(self, operation: str) -> Any:
        lists: dict[str, Callable[[], dict[str, Any]]] = {
            "describe_capacity_reservations": lambda: {
                "CapacityReservations": list(self.blocks) if self.shows_new else []
            },
            "describe_capacity_block_offerings": lambda: {"CapacityBlockOfferings": list(self.offers)},
        }
        return SimpleNamespace(paginate=lambda **_: [self._call(lists[operation])])

    def describe_capacity_reservations(self, **asked: Any) -> dict[str, Any]:
        ids = asked["CapacityReservationIds"]
        return self._call(
            lambda: {"CapacityReservations": [row for row in self.blocks if row["CapacityReservationId"] in ids]}
        )

    def create_placement_group(self, **asked: Any) -> dict[str, Any]:
        if self.meeting is not None:
            self.meeting.wait()
        return self._call(lambda: self._group(asked))

    def _group(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["GroupName"] in self.groups:
            raise refusal("InvalidPlacementGroup.Duplicate", "CreatePlacementGroup")
        (tags,) = asked["TagSpecifications"]
        self.groups[asked["GroupName"]] = {row["Key"]: row["Value"] for row in tags["Tags"]}
        return {}

    def describe_placement_groups(self, **asked: Any) -> dict[str, Any]:
        wanted = asked["Filters"][0]["Values"]
        return self._call(
            lambda: {"PlacementGroups": [group_view(name, self.groups) for name in wanted if name in self.groups]}
        )

    def delete_placement_group(self, **asked: Any) -> dict[str, Any]:
        return self._call(lambda: {"Return": self.groups.pop(asked["GroupName"])})

    def grow_old(self, minutes: int) -> None:
        """Moves the time at which each placement group was made back by these minutes."""
        for tags in self.groups.values():
            made = datetime.fromisoformat(tags[PURCHASED_AT_TAG]) - timedelta(minutes=minutes)
            tags[PURCHASED_AT_TAG] = made.isoformat()

    def purchase_capacity_block(self, **asked: Any) -> dict[str, Any]:
        return self._call(lambda: {"CapacityReservation": self._sell(asked)})

    def _sell(self, asked: dict[str, Any]) -> dict[str, Any]:
        offer = next(row for row in self.offers if row["CapacityBlockOfferingId"] == asked["CapacityBlockOfferingId"])
        self.purchases.append(asked)
        (tags,) = asked["TagSpecifications"]
        block = {
            "CapacityReservationId": f"cr-{len(self.purchases):08x}",
            "InstanceType": offer["InstanceType"],
            "AvailabilityZone": offer["AvailabilityZone"],
            "State": "scheduled" if self.begins_in else "active",
            "TotalInstanceCount": offer["InstanceCount"],
            "AvailableInstanceCount": offer["InstanceCount"],
            "ReservationType": "capacity-block",
            "StartDate": offer["StartDate"],
            "EndDate": offer["EndDate"],
            "Tags": tags["Tags"],
        }
        self.blocks.append(block)
        return block

    def _call(self, effect: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        with self._one_by_one:
            return self._called(effect)

    def _called(self, effect: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self.calls += 1
        for when in ("before", "after"):
            failure = self.fails.get((self.calls, when))
            if when == "after":
                answer = effect()
            if failure is not None:
                raise failure
        return answer

    def offer(self, fee: str = "5000", *, zone: str = "us-west-2b", **changed: Any) -> None:
        starts = utc_now() + self.begins_in
        self.offers.append(
            {
                "CapacityBlockOfferingId": f"cb-{len(self.offers):08x}",
                "InstanceType": P5,
                "AvailabilityZone": zone,
                "InstanceCount": 4,
                "StartDate": starts,
                "EndDate": starts + DAY,
                "CapacityBlockDurationHours": 24,
                "UpfrontFee": fee,
                "CurrencyCode": "USD",
                **changed,
            }
        )


def refusal(code: str, operation: str) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(answer, operation)


def group_view(name: str, groups: dict[str, dict[str, str]]) -> dict[str, Any]:
    tags = [{"Key": key, "Value": value} for key, value in groups.get(name, {}).items()]
    return {"GroupName": name, "State": "available", "Tags": tags}


class Keyboard(io.StringIO):
    """The input of a terminal, at which a person sits."""

    def isatty(self) -> bool:
        return True


def selling(*fees: str, **settings: Any) -> Account:
    account = Account(**settings)
    for fee in fees or ("5000",):
        account.offer(fee)
    return account


def change_of(folder: Path, account: Account, *, typed: str | None = None) -> Change:
    stack = Stack(directory=folder, project="train", name="dev", is_rehearsal_project=False)
    return Change(
        verb="up",
        engine=FakeEngine(stack=stack, environment=environment_of(stack)),
        home=Home(path=folder / "home"),
        output=Output(
            stdout=io.BytesIO(),
            stderr=io.BytesIO(),
            stderr_is_terminal=typed is not None,
            stdin=Keyboard(f"{typed}\n" if typed else ""),
        ),
        cluster="train",
        region="us-west-2",
        environ={},
        previous=None,
        clients_at=always(account),
    )
