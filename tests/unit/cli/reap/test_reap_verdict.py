"""What may be ended, and what stays: nothing of a cluster that lives, of a colleague's, or that holds data."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from clusterctl.cloud.resource import CloudResource, type_of
from clusterctl.cloud.resource_types import KINDS
from clusterctl.reap.remains import Remains, remains_of
from clusterctl.reap.verdict import Asked, KnownHere, Verdict, judge, latest_deadline, spared_since
from clusterctl_infra.names import TRIAL_TAG
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.reap.reap_cases import GRACE, ID, LATE, NOW, OTHER, mine, thing, written

KIND_NAMES = [name for kind in KINDS for name in (kind.also_called or (kind.name,))]


def remains(*things: CloudResource, region: str | None = "us-west-2") -> Remains:
    return Remains(cluster_id=ID, region=region, things=things)


def past(*, by: timedelta) -> Remains:
    return remains(thing("instance", "i-1", deadline=written(NOW - by)))


def asked_for_room(*, by: timedelta) -> Remains:
    made = thing("capacity reservation", "cr-1", deadline=written(NOW - by))
    return remains(replace(made, tags={**made.tags, TRIAL_TAG: "true"}))


def judged(found: Remains, known: KnownHere | None = None, *, all_regions: bool = False, **asked: object) -> Verdict:
    wish = Asked(grace=GRACE, **asked)  # type: ignore[arg-type]
    return judge(found, wish, known, now=NOW, all_regions=all_regions)


CASES = {
    "mine and past its deadline": (past(by=LATE), mine(), {}, True, "2 h past its deadline"),
    "mine, within the grace": (past(by=timedelta(minutes=9)), mine(), {}, False, "10 m of grace"),
    "mine, at its deadline": (past(by=timedelta(0)), mine(), {}, False, "its deadline was 12:00 UTC, 10 m of grace"),
    "mine, at the end of the grace": (past(by=GRACE), mine(), {}, True, "10 m past its deadline"),
    "mine, before its deadline": (past(by=-LATE), mine(), {}, False, "its deadline is 14:00 UTC"),
    "a colleague's and past its deadline": (past(by=LATE), None, {}, False, "a colleague's"),
    "a colleague's, for a scheduler": (past(by=LATE), None, {"anyones": True}, True, "2 h past"),
    "nobody's, made to ask for room": (asked_for_room(by=LATE), None, {}, True, "asked for room, and cut off"),
    "nobody's, asking for room now": (asked_for_room(by=-LATE), None, {}, False, "its deadline is"),
    "a colleague's that lives, for a scheduler": (past(by=-LATE), None, {"anyones": True}, False, "deadline is"),
    "named, though it lives": (past(by=-LATE), None, {"clusters": frozenset({ID})}, True, "named"),
    "another one is named": (past(by=-LATE), mine(), {"clusters": frozenset({OTHER})}, False, "deadline is"),
    "without a deadline": (remains(thing("instance", "i-1")), mine(), {}, False, "no part of it says a deadline"),
    "with a broken deadline": (
        remains(thing("instance", "i-1", deadline="soon"), thing("subnet", "s-1", deadline=written(NOW - LATE))),
        mine(),
        {},
        False,
        "no part of it says a deadline",
    ),
    "down on purpose": (past(by=LATE), mine(is_down=True), {}, False, "down on purpose"),
    "down on purpose, but named": (past(by=LATE), mine(is_down=True), {"clusters": frozenset({ID})}, True, "named"),
    "down on purpose, as its tags say": (
        remains(thing("NAT gateway", "nat-1", deadline="none"), thing("VPC", "vpc-1", deadline="none")),
        None,
        {"anyones": True},
        False,
        "down on purpose",
    ),
    "a down that was cut off": (
        remains(thing("instance", "i-1", deadline=written(NOW - LATE)), thing("VPC", "vpc-1", deadline="none")),
        None,
        {"anyones": True},
        True,
        "2 h past",
    ),
    "being changed": (past(by=LATE), mine(changing="clusterctl up (pid 7)"), {}, False, "is changing it now"),
    "being changed, though named": (
        past(by=LATE),
        mine(changing="clusterctl up (pid 7)"),
        {"clusters": frozenset({ID})},
        False,
        "is changing it now",
    ),
    "extended, as only this computer knows": (past(by=LATE), mine(deadline=NOW + LATE), {}, False, "deadline is"),
}


@pytest.mark.parametrize(("found", "known", "asked", "ends", "reason"), CASES.values(), ids=CASES)
def test_a_cluster_ends_only_for_a_reason(
    found: Remains, known: KnownHere | None, asked: dict[str, object], ends: bool, reason: str
) -> None:
    verdict = judged(found, known, **asked)  # type: ignore[arg-type]  # a table of wishes
    assert (verdict.ends, reason in verdict.reason) == (ends, True), verdict.reason
    assert bool(verdict.going) is ends


def test_while_an_extension_is_under_way_the_latest_deadline_counts() -> None:
    found = remains(
        thing("VPC", "vpc-1", deadline=written(NOW + LATE)), thing("instance", "i-1", deadline=written(NOW - LATE))
    )
    assert found.deadline == NOW + LATE
    assert latest_deadline(found, mine(deadline=NOW + 2 * LATE)) == NOW + 2 * LATE
    assert not judged(found, mine()).ends


def test_an_interface_that_keeps_the_deadline_of_its_birth_does_not_hold_a_cluster_that_ends_earlier() -> None:
    interface = thing("network interface", "eni-1", deadline=written(NOW + LATE), attached_to="i-1")
    machine = thing("instance", "i-1", deadline=written(NOW - LATE))
    assert remains(machine, interface).deadline == NOW - LATE
    assert judged(remains(machine, interface), mine()).going == (machine,)
    assert remains(interface).deadline == NOW + LATE  # nothing else tells


@pytest.mark.parametrize(
    ("now_there", "known", "named", "why"),
    [
        ([thing("instance", "i-1", deadline=written(NOW - LATE))], mine(), False, None),
        ([thing("role", "r-1")], None, False, None),
        ([thing("network interface", "eni-1", deadline=written(NOW + LATE))], None, False, None),
        ([thing("instance", "i-2", deadline=written(NOW + LATE))], None, False, "its deadline was moved to 14:00 UTC"),
        ([thing("VPC", "vpc-1", deadline="none")], None, False, "down on purpose"),
        ([thing("VPC", "vpc-1", deadline=written(NOW - LATE))], mine(is_down=True), False, "down on purpose"),
        ([thing("VPC", "vpc-1", deadline="none")], mine(is_down=True), True, None),
        ([thing("instance", "i-1", deadline=written(NOW + LATE))], None, True, None),
        ([thing("subnet", "subnet-9")], None, True, None),
        ([thing("instance", "i-2")], None, True, "instance i-2 was made while this looked"),
        ([thing("capacity reservation", "cr-2")], None, True, "capacity reservation cr-2 was made while"),
        ([thing("VPC", "vpc-1")], mine(changing="clusterctl up (pid 7)"), True, "clusterctl up (pid 7) is changing it"),
    ],
)
def test_what_became_somebodys_again_since_the_look_is_left_alone(
    now_there: list[CloudResource], known: KnownHere | None, named: bool, why: str | None
) -> None:
    wish = Asked(grace=GRACE, anyones=True, clusters=frozenset({ID} if named else ()))
    verdict = judge(past(by=LATE), wish, None, now=NOW, all_regions=False)
    assert verdict.ends
    reason = spared_since(verdict, now_there, wish, known, now=NOW)
    assert reason is None if why is None else reason is not None and why in reason


def test_what_is_in_no_region_ends_only_when_the_rest_was_looked_for_everywhere() -> None:
    role = thing("role", f"clusterctl-{ID}", deadline=written(NOW - LATE))
    found = remains(role, region=None)
    assert not judged(found, mine()).ends
    assert not judged(found, None, clusters=frozenset({ID})).ends
    assert judged(found, mine(), all_regions=True).going == (role,)


FULL = remains(
    thing("instance", "i-1", deadline=written(NOW - LATE)),
    thing("volume", "vol-root", attached_to="i-1"),
    thing("network interface", "eni-1", attached_to="i-1"),
    thing("EFS mount target", "fsmt-1"),
    thing("EFS file system", "fs-1"),
    thing("FSx data repository association", "dra-1"),
    thing("NAT gateway", "nat-1"),
    thing("security group", "sg-1"),
    thing("subnet", "subnet-1"),
    thing("VPC", "vpc-1"),
    thing("role", f"clusterctl-{ID}"),
)


def test_data_stays_with_what_leads_to_it_until_it_is_named() -> None:
    kept = judged(FULL, mine())
    assert [resource.id for resource in kept.going] == ["i-1", "nat-1", f"clusterctl-{ID}"]
    assert kept.why_stays(FULL.things[4]) == "holds data: --data fs-1 ends it"
    named = judged(FULL, mine(), data=frozenset({"fs-1"}))
    assert [resource.id for resource in FULL.things if resource not in named.going] == ["vol-root", "eni-1"]


def test_what_its_machine_leaves_behind_goes_but_for_a_volume() -> None:
    verdict = judged(FULL, mine())
    assert verdict.why_stays(thing("network interface", "eni-1")) is None
    assert verdict.why_stays(thing("volume", "vol-root")) == "holds data: --data vol-root ends it"


THINGS = st.builds(
    thing,
    st.sampled_from(KIND_NAMES),
    st.uuids().map(str),
    deadline=st.sampled_from([None, "soon", *(written(NOW + timedelta(hours=hours)) for hours in (-3, -1, 0, 1))]),
    attached_to=st.sampled_from([None, None, "i-1"]),
)
KNOWN = st.sampled_from([None, mine(), mine(is_down=True), mine(deadline=NOW + LATE), mine(changing="up (pid 1)")])


@given(
    things=st.lists(THINGS, min_size=1, max_size=8),
    known=KNOWN,
    anyones=st.booleans(),
    data=st.sets(st.integers(0, 7)),
    region=st.sampled_from(["us-west-2", None]),
)
def test_nothing_that_lives_is_a_colleagues_or_holds_data_ever_goes(
    things: list[CloudResource], known: KnownHere | None, anyones: bool, data: set[int], region: str | None
) -> None:
    named = frozenset(resource.id for number, resource in enumerate(things) if number in data)
    found = remains(*things, region=region)
    verdict = judged(found, known, anyones=anyones, data=named)
    telling = [resource for resource in things if "clusterctl:deadline" in resource.tags]
    moved = [resource for resource in telling if resource.kind != "network interface"]
    says = [resource.tags["clusterctl:deadline"] for resource in moved or telling]
    if verdict.ends:
        assert says
        assert all(datetime.fromisoformat(text) + GRACE <= NOW for text in says)
        assert known is not None or anyones
        assert known is None or not (known.is_down or known.changing)
        assert region is not None
    for resource in verdict.going:
        assert resource.id in named or not type_of(resource, KINDS).is_data
        assert resource.attached_to is None
    assert {resource.id for resource in verdict.going} <= {resource.id for resource in things}


def test_the_things_of_each_cluster_come_together_and_what_is_in_no_region_is_counted_once() -> None:
    role = thing("role", "clusterctl-1")
    found = {
        "eu-west-1": (role, thing("instance", "i-2", cluster=OTHER), CloudResource(kind="instance", id="i-nobodys")),
        "us-west-2": (role, thing("VPC", "vpc-1")),
    }
    by_id = {cluster.cluster_id: cluster for cluster in remains_of(found)}
    assert {resource.id for resource in by_id[ID].things} == {"clusterctl-1", "vpc-1"}
    assert (by_id[ID].region, by_id[OTHER].region) == ("us-west-2", "eu-west-1")
    assert (by_id[ID].name, by_id[ID].owner) == ("train", "ada")
    assert set(by_id) == {ID, OTHER}


def test_where_a_file_system_may_be_unseen_what_leads_to_one_stays_and_machines_end() -> None:
    found = remains(
        thing("instance", "i-1", deadline=written(NOW - LATE)), thing("subnet", "s-1"), thing("NAT gateway", "nat-1")
    )
    wish = Asked(grace=GRACE)
    blind = judge(found, wish, mine(), now=NOW, all_regions=False, not_listed=frozenset({"FSx file system"}))
    assert [resource.id for resource in blind.going] == ["i-1", "nat-1"]
    without_key_pairs = judge(found, wish, mine(), now=NOW, all_regions=False, not_listed=frozenset({"key pair"}))
    assert [resource.id for resource in without_key_pairs.going] == ["i-1", "s-1", "nat-1"]
