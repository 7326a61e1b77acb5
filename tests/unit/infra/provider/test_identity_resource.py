"""The Identity resource: decided once, changed on purpose only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # property values

import pytest
from clusterctl_infra.names import NONCE_VARIABLE
from clusterctl_infra.provider.identity_resource import IdentityResource
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.property_values import UNKNOWN, Secret, Unknown, reveal
from clusterctl_infra.provider.resource import Difference, Place, ResourceRefused

from tests.unit.infra.provider.provider_inputs import IDENTITY

BORN = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)
LATER = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
PLACE = Place(stack_name="dev")
PREVIEW = Place(stack_name="dev", preview=True)
INPUTS: dict[str, Any] = {**IDENTITY, "launch": {"placement": "cluster", "capacity": "on-demand"}}
SPOT = {"placement": "cluster", "capacity": "spot"}


def identities(home: Path, *, now: datetime = BORN, environ: Mapping[str, str] | None = None) -> IdentityResource:
    """The resource kind, with a clock that stands still."""
    return IdentityResource(home=LocalHome(root=home), environ=environ or {}, now=lambda: now)


def born(home: Path) -> dict[str, Any]:
    """The state of an identity, as the engine hands it back."""
    state = reveal(identities(home).create(INPUTS, PLACE)[1])
    assert isinstance(state, dict)
    return state


def test_a_birth_decides_id_seed_start_image_and_zone(own_home: Path) -> None:
    id, outputs = identities(own_home).create(INPUTS, PLACE)
    assert len(id) == 12
    assert set(id) <= set("0123456789abcdef")
    assert outputs["started_at"] == "2026-03-01T12:00:00+00:00"
    assert (outputs["image_id"], outputs["zone"], outputs["run"]) == ("ami-0123456789abcdef0", "us-west-2b", 1)
    assert isinstance(outputs["seed"], Secret)
    assert len(bytes.fromhex(outputs["seed"].value)) == 32


def test_two_births_share_nothing(own_home: Path) -> None:
    first, other = born(own_home), born(own_home)
    assert first["cluster_id"] != other["cluster_id"]
    assert first["seed"] != other["seed"]


def test_before_birth_id_seed_and_start_are_unknown(own_home: Path) -> None:
    _, outputs = identities(own_home).create(INPUTS, PREVIEW)
    assert {key for key, value in reveal(outputs).items() if isinstance(value, Unknown)} == {
        "cluster_id",
        "started_at",
        "seed",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"image_candidate": "ami-0fffffffffffffff0"},
        {"zone_candidate": "us-west-2c"},
        {"owner": "grace"},
        {},
    ],
)
def test_a_newer_image_another_zone_or_another_person_change_nothing(own_home: Path, change: dict[str, Any]) -> None:
    difference = identities(own_home).difference(born(own_home), INPUTS, {**INPUTS, **change})
    assert (difference.changed, difference.replaced) == ((), ())


def test_another_image_in_the_configuration_is_taken_in_place(own_home: Path) -> None:
    state, kind = born(own_home), identities(own_home, now=LATER)
    wanted = {**INPUTS, "image_spec": "ami-0fffffffffffffff0", "image_candidate": "ami-0fffffffffffffff0"}
    difference = kind.difference(state, INPUTS, wanted)
    assert (difference.changed, difference.replaced) == (("image_spec",), ())
    assert reveal(kind.update(state, wanted, PLACE)) == {
        **state,
        "image_spec": "ami-0fffffffffffffff0",
        "image_id": "ami-0fffffffffffffff0",
    }


@pytest.mark.parametrize("place", [PLACE, PREVIEW])
def test_a_new_run_has_a_new_start_and_the_same_identity_also_in_a_preview(own_home: Path, place: Place) -> None:
    state, kind = born(own_home), identities(own_home, now=LATER)
    wanted = {**INPUTS, "run": 2, "image_candidate": "ami-0fffffffffffffff0"}
    assert kind.difference(state, INPUTS, wanted).changed == ("run",)
    assert reveal(kind.update(state, wanted, place)) == {**state, "run": 2, "started_at": LATER.isoformat()}


def test_the_seed_stays_a_secret_through_an_update(own_home: Path) -> None:
    outputs = identities(own_home).update(born(own_home), {**INPUTS, "run": 2}, PLACE)
    assert isinstance(outputs["seed"], Secret)


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        (SPOT, "capacity: on-demand → spot: fixed when the nodes are made"),
        ({"placement": "none", "capacity": "on-demand"}, "placement: cluster → none: fixed when the nodes are made"),
        ({"placement": "none", "capacity": "spot"}, "cluster → none: .*; capacity: on-demand → spot"),
    ],
)
def test_machines_of_one_run_are_launched_as_its_first_ones(
    own_home: Path, launch: dict[str, str], reason: str
) -> None:
    with pytest.raises(ResourceRefused, match=f"{reason}.*Nothing was changed"):
        identities(own_home).difference(born(own_home), INPUTS, {**INPUTS, "launch": launch})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (INPUTS, {**INPUTS, "run": 2, "launch": SPOT}),
        (INPUTS, {**INPUTS, "launch": None}),
        ({**INPUTS, "launch": None}, {**INPUTS, "launch": SPOT}),
    ],
    ids=["in another run", "when the nodes are ended on purpose", "when there were none on purpose"],
)
def test_other_machines_may_be_launched_otherwise(
    own_home: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    kind = identities(own_home)
    state = reveal(kind.create(before, PLACE)[1])
    assert isinstance(state, dict)
    assert "launch" in kind.difference(state, before, after).changed
    assert reveal(kind.update(state, after, PLACE))["launch"] == after["launch"]


def test_another_name_is_another_cluster(own_home: Path) -> None:
    difference = identities(own_home).difference(born(own_home), INPUTS, {**INPUTS, "name": "other"})
    assert difference.replaced == ("name",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "name is ''"),
        ({"zone_candidate": None}, "zone_candidate is None"),
        ({"image_candidate": "debian"}, "'debian' is not an AMI id"),
        ({"run": 0}, "run is 0"),
        ({"run": True}, "run is True"),
    ],
)
def test_an_input_that_cannot_be_used_is_named_with_its_value(
    own_home: Path, change: dict[str, Any], words: str
) -> None:
    failures = identities(own_home).check({**INPUTS, **change})
    assert len(failures) == 1
    assert words in failures[0].reason


def test_inputs_that_nobody_knows_yet_are_no_failure(own_home: Path) -> None:
    assert identities(own_home).check(dict.fromkeys(INPUTS, UNKNOWN)) == []


def test_in_a_rehearsal_nothing_is_born_before_the_stand_in_has_proved_itself(own_home: Path) -> None:
    kind = identities(own_home, environ={NONCE_VARIABLE: "n0nce"})
    with pytest.raises(ResourceRefused, match="not the stand-in: nothing was made"):
        kind.create(INPUTS, PLACE)
    with pytest.raises(ResourceRefused):
        kind.update(born(own_home), {**INPUTS, "run": 2}, PLACE)
    kind.create(INPUTS, PREVIEW)
    proof = own_home / "rehearsal" / "proof" / "n0nce"
    proof.parent.mkdir(parents=True)
    proof.touch()
    kind.create(INPUTS, PLACE)


@pytest.mark.parametrize("inputs", [INPUTS, {**INPUTS, "slot_range": None}])
def test_a_state_from_before_networks_were_adopted_has_no_difference(own_home: Path, inputs: dict[str, Any]) -> None:
    old = {key: value for key, value in born(own_home).items() if key != "slot_range"}
    assert identities(own_home).difference(old, INPUTS, inputs) == Difference(changed=())


def test_what_a_list_of_types_came_to_is_kept_and_no_replacement(own_home: Path) -> None:
    old, chosen = born(own_home), {**INPUTS, "instance_type": "p5.48xlarge"}
    assert identities(own_home).difference(old, INPUTS, chosen) == Difference(changed=("instance_type",))
    after = reveal(identities(own_home).update(old, chosen, PREVIEW))
    assert isinstance(after, dict)
    assert (after["instance_type"], after["cluster_id"]) == ("p5.48xlarge", old["cluster_id"])
    del old["instance_type"]  # a state from before there were lists
    assert identities(own_home).difference(old, INPUTS, INPUTS) == Difference(changed=())


def test_the_layout_of_interfaces_is_kept_for_life(own_home: Path) -> None:
    newest = {**INPUTS, "layout": 2}
    state = reveal(identities(own_home).create(newest, PLACE)[1])
    assert isinstance(state, dict)
    assert identities(own_home).difference(state, newest, newest) == Difference(changed=())
    assert identities(own_home).difference(state, newest, {**INPUTS, "launch": None}).changed == ("launch",)
    with pytest.raises(ResourceRefused, match="have had layout 2 since the cluster's birth, and would have 1"):
        identities(own_home).difference(state, newest, INPUTS)
    with pytest.raises(ResourceRefused, match="have had layout 1 since the cluster's birth, and would have 2"):
        identities(own_home).difference(born(own_home), INPUTS, newest)


def test_the_range_of_addresses_is_kept_for_life(own_home: Path) -> None:
    chosen = {**INPUTS, "slot_range": "subnet-0a1b2c3d 172.31.16.40/29"}
    state = reveal(identities(own_home).create(chosen, PLACE)[1])
    assert isinstance(state, dict)
    assert identities(own_home).difference(state, chosen, chosen) == Difference(changed=())
    assert identities(own_home).difference(state, chosen, INPUTS) == Difference(changed=())  # no node is left
    with pytest.raises(ResourceRefused, match=r"addresses have been in subnet-0a1b2c3d 172\.31\.16\.40/29 since"):
        identities(own_home).difference(state, chosen, {**chosen, "slot_range": "subnet-0a1b2c3d 172.31.16.0/29"})
