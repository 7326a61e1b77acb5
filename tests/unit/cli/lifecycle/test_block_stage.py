"""A capacity block is bought once, whatever fails or is killed when, and only after somebody agreed to its sum."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # requests and answers as boto3 has them

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from clusterctl.engine.purchase_file import Purchase, paid_words, read_purchase, write_purchase
from clusterctl.engine.stack_config import config_values
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.adopt import adopt
from clusterctl.lifecycle.block_stage import bought, look_for_block, plan_time, zone_of
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithPlan
from clusterctl.lifecycle.checks.without_aws import plan as refuse_plan
from clusterctl.lifecycle.intent import plan_of, read_intent
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.text.instant import utc_now
from clusterctl_infra.errors import CapExceeded, CloudError, ConfigError, NoCapacity, NotBegun, UsageError
from clusterctl_infra.names import ID_TAG, PURCHASED_FOR_TAG

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.lifecycle.block_market import DAY, SEARCH, Account, Killed, change_of, selling
from tests.unit.cli.lifecycle.recorded_runs import CLUSTER, intent_of


def request_of(folder: Path, **flags: Any) -> UpRequest:
    facts: dict[str, Any] = {"stack_name": "dev", "rehearse": False, "nodes": None, "is_agreed": True}
    return UpRequest(stack_dir=folder, ready_timeout_s=None, **{**facts, **flags})


def brought(
    folder: Path,
    account: Account,
    *,
    text: str = SEARCH,
    typed: str | None = None,
    later: timedelta = timedelta(0),
    **flags: Any,
) -> str | None:
    """The block that an `up` goes on with: looked for, planned with, bought."""
    change, now = change_of(folder, account, typed=typed), utc_now() + later
    change.stack.cluster_file.write_text(text)
    file = change.engine.environment.config_file
    intent = read_intent(change.stack, file.read_text() if file.exists() else "", nodes=None)
    sought = look_for_block(change, intent, StackState(), now=now)
    intent = adopt(change, sought.intent, StackState(), now=now, offered=sought.adopted)
    planned = WithPlan(
        stack=change.stack,
        state=StackState(),
        shown="train",
        now=now,
        held=change,
        intent=intent,
        plan=plan_of(intent, StackState(), now=plan_time(sought.offering, now)),
        offering=sought.offering,
    )
    assert not [each for each in planned.plan.problems if each.level == "error"]
    made = bought(change, planned, request_of(folder, **flags))
    assert made.plan.reservation_id == made.intent.settings.block
    return made.plan.reservation_id


def test_the_cheapest_is_bought_once_and_every_later_up_uses_it(tmp_path: Path) -> None:
    account = selling("6000", "5000", "7000")
    assert brought(tmp_path, account, buys=True) == "cr-00000001"
    assert brought(tmp_path, account) == "cr-00000001"
    (asked,) = account.purchases
    assert asked["CapacityBlockOfferingId"] == "cb-00000001"
    config = config_values((tmp_path / "Pulumi.dev.yaml").read_text())
    assert config == {"block": "cr-00000001"}


def test_what_is_bought_carries_no_clusters_id_and_the_persons_own_tags(tmp_path: Path) -> None:
    account = selling()
    brought(tmp_path, account, buys=True)
    tags = {row["Key"]: row["Value"] for row in account.purchases[0]["TagSpecifications"][0]["Tags"]}
    assert ID_TAG not in tags
    assert (tags["team"], tags[PURCHASED_FOR_TAG]) == ("vision", "train")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 8))
@pytest.mark.parametrize("is_home_lost", [False, True])
def test_an_up_that_is_killed_at_any_call_never_leads_to_a_second_block(
    tmp_path: Path, call: int, when: str, is_home_lost: bool
) -> None:
    """The calls: blocks there are, offerings, the lock, blocks once more, whose lock it is, the purchase, the block."""
    account = selling(fails={(call, when): Killed()})
    with pytest.raises(Killed):
        brought(tmp_path, account, buys=True)
    was_bought = bool(account.purchases)
    assert was_bought == (call > 6 or (call, when) == (6, "after"))
    was_locked = call > 3 or (call, when) == (3, "after")
    if is_home_lost:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        (tmp_path / "Pulumi.dev.yaml").unlink(missing_ok=True)
    account.fails = {}
    if was_locked and not was_bought:
        is_noted = (call, is_home_lost) == (6, False)
        refusal = (
            r"the block may be bought. Nothing else is"
            if is_noted
            else r"is buying a capacity block .* Nothing else is"
        )
        with pytest.raises(CloudError, match=f"{refusal} bought before"):
            brought(tmp_path, account, buys=True)
        assert account.purchases == []
    account.grow_old(minutes=16)
    assert brought(tmp_path, account, buys=True, later=timedelta(minutes=16)) == "cr-00000001"
    assert len(account.purchases) == 1


@pytest.mark.parametrize(
    "lost",
    [
        ReadTimeoutError(endpoint_url="https://ec2.us-west-2.amazonaws.com"),
        ClientError(
            {"Error": {"Code": "InternalError"}, "ResponseMetadata": {"HTTPStatusCode": 500}},  # type: ignore[typeddict-item]
            "PurchaseCapacityBlock",
        ),
    ],
)
def test_after_an_answer_that_was_lost_nothing_is_bought_before_aws_shows_what_became_of_it(
    tmp_path: Path, lost: Exception
) -> None:
    account = selling("5000", "5100", fails={(6, "after"): lost}, shows_new=False)
    for _ in range(3):
        with pytest.raises(CloudError, match="the block may be bought"):
            brought(tmp_path, account, buys=True)
    account.shows_new = True
    assert brought(tmp_path, account, buys=True) == "cr-00000001"
    assert len(account.purchases) == 1


def test_a_refusal_is_told_and_the_next_up_may_buy_at_once(tmp_path: Path) -> None:
    refusal = ClientError(
        {"Error": {"Code": "UnauthorizedOperation", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}},  # type: ignore[typeddict-item]
        "PurchaseCapacityBlock",
    )
    account = selling(fails={(6, "before"): refusal})
    with pytest.raises(CloudError, match="UnauthorizedOperation: buying the capacity block cb-00000000"):
        brought(tmp_path, account, buys=True)
    assert brought(tmp_path, account, buys=True) == "cr-00000001"


def test_yes_alone_buys_nothing(tmp_path: Path) -> None:
    account = selling()
    with pytest.raises(
        UsageError, match=r"4 × p5.48xlarge in us-west-2b .* for \$5000.00, paid at once and not refunded"
    ):
        brought(tmp_path, account, is_agreed=True)
    assert account.purchases == []


@pytest.mark.parametrize(("typed", "count"), [("train", 1), ("y", 0), ("", 0)])
def test_at_a_terminal_the_clusters_name_buys_it(tmp_path: Path, typed: str, count: int) -> None:
    account = selling()
    if count:
        assert brought(tmp_path, account, typed=typed) == "cr-00000001"
    else:
        with pytest.raises(UsageError, match="not agreed, nothing was bought or made"):
            brought(tmp_path, account, typed=typed)
    assert len(account.purchases) == count


def test_one_that_begins_later_is_bought_once_and_its_beginning_is_said(tmp_path: Path) -> None:
    account = selling(begins_in=timedelta(hours=5))
    for _ in range(2):
        with pytest.raises(
            NotBegun, match=r"cr-00000001 is scheduled: it begins at .* wait: --retry-until-up --for 6h"
        ) as refused:
            brought(tmp_path, account, buys=True)
        assert refused.value.begins_at == account.blocks[0]["StartDate"]
    assert len(account.purchases) == 1


def test_none_is_bought_for_a_run_that_ends_before_it_begins(tmp_path: Path) -> None:
    change, now = change_of(tmp_path, selling(begins_in=timedelta(hours=30))), utc_now()
    change.stack.cluster_file.write_text(SEARCH)
    sought = look_for_block(change, read_intent(change.stack, "", nodes=None), StackState(), now=now)
    intent = adopt(change, sought.intent, StackState(), now=now, offered=sought.adopted)
    known = WithPlan(
        stack=change.stack,
        state=StackState(),
        shown="train",
        now=now,
        held=None,
        intent=intent,
        plan=plan_of(intent, StackState(), now=now),  # of a run that began now, and ends while the block is awaited
        offering=sought.offering,
    )
    with pytest.raises(CapExceeded):
        refuse_plan(known)
    refuse_plan(replace(known, plan=plan_of(intent, StackState(), now=plan_time(sought.offering, now))))


@pytest.mark.parametrize("state", ["expired", "payment-failed"])
def test_when_the_block_is_over_another_is_looked_for_and_asked_about(tmp_path: Path, state: str) -> None:
    account = selling()
    brought(tmp_path, account, buys=True)
    account.blocks[0]["State"] = state
    later = timedelta(minutes=16)
    account.grow_old(minutes=16)
    with pytest.raises(UsageError, match="not agreed, since"):
        brought(tmp_path, account, later=later)
    assert brought(tmp_path, account, buys=True, later=later) == "cr-00000002"


@pytest.mark.parametrize(
    ("changes", "search", "reason"),
    [
        ({"zone": "us-west-2a"}, "hours: 24", "is in us-west-2a, and the cluster in us-west-2b"),
        ({"fee": "x"}, "hours: 24", "has no price in US dollars"),
        ({"fee": "5000.01"}, "hours: 24, max_usd: 5000", r"costs \$5000.01, more than max_usd: \$5000.00"),
        ({"EndDate": datetime(2026, 1, 1, tzinfo=UTC)}, "hours: 24", "lasts -"),
        ({}, "hours: 24, start: 2099-01-01T00:00Z", "begins at 20"),
        ({"InstanceCount": 3}, "hours: 24", "holds 3"),
        ({"CapacityBlockOfferingSegments": [{}, {}]}, "hours: 24", "is 2 reservations, one after the other"),
    ],
)
def test_what_does_not_fit_is_named_with_why_and_not_bought(
    tmp_path: Path, changes: dict[str, Any], search: str, reason: str
) -> None:
    account = Account()
    account.offer(**changes)
    text = SEARCH.replace("hours: 24", search) + "zone: us-west-2b\n"
    with pytest.raises(NoCapacity, match=reason):
        brought(tmp_path, account, text=text, buys=True)
    assert account.purchases == []


def test_where_aws_offers_none_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        NoCapacity, match=r"no capacity block of 4 × p5.48xlarge for 24 h in us-west-2 that fits\. Nothing"
    ):
        brought(tmp_path, Account(), buys=True)


def purchase(**changed: Any) -> Purchase:
    facts: dict[str, Any] = {
        "purchase_id": "0123456789ab",
        "offering_id": "cb-0",
        "region": "us-west-2",
        "account": "123456789012",
        "words": "4 × p5.48xlarge for $5000.00",
        "ends_at": utc_now() + DAY,
        "asked_at": utc_now() - DAY,
        "reservation_id": "cr-00000009",
    }
    return Purchase(**{**facts, **changed})


@pytest.mark.parametrize("elsewhere", [{"region": "us-east-1"}, {"account": "210987654321"}])
def test_one_that_lasts_elsewhere_keeps_a_second_from_being_bought(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    write_purchase(Home(path=tmp_path / "home").purchase_file("train"), purchase(**elsewhere))
    account = selling()
    with pytest.raises(CloudError, match="no second one is bought"):
        brought(tmp_path, account, buys=True)
    assert account.purchases == []


def test_a_purchase_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    file = Home(path=tmp_path / "home").purchase_file("train")
    written = purchase()
    write_purchase(file, written)
    assert read_purchase(file) == written
    file.write_text("{")
    account = selling()
    with pytest.raises(ConfigError, match="it says whether a capacity block was bought"):
        brought(tmp_path, account, buys=True)
    assert account.purchases == []
    assert "cannot be read" in str(paid_words(file, now=utc_now(), is_rehearsal=False))


def test_what_ends_clusters_says_that_the_block_is_paid_until_its_end(tmp_path: Path) -> None:
    file = tmp_path / "purchases" / "train.json"
    assert paid_words(file, now=utc_now(), is_rehearsal=False) is None
    write_purchase(file, purchase())
    assert paid_words(file, now=utc_now(), is_rehearsal=False) == (
        "capacity block cr-00000009 stays: 4 × p5.48xlarge for $5000.00; it is paid until its end, and AWS returns "
        "nothing. The next up uses it"
    )
    assert paid_words(file, now=utc_now() + 2 * DAY, is_rehearsal=False) is None


def test_a_block_is_looked_for_in_the_zone_of_the_subnet_that_its_machines_go_to(runner: Callable[..., Change]) -> None:
    subnet = {
        "SubnetId": "subnet-0a1b2c3d",
        "VpcId": "vpc-0a1b2c3d",
        "CidrBlock": "172.31.16.0/24",
        "AvailabilityZone": "us-west-2c",
        "AvailableIpAddressCount": 200,
    }
    change = runner(aws=clients_of({("us-west-2", "describe_subnets", "Subnets"): [subnet]}))
    adopts = "network: {adopt: {vpc_id: vpc-0a1b2c3d, node_subnet_id: subnet-0a1b2c3d}}\n"
    zones = []
    for text in (CLUSTER, f"{CLUSTER}zone: us-west-2a\n", f"{CLUSTER}{adopts}"):
        change.stack.cluster_file.write_text(text)
        zones.append(zone_of(change, intent_of(change), StackState()))
    assert zones == [None, "us-west-2a", "us-west-2c"]
