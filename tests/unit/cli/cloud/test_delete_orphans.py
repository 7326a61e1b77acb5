"""Things that no state knows are ended; what a state knows, and data from before, is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ReadTimeoutError
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.delete_orphans import KnownNow, delete_orphans, due, end_all
from clusterctl.cloud.instances import instance_state
from clusterctl.cloud.resource import CloudResource, Known, orphans
from clusterctl.cloud.resource_types import KINDS
from clusterctl_infra.errors import CloudError

from tests.unit.cli.cloud.fake_ec2 import FakeRegion, NoClients, thing

INSTANCE = "aws:ec2/instance:Instance"
PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
BEGAN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def deleted(
    region: FakeRegion, known: set[str], *, since: datetime | None = None, known_now: KnownNow | None = None
) -> tuple[list[str], list[str]]:
    kinds = [region.kind("instance"), region.kind("subnet"), region.kind("volume", is_data=True)]
    result = delete_orphans(
        NoClients(),
        "0123456789ab",
        {"test:instance": frozenset(known)},
        data_since=since,
        pause=lambda: None,
        timeout_s=5.0,
        tell=lambda text: None,
        known_now=known_now,
        kinds=kinds,
    )
    return [resource.id for resource in result.ended], [resource.id for resource in result.left]


def test_what_a_state_knows_is_never_an_orphan() -> None:
    found = [thing("i-1"), thing("i-2"), thing("pg", "placement group", aliases=frozenset({"arn:pg"}))]
    known = {INSTANCE: frozenset({"i-1"}), PLACEMENT_GROUP: frozenset({"arn:pg"})}
    assert [resource.id for resource in orphans(found, known, KINDS)] == ["i-2"]


def test_a_name_that_several_kinds_share_is_known_for_its_own_kind_only() -> None:
    """A role in the state, and an instance profile and a key pair of the same name that are in none."""
    name = "clusterctl-0123456789ab"
    found = [thing(name, kind) for kind in ("instance profile", "key pair", "role")]
    known = {"aws:iam/role:Role": frozenset({name})}
    assert [resource.kind for resource in orphans(found, known, KINDS)] == ["instance profile", "key pair"]


def test_a_part_lives_with_what_it_is_attached_to() -> None:
    found = [
        thing("eni-1", "network interface", attached_to="i-1"),
        thing("eni-2", "network interface", attached_to="i-9"),
        thing("eni-3", "network interface"),
    ]
    known = {INSTANCE: frozenset({"i-1"})}
    assert [resource.id for resource in orphans(found, known, KINDS)] == ["eni-2", "eni-3"]


def test_only_orphans_are_ended() -> None:
    region = FakeRegion(things={"i-1": thing("i-1"), "i-2": thing("i-2")})
    assert deleted(region, {"i-1"}) == (["i-2"], [])
    assert set(region.things) == {"i-1"}


def test_what_holds_another_is_tried_again_until_both_are_gone() -> None:
    region = FakeRegion(things={"s-1": thing("s-1", "subnet"), "i-1": thing("i-1")}, holds={"i-1": "s-1", "s-1": "x"})
    assert set(deleted(region, set())[0]) == {"i-1", "s-1"}
    assert region.things == {}


def test_each_thing_is_told_of_once_and_noted_when_aws_agrees_to_its_end() -> None:
    region = FakeRegion(things={"s-1": thing("s-1", "subnet"), "i-1": thing("i-1")}, holds={"s-1": "i-1"})
    messages, noted = list[str](), list[str]()
    delete_orphans(
        NoClients(),
        "0123456789ab",
        {},
        data_since=None,
        pause=lambda: None,
        timeout_s=5.0,
        tell=messages.append,
        agreed=lambda resource: noted.append(resource.id),
        kinds=[region.kind("subnet"), region.kind("instance")],
    )
    assert messages == ["subnet s-1", "instance i-1"], "the subnet was tried twice"
    assert noted == ["i-1", "s-1"]


def test_what_appears_late_is_ended_too() -> None:
    region = FakeRegion(late=[thing("i-7")])
    assert deleted(region, set()) == (["i-7"], [])


def test_data_that_was_there_before_the_broken_run_is_left_and_named() -> None:
    old, new = BEGAN - timedelta(days=1), BEGAN + timedelta(seconds=5)
    region = FakeRegion(
        things={
            "v-old": thing("v-old", "volume", created_at=old),
            "v-new": thing("v-new", "volume", created_at=new),
            "v-unknown": thing("v-unknown", "volume"),
        }
    )
    assert deleted(region, set(), since=BEGAN) == (["v-new"], ["v-old", "v-unknown"])


def test_what_never_goes_is_named_with_awss_code() -> None:
    region = FakeRegion(things={"i-1": thing("i-1")}, holds={"i-1": "i-1"})
    with pytest.raises(CloudError, match=r"instance i-1 \(DependencyViolation\)"):
        delete_orphans(
            NoClients(),
            "0123456789ab",
            {},
            data_since=None,
            pause=lambda: None,
            timeout_s=0.0,
            tell=lambda text: None,
            kinds=[region.kind("instance")],
        )


def test_what_ends_machines_at_the_deadline_goes_after_them() -> None:
    machine, role, subnet = thing("i-1"), thing("r-1", "role"), thing("s-1", "subnet")
    assert due([machine, role, subnet]) == (machine, subnet)
    assert due([thing("cr-1", "capacity reservation"), role]) == (thing("cr-1", "capacity reservation"),)
    assert due([role, subnet]) == (role, subnet)


def test_a_machine_that_may_not_be_ended_keeps_its_guard_and_nobody_waits_for_it() -> None:
    region = FakeRegion(
        things={"i-1": thing("i-1"), "r-1": thing("r-1", "role")}, refused={"i-1": "OperationNotPermitted"}
    )
    waited: list[str] = []
    deletion = end_all(
        NoClients(),
        "0123456789ab",
        {},
        spares=lambda resource: False,
        pause=lambda: waited.append("once"),
        timeout_s=3600.0,
        tell=lambda text: None,
        kinds=[region.kind("instance"), region.kind("role", is_guard=True)],
    )
    assert [deletion.named(resource) for resource in deletion.not_ended] == [
        "instance i-1 (OperationNotPermitted)",
        "role r-1",
    ]
    assert len(waited) == 1


def test_what_is_spared_is_left_and_what_was_refused_at_first_goes_later() -> None:
    region = FakeRegion(
        things={"s-1": thing("s-1", "subnet"), "i-1": thing("i-1"), "i-2": thing("i-2")}, holds={"s-1": "i-1"}
    )
    deletion = end_all(
        NoClients(),
        "0123456789ab",
        {},
        spares=lambda resource: resource.id == "i-2",
        pause=lambda: None,
        timeout_s=60.0,
        tell=lambda text: None,
        kinds=[region.kind("subnet"), region.kind("instance")],
    )
    assert {resource.id for resource in deletion.ended} == {"s-1", "i-1"}
    assert [resource.id for resource in deletion.left] == ["i-2"]
    assert (deletion.not_ended, dict(deletion.refusals)) == ((), {})


def test_the_table_names_each_kind_once_and_machines_end_before_networks() -> None:
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names))
    assert names.index("instance") < names.index("subnet") < names.index("VPC")
    assert {kind.name for kind in KINDS if kind.bills is not None} >= {"instance", "capacity reservation", "elastic IP"}


def test_an_instance_row_is_read_with_awss_reason() -> None:
    row = {
        "InstanceId": "i-1",
        "State": {"Name": "terminated"},
        "StateReason": {"Message": "Client.InstanceInitiatedShutdown: Instance initiated shutdown"},
        "Tags": [{"Key": "clusterctl:slot", "Value": "3"}],
    }
    state = instance_state(row)
    assert (state.slot, state.is_alive) == (3, False)
    assert state.reason == "Client.InstanceInitiatedShutdown: Instance initiated shutdown"


def test_a_round_that_may_not_be_any_more_ends_nothing() -> None:
    region = FakeRegion(things={"i-1": thing("i-1"), "s-1": thing("s-1", "subnet")}, holds={"s-1": "i-1"})
    looks: list[int] = []

    def look_again(things: Sequence[CloudResource]) -> None:
        looks.append(len(things))
        if len(looks) == 2:
            raise CloudError("somebody is here again", code="LeftAlone")

    with pytest.raises(CloudError, match="here again"):
        end_all(
            NoClients(),
            "0123456789ab",
            {},
            spares=lambda resource: False,
            pause=lambda: None,
            timeout_s=5.0,
            tell=lambda text: None,
            look_again=look_again,
            kinds=[region.kind("subnet"), region.kind("instance")],
        )
    assert (region.ended, looks) == (["i-1"], [2, 1])


def test_what_a_state_has_got_since_the_deletion_began_is_no_orphan() -> None:
    """The deletion takes minutes: a whole `up` may begin and end in them."""
    region = FakeRegion(things={"i-1": thing("i-1"), "s-1": thing("s-1", "subnet")}, holds={"i-1": "s-1"})
    asked: list[frozenset[str]] = []

    def known_now() -> Known:
        asked.append(frozenset(region.things))
        region.late += [] if "i-7" in region.things else [thing("i-7"), thing("i-lost")]
        return {"test:instance": frozenset({"i-7"} & region.things.keys())}

    ended, _ = deleted(region, set(), known_now=known_now)
    assert (set(ended), set(region.things)) == ({"i-1", "s-1", "i-lost"}, {"i-7"})
    assert len(asked) == 2, "once for what was there, once for what came; not for what is tried again"


def test_while_somebody_changes_the_state_nothing_that_came_since_is_ended() -> None:
    region = FakeRegion(things={"i-1": thing("i-1")}, late=[])

    def known_now() -> Known:
        if "i-7" in region.things:
            raise CloudError("somebody is changing it", code="Held")
        region.late.append(thing("i-7"))
        return {}

    with pytest.raises(CloudError, match="somebody is changing it"):
        deleted(region, set(), known_now=known_now)
    assert (region.ended, set(region.things)) == (["i-1"], {"i-7"})


def test_an_end_to_which_aws_gave_no_answer_is_asked_for_again() -> None:
    region = FakeRegion(things={"i-1": thing("i-1")})
    row, answers = region.kind("instance"), iter([False, True])

    def delete(clients: Clients, found: CloudResource) -> None:
        if not next(answers):
            raise ReadTimeoutError(endpoint_url="https://ec2.us-west-2.amazonaws.com")
        row.delete(clients, found)

    result = end_all(
        NoClients(),
        "0123456789ab",
        {},
        spares=lambda resource: False,
        pause=lambda: None,
        timeout_s=5.0,
        tell=lambda text: None,
        kinds=(replace(row, delete=delete),),
    )
    assert [resource.id for resource in result.ended] == ["i-1"]


def test_what_comes_back_under_the_clusters_own_name_is_another_runs_and_asked_about_again() -> None:
    name = "clusterctl-0123456789ab"
    region, states = FakeRegion(things={name: thing(name)}), iter([{}, {"test:instance": frozenset({name})}])
    delete_orphans(
        NoClients(),
        "0123456789ab",
        {},
        data_since=None,
        pause=lambda: region.things.update({name: thing(name)}),  # a colleague's run begins, and makes its own
        timeout_s=5.0,
        tell=lambda text: None,
        known_now=lambda: next(states),
        kinds=[region.kind("instance")],
    )
    assert region.ended == [name]
    assert set(region.things) == {name}
