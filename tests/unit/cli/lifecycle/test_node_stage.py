"""The nodes' part of an `up` and a `replace`: which nodes are waited for, named, and given a newer membership."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from clusterctl.cost.sighting_file import read_seen
from clusterctl.engine.events import Step
from clusterctl.engine.stack_config import config_values
from clusterctl.engine.state import INSTANCE_TYPE
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.intent import plan_of, read_intent
from clusterctl.lifecycle.newer_membership import FLOOR, MOST_AHEAD
from clusterctl.lifecycle.node_stage import AWS_READY_S, NodeStage
from clusterctl.lifecycle.readiness import NodeWatch, Patience
from clusterctl.status.node_report import NodeReport
from clusterctl_infra.errors import SomeNodesFailed
from clusterctl_infra.names import ID_TAG, SLOT_TAG
from clusterctl_infra.outputs import Inventory, InventoryNode, inventory_to_json

from tests.inventories import make_inventory
from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.lifecycle.fake_watches import KNOWN, FakeWatches, ready
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, SLOTS, Clock, alive, held
from tests.unit.cli.lifecycle.intent_cases import BORN, state_of
from tests.unit.cli.lifecycle.recorded_runs import ended, runs_of, screen_of


@dataclass
class Delivered:
    """Takes a membership to the nodes, some of which do not take it."""

    untaken: dict[int, str] = field(default_factory=dict)
    to: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """The generation of each membership, and the slots that it was taken to."""

    def __call__(
        self, inventory: Inventory, nodes: Sequence[InventoryNode], content: bytes, *more: object, **settings: object
    ) -> Mapping[int, str]:
        self.to.append((json.loads(content)["generation"], tuple(node.slot for node in nodes)))
        return self.untaken


def failed(slot: int) -> NodeWatch:
    report = NodeReport(phase="failed", generation=0, failed_phase="scripts", message="setup.sh: exit 3")
    return ready(slot, phase="failed", report=report)


def ahead(slot: int, generation: int) -> NodeWatch:
    """A node that refused the state's membership, because it has this one."""
    report = NodeReport(phase="ready", generation=generation)
    return ready(slot, report=report, undelivered=f"generation: {generation} is here already")


def change_in(folder: Path, *, shown: Mapping[str, str] | None = None) -> Change:
    """A change of four nodes; `shown`: the states of machines that do not run, by instance."""
    answers = alive()
    for reservation in answers["us-west-2", "describe_instances", "Reservations"]:
        for row in reservation["Instances"]:
            row["State"]["Name"] = (shown or {}).get(row["InstanceId"], "running")
            row["LaunchTime"] = BORN
            row["Tags"] = [
                {"Key": ID_TAG, "Value": "0123456789ab"},
                {"Key": SLOT_TAG, "Value": row["InstanceId"].removeprefix("i-")},
            ]
    change = held(folder, Clock(DEADLINE), repair_s=0, aws=clients_of(answers), ends=[ended(is_well=True)]).change
    nodes = tuple(
        InventoryNode(slot=n, rank=n, name=f"train-{n}", private_ip="", host_public_key="", instance_id=f"i-{n}")
        for n in SLOTS
    )
    keep(change, make_inventory(nodes=nodes, generation=KNOWN))
    return change


def keep(change: Change, inventory: Inventory) -> None:
    file = change.home.inventory_file(change.cluster)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(inventory_to_json(inventory)))


def stage_of(
    change: Change,
    watches: FakeWatches,
    *,
    waits: bool = True,
    slots: frozenset[int] | None = None,
    gone: Sequence[str] = (),
    deliver: Delivered | None = None,
    display: Display | None = None,
) -> NodeStage:
    intent = read_intent(change.stack, "", nodes=None)
    return NodeStage(
        change,
        intent.config,
        plan_of(intent, state_of(), now=BORN),
        display or Display(change.output),
        waits=waits,
        gone=gone,
        slots=slots,
        watches=watches,
        deliver=deliver or Delivered(),
    )


def test_a_cluster_whose_nodes_are_all_ready_says_how_many_and_with_which_membership(tmp_path: Path) -> None:
    change, watches = change_in(tmp_path), FakeWatches([ready(slot) for slot in SLOTS])
    stage_of(change, watches).finish(timeout_s=None)
    assert watches.started == list(SLOTS)
    assert [patience.usual_s for patience, _ in watches.waited] == [AWS_READY_S]
    assert watches.memberships == [KNOWN]
    assert "train · 4/4 ready · ends " in screen_of(change)
    assert screen_of(change).endswith("· generation 3\n")


def test_without_machines_nobody_is_waited_for(tmp_path: Path) -> None:
    change, watches = change_in(tmp_path), FakeWatches([])
    stage_of(change, watches, waits=False).finish(timeout_s=None)
    assert watches.waited == []
    assert "no machines are booted (machines: none), so no node is waited for" in screen_of(change)
    assert "train · 4/4 made · ends " in screen_of(change)


def test_a_time_that_a_person_typed_counts_instead_of_the_usual_one(tmp_path: Path) -> None:
    change, watches = change_in(tmp_path), FakeWatches([ready(slot) for slot in SLOTS])
    stage_of(change, watches).finish(timeout_s=7)
    assert watches.waited == [(Patience(usual_s=7), None)]


def test_a_node_that_failed_is_told_of_with_its_reason_and_what_helps(tmp_path: Path) -> None:
    change, watches = change_in(tmp_path), FakeWatches([ready(0), failed(1), ready(2), ready(3)])
    with pytest.raises(SomeNodesFailed, match=r"1 node of 4 failed: train-1$") as caught:
        stage_of(change, watches).finish(timeout_s=None)
    assert "train-1: failed in scripts: setup.sh: exit 3" in screen_of(change)
    assert "train · 3/4 ready" in screen_of(change)
    assert caught.value.hint is not None
    assert "--replace-failed" in caught.value.hint


def test_a_node_that_is_not_waited_for_is_named_and_fails_nothing(tmp_path: Path) -> None:
    """`replace` waits for the slot that it remakes; another node may have been silent all along."""
    silent = NodeWatch(slot=3, name="train-3")
    change, watches = change_in(tmp_path), FakeWatches([ready(0), ready(1), ready(2), silent])
    stage_of(change, watches, slots=frozenset({2})).finish(timeout_s=None)
    assert watches.waited[0][1] == frozenset({2})
    assert "train-3: not waited for, and not yet told about the current list of nodes" in screen_of(change)


def test_a_node_whose_machine_aws_has_ended_is_told_of_as_gone(tmp_path: Path) -> None:
    change = change_in(tmp_path, shown={"i-2": "terminated"})
    watches = FakeWatches([ready(slot) for slot in SLOTS])
    with pytest.raises(SomeNodesFailed, match="train-2") as caught:
        stage_of(change, watches).finish(timeout_s=None)
    assert "train-2: its machine is gone (" in screen_of(change)
    seen = read_seen(change.home.observed_file("0123456789ab"))
    assert seen["i-2"].gone_at is not None, "how late an end is seen is how late `cost` may assume it"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("clusterctl up")


def test_who_stops_the_waiting_is_told_that_the_cluster_bills_and_what_ends_it(tmp_path: Path) -> None:
    change, watches = change_in(tmp_path), FakeWatches([], is_interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        stage_of(change, watches).finish(timeout_s=None)
    assert "stopped waiting; the cluster exists, runs on and bills (4 nodes)" in screen_of(change)
    assert "clusterctl down --cluster train  ends them" in screen_of(change)


@pytest.mark.parametrize("way", ["an error", "stop"])
def test_connections_end_with_the_stage_also_when_the_change_fails(tmp_path: Path, way: str) -> None:
    watches = FakeWatches([])
    stage = stage_of(change_in(tmp_path), watches)
    if way == "stop":
        stage.stop()
    else:
        with pytest.raises(SomeNodesFailed), stage.watching():
            raise SomeNodesFailed("the engine failed", hint=None)
    assert watches.is_stopped


@pytest.mark.parametrize(("waits", "started"), [(True, [0]), (False, [])])
def test_a_node_is_watched_as_soon_as_the_engine_has_made_it_unless_it_is_being_replaced(
    tmp_path: Path, waits: bool, started: list[int]
) -> None:
    change, watches = change_in(tmp_path), FakeWatches([])
    display = Display(change.output)
    stage = stage_of(change, watches, waits=waits, gone=["i-1"], display=display)
    for slot in (0, 1):
        step = Step(stage="done", op="create", urn=f"u::{slot}", type=INSTANCE_TYPE, id=f"i-{slot}")
        display.event(replace(step, inputs={"tags": {SLOT_TAG: str(slot)}}))
        stage.event(step)
    assert sorted(set(watches.started)) == started


AHEAD = 7
NODES_AFTER = {
    "all are ready": ([ready(0), ahead(1, AHEAD), ready(2), ready(3)], (0, 1, 2, 3), None),
    "one failed": ([ready(0), ahead(1, AHEAD), failed(2), ready(3)], (0, 1, 3), "train-2"),
    "one is gone": ([ready(0), ahead(1, AHEAD), ready(2, gone="terminated"), ready(3)], (0, 1, 3), "train-2"),
    "one is silent": ([ready(0), ahead(1, AHEAD), NodeWatch(slot=2, name="train-2"), ready(3)], (0, 1, 3), "train-2"),
}


@pytest.mark.parametrize(("seen", "living", "bad"), NODES_AFTER.values(), ids=NODES_AFTER.keys())
def test_a_membership_above_that_of_the_nodes_goes_to_those_that_can_take_it(
    tmp_path: Path, seen: list[NodeWatch], living: tuple[int, ...], bad: str | None
) -> None:
    change, watches, deliver = change_in(tmp_path), FakeWatches(seen), Delivered()
    stage = stage_of(change, watches, deliver=deliver)
    if bad is None:
        stage.finish(timeout_s=None)
    else:
        with pytest.raises(SomeNodesFailed, match=rf": {bad}$"):
            stage.finish(timeout_s=None)
    assert "train-1: membership 7 is there, the state knows 3: an older state was put back" in screen_of(change)
    assert config_values(change.stack.config_file.read_text())[FLOOR] == str(AHEAD + 1)
    assert [run.verb for run in runs_of(change)] == ["up"]
    assert [slots for _, slots in deliver.to] == [living]
    assert all(watch.undelivered is None for watch in watches.seen if watch.slot in living), "they have it now"


def test_a_node_that_does_not_take_the_raised_membership_either_is_told_of_and_asked_no_more(tmp_path: Path) -> None:
    change, watches = change_in(tmp_path), FakeWatches([ready(0), ahead(1, AHEAD), ready(2), ready(3)])
    deliver = Delivered(untaken={1: "generation: 9 is here already"})
    with pytest.raises(SomeNodesFailed, match="train-1"):
        stage_of(change, watches, deliver=deliver).finish(timeout_s=None)
    assert "train-1: ready, but without the membership: generation: 9 is here already" in screen_of(change)
    assert len(deliver.to) == 1


def test_an_implausible_number_raises_no_membership_and_is_that_nodes_failure(tmp_path: Path) -> None:
    wrong = KNOWN + MOST_AHEAD + 1
    change, watches, deliver = change_in(tmp_path), FakeWatches([ready(0), ahead(1, wrong)]), Delivered()
    with pytest.raises(SomeNodesFailed, match="train-1"):
        stage_of(change, watches, deliver=deliver).finish(timeout_s=None)
    assert f"it reports membership {wrong}, which cannot be: the state knows 3" in screen_of(change)
    assert deliver.to == []
    assert runs_of(change) == []
