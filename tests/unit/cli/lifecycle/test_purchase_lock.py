"""Two computers that buy a capacity block for one cluster in the same seconds buy one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any  # requests as boto3 has them

import pytest
from clusterctl.cloud.purchase_lock import lock_name
from clusterctl.text.instant import utc_now
from clusterctl_infra.errors import CloudError
from clusterctl_infra.names import ID_TAG, PURCHASED_AT_TAG, PURCHASED_FOR_TAG

from tests.unit.cli.lifecycle.block_market import Account, refusal, selling
from tests.unit.cli.lifecycle.test_block_stage import brought

LOCK = lock_name("train")


def outcome(folder: Path, account: Account) -> str:
    try:
        return str(brought(folder, account, buys=True))
    except CloudError as e:
        return e.code


@pytest.mark.parametrize("shows_new", [True, False])
@pytest.mark.parametrize("buyers", [2, 5])
def test_of_computers_that_buy_at_once_one_buys_and_the_others_say_that_somebody_does(
    tmp_path: Path, buyers: int, shows_new: bool
) -> None:
    account = selling("5000", "5100", meeting=threading.Barrier(buyers, timeout=30), shows_new=shows_new)
    folders = [tmp_path / f"computer-{number}" for number in range(buyers)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(buyers) as pool:
        found = sorted(pool.map(lambda folder: outcome(folder, account), folders))
    assert len(account.purchases) == 1
    assert found.count("PurchaseUnderWay") == buyers - 1, found
    account.meeting, account.shows_new = None, True
    assert {brought(folder, account) for folder in folders} == {"cr-00000001"}


def test_a_lock_belongs_to_no_cluster_and_carries_a_persons_own_tags(tmp_path: Path) -> None:
    account = selling()
    brought(tmp_path, account, buys=True)
    tags = account.groups[LOCK]
    assert ID_TAG not in tags
    assert (tags["team"], tags[PURCHASED_FOR_TAG]) == ("vision", "train")


def test_the_lock_stays_until_aws_surely_shows_the_block_and_the_next_up_ends_it(tmp_path: Path) -> None:
    account = selling()
    brought(tmp_path, account, buys=True)
    brought(tmp_path, account)
    assert LOCK in account.groups
    account.grow_old(minutes=16)
    brought(tmp_path, account)
    assert account.groups == {}


def test_a_lock_that_may_not_be_ended_keeps_nobody_from_using_the_block(tmp_path: Path) -> None:
    account = selling()
    brought(tmp_path, account, buys=True)
    account.grow_old(minutes=16)
    account.calls = 0
    account.fails = {(3, "before"): refusal("UnauthorizedOperation", "DeletePlacementGroup")}
    assert brought(tmp_path, account) == "cr-00000001"


def test_a_refused_purchase_leaves_no_lock(tmp_path: Path) -> None:
    account = selling(fails={(6, "before"): refusal("UnauthorizedOperation", "PurchaseCapacityBlock")})
    with pytest.raises(CloudError, match="UnauthorizedOperation"):
        brought(tmp_path, account, buys=True)
    assert account.groups == {}


@pytest.mark.parametrize("call", [4, 5], ids=["the last look", "whose lock it is"])
def test_a_refusal_once_the_lock_is_held_leaves_no_lock(tmp_path: Path, call: int) -> None:
    account = selling(fails={(call, "before"): refusal("RequestLimitExceeded", "DescribePlacementGroups")})
    with pytest.raises(CloudError, match="RequestLimitExceeded"):
        brought(tmp_path, account, buys=True)
    assert account.groups == {}


def test_a_refused_purchase_is_told_though_its_lock_may_not_be_ended(tmp_path: Path) -> None:
    fails: dict[tuple[int, str], BaseException] = {
        (6, "before"): refusal("UnauthorizedOperation", "PurchaseCapacityBlock"),
        (8, "before"): refusal("UnauthorizedOperation", "DeletePlacementGroup"),
    }
    account = selling(fails=fails)
    with pytest.raises(CloudError, match="buying the capacity block cb-00000000"):
        brought(tmp_path, account, buys=True)
    assert LOCK in account.groups


def test_a_block_that_was_bought_meanwhile_is_used_though_the_lock_may_not_be_ended(tmp_path: Path) -> None:
    account = selling(fails={(6, "before"): refusal("UnauthorizedOperation", "DeletePlacementGroup")})
    make = account.create_placement_group

    def beside_another(**asked: Any) -> dict[str, Any]:
        brought_there = selling()
        (tmp_path / "there").mkdir()
        brought(tmp_path / "there", brought_there, buys=True)
        account.blocks += brought_there.blocks
        return make(**asked)

    account.create_placement_group = beside_another  # type: ignore[method-assign]
    assert brought(tmp_path, account, buys=True) == "cr-00000001"
    assert account.purchases == []


def test_a_lock_that_another_computer_has_taken_over_is_not_ended(tmp_path: Path) -> None:
    account = selling(fails={(6, "before"): refusal("UnauthorizedOperation", "PurchaseCapacityBlock")})
    buy = account.purchase_capacity_block

    def taken_over(**asked: Any) -> dict[str, Any]:
        account.groups[LOCK] = {"clusterctl:purchase": "another", PURCHASED_AT_TAG: utc_now().isoformat()}
        return buy(**asked)

    account.purchase_capacity_block = taken_over  # type: ignore[method-assign]
    with pytest.raises(CloudError, match="UnauthorizedOperation"):
        brought(tmp_path, account, buys=True)
    assert account.groups[LOCK]["clusterctl:purchase"] == "another"


def test_a_lock_whose_time_has_no_zone_is_read(tmp_path: Path) -> None:
    """As after somebody edited the tag."""
    tags = {"clusterctl:purchase": "0123456789ab", PURCHASED_AT_TAG: utc_now().replace(tzinfo=None).isoformat()}
    account = selling(groups={LOCK: tags})
    with pytest.raises(CloudError, match="is buying a capacity block for train"):
        brought(tmp_path, account, buys=True)


def test_a_computer_whose_lock_was_taken_over_buys_nothing(tmp_path: Path) -> None:
    """As when a laptop slept between the lock and the purchase."""
    account = selling()
    look = account.describe_placement_groups

    def taken_over(**asked: Any) -> dict[str, Any]:
        account.groups[LOCK] = {"clusterctl:purchase": "another", PURCHASED_AT_TAG: utc_now().isoformat()}
        return look(**asked)

    account.describe_placement_groups = taken_over  # type: ignore[method-assign]
    with pytest.raises(CloudError, match="is buying a capacity block for train"):
        brought(tmp_path, account, buys=True)
    assert account.purchases == []


def test_a_computer_whose_lock_grew_old_before_the_purchase_buys_nothing(tmp_path: Path) -> None:
    account = selling()
    look = account.describe_placement_groups

    def late(**asked: Any) -> dict[str, Any]:
        account.grow_old(minutes=8)
        return look(**asked)

    account.describe_placement_groups = late  # type: ignore[method-assign]
    with pytest.raises(CloudError, match="is buying a capacity block for train"):
        brought(tmp_path, account, buys=True)
    assert account.purchases == []


@pytest.mark.parametrize("tags", [{}, {"clusterctl:purchase": "0123456789ab", PURCHASED_AT_TAG: "soon"}])
def test_a_placement_group_of_that_name_that_is_no_lock_is_named_and_never_ended(
    tmp_path: Path, tags: dict[str, str]
) -> None:
    account = selling(groups={LOCK: tags})
    with pytest.raises(
        CloudError, match=r"the placement group clusterctl-buys-train does not have the tags"
    ) as refused:
        brought(tmp_path, account, buys=True)
    assert "delete-placement-group" in str(refused.value.hint)
    assert (account.purchases, list(account.groups)) == ([], [LOCK])


def test_a_lock_of_long_ago_keeps_nobody_from_buying(tmp_path: Path) -> None:
    then = (utc_now() - timedelta(minutes=15)).isoformat()
    account = selling(groups={LOCK: {"clusterctl:purchase": "0123456789ab", PURCHASED_AT_TAG: then}})
    assert brought(tmp_path, account, buys=True) == "cr-00000001"
    assert sorted(account.groups) == [LOCK, f"{LOCK}.1"], "a buyer that takes an old lock's place does not end it"
    account.grow_old(minutes=16)
    brought(tmp_path, account)
    assert account.groups == {}


@pytest.mark.parametrize("call", range(1, 10))
def test_of_two_who_find_an_old_lock_one_buys_however_long_the_other_is_held_up(tmp_path: Path, call: int) -> None:
    """As by boto3, which sends again what AWS has no room for; a new block is not shown yet."""
    then = (utc_now() - timedelta(minutes=15)).isoformat()
    account = selling(shows_new=False, groups={LOCK: {"clusterctl:purchase": "0123456789ab", PURCHASED_AT_TAG: then}})
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    others: list[str] = []
    called = account._call

    def held_up(effect: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if account.calls == call - 1 and not others:
            others.append("at it")
            others.append(outcome(tmp_path / "other", account))
        return called(effect)

    account._call = held_up  # type: ignore[method-assign]
    outcome(tmp_path / "one", account)
    assert len(others) == 2, "the first buyer sends at least that many requests"
    assert len(account.purchases) == 1, others
