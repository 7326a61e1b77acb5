"""The Membership resource: generations, and the account."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # property values

import pytest
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.membership_resource import MembershipResource
from clusterctl_infra.provider.property_values import UNKNOWN
from clusterctl_infra.provider.resource import Place

PLACE = Place(stack_name="dev")
PREVIEW = Place(stack_name="dev", preview=True)
BORN = "2026-03-01T12:00:00+00:00"
LATER = "2026-03-01T15:00:00+00:00"
DEADLINE = "2026-03-02T12:00:00+00:00"
END = datetime(2026, 3, 1, 18, 0, tzinfo=UTC)


def memberships(home: Path, *, now: datetime = END) -> MembershipResource:
    """The resource kind, with a clock that stands still."""
    return MembershipResource(home=LocalHome(root=home), now=lambda: now)


def inputs(*instance_ids: str | None, **changes: Any) -> dict[str, Any]:
    """What the component hands over: one instance per slot."""
    return {
        "cluster": "train",
        "cluster_id": "0123456789ab",
        "run": 1,
        "started_at": BORN,
        "deadline": DEADLINE,
        "planned_at": BORN,
        "node_price_usd_per_hour": 55.04,
        "disks_usd_per_hour": 0.0,
        "addresses_usd_per_hour": 0.0,
        "gateway_usd_per_hour": 0.0,
        "storage_usd_per_hour": 0.0,
        "members": [
            {"slot": slot, "name": f"train-{slot}", "instance_id": id, "public_ip": None}
            for slot, id in enumerate(instance_ids)
        ],
        **changes,
    }


def correction(*, generation: int = 1, started_at: str = BORN) -> dict[str, Any]:
    """Slot 1's machine, as it ran."""
    span = {"slot": 1, "instance_id": "i-1", "started_at": started_at, "ended_at": None, "price_usd_per_hour": 55.04}
    return {"generation": generation, "spans": [span]}


def write_inventory(home: Path) -> None:
    """The file as the Inventory resource leaves it."""
    nodes = [{"slot": slot, "instance_id": None, "public_ip": None} for slot in range(2)]
    rows = {"cluster_id": "0123456789ab", "generation": 0, "deadline": "", "nodes": nodes}
    LocalHome(root=home).write_inventory("train", rows)


def spans(outputs: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """Instance, start and end of every span."""
    return [(row["instance_id"], row["started_at"], row["ended_at"]) for row in outputs["ledger"] if "slot" in row]


def test_the_first_generation_is_1_and_its_account_begins_with_the_run(own_home: Path) -> None:
    _, outputs = memberships(own_home).create(inputs("i-0", "i-1", planned_at=LATER), PLACE)
    assert outputs["generation"] == 1
    assert spans(outputs) == [("i-0", BORN, None), ("i-1", BORN, None)]


def test_another_environment_is_another_generation(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0", live="a"), PLACE)
    assert kind.difference(state, inputs("i-0", live="a"), inputs("i-0", live="b")).changed == ("live",)
    assert kind.update(state, inputs("i-0", live="b"), PLACE)["generation"] == 2


def test_another_order_of_ranks_is_another_generation_and_none_is_none(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0", "i-1"), PLACE)
    assert kind.difference(state, inputs("i-0", "i-1"), inputs("i-0", "i-1", ranks=[])).changed == ()
    ordered = inputs("i-0", "i-1", ranks=[0, 1])
    assert kind.difference(state, inputs("i-0", "i-1"), ordered).changed == ("ranks",)
    assert kind.update(state, ordered, PLACE)["generation"] == 2


def test_the_same_members_are_the_same_generation(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    later = inputs("i-0", planned_at=LATER, node_price_usd_per_hour=60.0)
    assert kind.difference(state, inputs("i-0"), later).changed == ()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"members": inputs("i-0", "i-1")["members"]}, ("members",)),
        ({"deadline": LATER}, ("deadline",)),
        ({"run": 2}, ("run",)),
    ],
)
def test_members_run_and_deadline_each_make_a_new_generation(
    own_home: Path, changes: dict[str, Any], names: tuple[str, ...]
) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    wanted = {**inputs("i-0"), **changes}
    assert kind.difference(state, inputs("i-0"), wanted).changed == names
    assert kind.update(state, wanted, PLACE)["generation"] == 2


def test_a_replaced_machine_ends_and_begins_at_the_instant_of_the_plan(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0", "i-1"), PLACE)
    outputs = kind.update(state, inputs("i-0", "i-9", planned_at=LATER), PLACE)
    assert spans(outputs) == [("i-0", BORN, None), ("i-1", BORN, LATER), ("i-9", LATER, None)]


def test_zero_nodes_close_the_account_and_the_next_run_opens_it_at_its_own_start(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    down = kind.update(state, inputs(planned_at=LATER), PLACE)
    next_run = "2026-03-05T08:00:00+00:00"
    up = kind.update(down, inputs("i-5", run=2, started_at=next_run, planned_at="2026-03-05T08:04:00+00:00"), PLACE)
    assert spans(up) == [("i-0", BORN, LATER), ("i-5", next_run, None)]
    assert up["generation"] == 3


def test_what_stands_beside_the_nodes_is_paid_from_run_to_run_at_the_rate_it_has(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    beside = {"addresses_usd_per_hour": 0.01, "storage_usd_per_hour": 1.38}
    _, state = kind.create(inputs("i-0", **beside), PLACE)
    down = kind.update(state, inputs(planned_at=LATER, **{**beside, "addresses_usd_per_hour": 0.0}), PLACE)
    rows = [(row["kind"], row["started_at"], row["ended_at"]) for row in down["ledger"] if "kind" in row]
    assert rows == [("addresses", BORN, LATER), ("storage", BORN, None)]


def test_another_rate_of_storage_is_written_down_and_no_new_generation(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0", storage_usd_per_hour=1.38), PLACE)
    dearer = inputs("i-0", storage_usd_per_hour=2.0, planned_at=LATER)
    assert kind.difference(state, inputs("i-0"), dearer).changed == ("storage_usd_per_hour",)
    outputs = kind.update(state, dearer, PLACE)
    rows = [(row["price_usd_per_hour"], row["ended_at"]) for row in outputs["ledger"] if "kind" in row]
    assert (outputs["generation"], rows) == (1, [(1.38, LATER), (2.0, None)])
    assert len(account(own_home)) == 2
    assert kind.difference(outputs, dearer, dearer).changed == ()


def test_what_ended_unseen_counts_to_its_deadline(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    down = kind.update(state, inputs(planned_at="2026-03-09T12:00:00+00:00"), PLACE)
    assert spans(down) == [("i-0", BORN, DEADLINE)]


def test_what_a_command_that_was_cut_off_left_out_of_the_account_is_put_right(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    wanted = inputs("i-0", "i-1", planned_at=LATER, correction=correction(started_at="2026-03-01T13:00:00+00:00"))
    assert "correction" in kind.difference(state, inputs("i-0"), wanted).changed
    right = kind.update(state, wanted, PLACE)
    assert spans(right) == [("i-0", BORN, None), ("i-1", "2026-03-01T13:00:00+00:00", None)]
    assert [row["instance_id"] for row in account(own_home)[-1]["opened"]] == ["i-1"]
    assert kind.difference(right, wanted, wanted).changed == (), "the correction is of the generation before"


def test_a_machine_that_was_written_off_and_runs_has_no_gap(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0", "i-1"), PLACE)
    down = kind.update(state, inputs(planned_at="2026-03-01T13:00:00+00:00"), PLACE)
    right = kind.update(
        down,
        inputs("i-0", "i-1", run=2, started_at=LATER, planned_at=LATER, correction=correction(generation=2)),
        PLACE,
    )
    assert spans(right) == [("i-0", BORN, "2026-03-01T13:00:00+00:00"), ("i-1", BORN, None), ("i-0", LATER, None)]


def test_a_correction_alone_is_made_once(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0", "i-1"), PLACE)
    small = kind.update(state, inputs("i-0", planned_at="2026-03-01T13:00:00+00:00"), PLACE)
    with_correction = inputs("i-0", planned_at=LATER, correction=correction(generation=2))
    right = kind.update(small, with_correction, PLACE)
    assert spans(right)[1] == ("i-1", BORN, LATER), "it ran on, and is ended now"
    hour_later = {**with_correction, "planned_at": "2026-03-01T16:00:00+00:00"}
    assert kind.difference(right, with_correction, hour_later).changed == (), "for a plain pulumi up an hour later"
    assert kind.update(right, hour_later, PLACE)["ledger"] == right["ledger"]


def test_a_correction_of_another_generation_is_none(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    with_correction = inputs("i-0", correction=correction(generation=7))
    assert kind.difference(state, with_correction, with_correction).changed == ()
    assert kind.update(state, with_correction, PLACE)["ledger"] == state["ledger"]


def test_in_a_preview_an_unknown_instance_leaves_the_generation_open(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    outputs = kind.update(state, {**inputs(), "members": [{"slot": 0, "instance_id": UNKNOWN}]}, PREVIEW)
    assert outputs["generation"] == UNKNOWN
    assert kind.check({**inputs(), "members": UNKNOWN}) == []


def test_the_inventory_learns_the_members(own_home: Path) -> None:
    write_inventory(own_home)
    memberships(own_home).create(inputs("i-0", "i-1"), PLACE)
    rows = LocalHome(root=own_home).read_inventory("train")
    assert rows is not None
    assert (rows["generation"], rows["deadline"]) == (1, DEADLINE)
    assert [node["instance_id"] for node in rows["nodes"]] == ["i-0", "i-1"]


def test_an_inventory_that_forgot_is_told_again_without_a_new_generation(own_home: Path) -> None:
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0", "i-1"), PLACE)
    write_inventory(own_home)
    assert kind.difference(state, inputs("i-0", "i-1"), inputs("i-0", "i-1")).changed == ("members",)
    assert kind.update(state, inputs("i-0", "i-1"), PLACE)["generation"] == 1
    assert kind.difference(state, inputs("i-0", "i-1"), inputs("i-0", "i-1")).changed == ()
    assert len(account(own_home)) == 1


def test_another_cluster_s_inventory_is_left_alone(own_home: Path) -> None:
    LocalHome(root=own_home).write_inventory("train", {"cluster_id": "other"})
    memberships(own_home).create(inputs("i-0"), PLACE)
    assert LocalHome(root=own_home).read_inventory("train") == {"cluster_id": "other"}


def test_the_account_outlives_the_state(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    kind.delete(state, PLACE)
    rows = account(own_home)
    assert [len(row["opened"]) for row in rows] == [1, 0]
    assert [span["ended_at"] for span in rows[1]["closed"]] == [END.isoformat()]


def test_a_preview_writes_nothing(own_home: Path) -> None:
    memberships(own_home).create(inputs("i-0"), PREVIEW)
    assert not own_home.exists()


def test_two_members_in_one_slot_are_refused(own_home: Path) -> None:
    twice = inputs("i-0")
    twice["members"] *= 2
    assert memberships(own_home).check(twice)[0].reason == "slot 0 has 2 members"


def test_another_cluster_is_another_membership(own_home: Path) -> None:
    kind = memberships(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    assert kind.difference(state, inputs("i-0"), inputs("i-0", cluster_id="other")).replaced == ("cluster_id",)


def account(home: Path) -> list[dict[str, Any]]:
    """The lines of the account's file."""
    return [json.loads(line) for line in LocalHome(root=home).ledger_file("0123456789ab").read_text().splitlines()]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"members": None}, "members is null: it has to be a list, one row for each machine"),
        ({"members": 5}, "members is 5: not a list"),
        ({"members": [None]}, "members[0] is None, not an object"),
        ({"members": [{"slot": True, "instance_id": "i-1"}]}, "members[0].slot is True: not a whole number"),
        ({"run": "1"}, "run is '1': not a whole number"),
        ({"deadline": "soon"}, "deadline: 'soon' is no time"),
        ({"disks_usd_per_hour": "much"}, "disks_usd_per_hour is 'much': not a number"),
    ],
)
def test_inputs_of_another_kind_are_refused_by_name(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    (failure,) = memberships(tmp_path).check(inputs("i-1", **change))
    assert problem in failure.reason


def test_a_floor_raises_the_number_once_and_changes_nothing_else(own_home: Path) -> None:
    """After an older state was put back, nodes have memberships that it does not know."""
    kind = memberships(own_home)
    write_inventory(own_home)
    _, state = kind.create(inputs("i-0"), PLACE)
    raised = inputs("i-0", generation_floor=4)
    assert kind.difference(state, inputs("i-0"), raised).changed == ("generation_floor",)
    above = kind.update(state, raised, PLACE)
    assert (above["generation"], spans(above)) == (4, spans(state))
    assert kind.difference(above, raised, raised).changed == ()
    assert kind.update(above, inputs("i-1", generation_floor=4), PLACE)["generation"] == 5


@pytest.mark.parametrize("floor", [-1, 1.5, "4", 2**63, True])
def test_a_floor_that_is_no_number_of_a_membership_is_refused(own_home: Path, floor: object) -> None:
    (failure,) = memberships(own_home).check(inputs("i-0", generation_floor=floor))
    assert failure.property == "generation_floor"
