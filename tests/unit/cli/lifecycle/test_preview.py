"""What `up` says of running machines before it asks: which it replaces and why, and which settings wait for that."""

from __future__ import annotations

import dataclasses
from typing import Any  # a configuration as YAML gives it

import pytest
from clusterctl.engine.stack_plan import ends_line, size_source
from clusterctl.engine.state import INSTANCE_TYPE, SlotInstance, StackState, StateResource, identity_in
from clusterctl.lifecycle.drift import Missing
from clusterctl.lifecycle.preview import ended, late, late_lines, made_anew, made_anew_lines
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.names import IDENTITY_TYPE
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.plan.planner import plan

from tests.unit.infra.plan.plan_cases import BORN, CATALOG, IDENTITY, a_config, a_plan

IMAGE = "dlami-base-ubuntu-22.04"


def state_of(made: ClusterPlan) -> StackState:
    """The state after an `up` of this plan."""
    identity = {
        "name": "train",
        "cluster_id": IDENTITY.cluster_id,
        "started_at": BORN.isoformat(),
        "owner": "ada",
        "image_spec": IMAGE,
        "image_id": IDENTITY.image_id,
        "zone": IDENTITY.zone,
        "run": 1,
    }
    rows = [StateResource(urn="u::identity", type=IDENTITY_TYPE, id="x", outputs=identity)]
    for slot in made.slots:
        tags = {"clusterctl:slot": str(slot.slot), "clusterctl:birth": made.birth}
        instance = StateResource(
            urn=f"u::{slot.name}",
            type=INSTANCE_TYPE,
            id=f"i-{slot.slot}",
            inputs={"tags": tags},
            trigger=slot.replacement_trigger,
        )
        rows.append(instance)
    return StackState(resources=tuple(rows))


def planned(state: StackState, **changes: Any) -> ClusterPlan:
    """The plan as `up` makes it: the secret seed of the state is not known to it."""
    identity = identity_in(state, region="us-west-2")
    assert identity is not None
    return plan(a_config(**changes), CATALOG, identity=identity, ledger=Ledger(), now=BORN)


def lines(state: StackState, **changes: Any) -> list[str]:
    return made_anew_lines(made_anew(state, a_config(**changes), planned(state, **changes)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"instance_type": "p5e.48xlarge"}, "instance type p5.48xlarge → p5e.48xlarge"),
        ({"image": "ami-0fffffffffffffff0"}, f"image {IDENTITY.image_id} → ami-0fffffffffffffff0"),
        ({"image": "dlami-pytorch-2.7-ubuntu-22.04"}, f"image {IDENTITY.image_id} → dlami-pytorch-2.7-ubuntu-22.04"),
        ({"fabric": "none"}, "interfaces changed"),
        (
            {"network": {"node_subnet_cidr": "10.0.32.0/20"}},
            "network.node_subnet_cidr 10.0.0.0/20 → 10.0.32.0/20",
        ),
    ],
)
def test_nodes_that_a_change_makes_anew_are_named_with_it(changes: dict[str, Any], reason: str) -> None:
    shown = lines(state_of(a_plan()), **changes)
    assert shown == [f"train-[0-3]: replaced, the data on their disks is lost: {reason}"]


@pytest.mark.parametrize(
    "changes",
    [{}, {"nodes": 6}, {"nodes": 2}, {"env": {"A": "1"}}, {"imds": "users"}, {"image": IDENTITY.image_id}],
)
def test_a_change_that_running_machines_take_on_replaces_none(changes: dict[str, Any]) -> None:
    assert lines(state_of(a_plan()), **changes) == []


def test_a_machine_of_an_older_clusterctl_is_replaced_and_told_apart() -> None:
    state = state_of(a_plan())
    rows = list(state.resources)
    rows[3] = dataclasses.replace(rows[3], trigger="a digest of an older clusterctl")
    shown = lines(StackState(resources=tuple(rows)))
    assert shown == ["train-2: replaced, the data on its disks is lost: made by an older clusterctl"]


def test_of_spot_machines_it_is_said_that_no_place_is_held_for_the_new_ones() -> None:
    state, changes = state_of(a_plan()), {"fabric": "none"}
    anew = made_anew(state, a_config(**changes), planned(state, **changes))
    shown = made_anew_lines(anew, is_reserved=False)
    assert shown[:-1] == made_anew_lines(anew)
    assert shown[-1] == "no place is reserved for spot machines: these end first, and AWS may have none to put there"
    assert made_anew_lines((), is_reserved=False) == []


def test_of_a_machine_that_is_gone_it_is_said_whether_its_slot_is_remade() -> None:
    missing = Missing(known=SlotInstance(slot=2, instance_id="i-2", urn="u"), seen=None)
    assert missing.line(nodes=3) == "slot 2: i-2 is gone (AWS does not know it); the slot is remade"
    assert missing.line(nodes=2) == "slot 2: i-2 is gone (AWS does not know it)"


def test_a_setting_that_waits_for_a_new_machine_is_told_of_nodes_that_run_on() -> None:
    state = state_of(a_plan())
    waiting = late(state, planned(state, imds="users"), except_slots=[2])
    assert late_lines(waiting) == ["train-[0-1,3]: imds: takes effect when a node is replaced"]
    assert late(state, planned(state), except_slots=()) == ()


@pytest.mark.parametrize(
    ("overrides", "is_flag", "place"),
    [
        ({}, False, "stacks/train/cluster.yaml"),
        ({"nodes": "1"}, False, "clusterctl:nodes in Pulumi.dev.yaml"),
        ({"nodes": "1"}, True, "--nodes"),
    ],
)
def test_nodes_that_a_smaller_size_ends_are_named_with_what_set_it(
    overrides: dict[str, str], is_flag: bool, place: str
) -> None:
    state = state_of(a_plan())
    source = size_source(source="stacks/train/cluster.yaml", stack_name="dev", overrides=overrides, is_flag=is_flag)
    going = ended(state, planned(state, nodes=1))
    assert ends_line(going, nodes=1, source=source) == f"train-[1-3]: {place} says 1 node"
    assert ended(state, planned(state, nodes=6)) == ()
