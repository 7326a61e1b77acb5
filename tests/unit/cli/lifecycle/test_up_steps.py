"""Steps of an `up` on a held stack: who is asked, what is made, and what is shown."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any  # what changes in a request

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.stack_config import config_values
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithPlan, WithPreview
from clusterctl.lifecycle.intent import plan_of, read_intent, with_changes
from clusterctl.lifecycle.up import Up, ask, make, preview_lines, selecting
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.lifecycle.up_runs import Runs
from clusterctl.output import Output
from clusterctl_infra.errors import CloudError, ClusterctlError, SomeNodesFailed, UsageError
from clusterctl_infra.outputs import InventoryNode, inventory_to_json

from tests.inventories import make_inventory
from tests.unit.cli.cloud.fake_answers import answering, clients_of
from tests.unit.cli.cloud.fake_state_machine import DENIED, WOULD, StateMachine, succeeded
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.fake_watches import FakeWatches, ready
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, SLOTS, Clock, alive, held
from tests.unit.cli.lifecycle.intent_cases import BORN, state_of
from tests.unit.cli.lifecycle.recorded_runs import IDENTITY, RESERVED, ended, engine_of, runs_of, screen_of


def an_up(folder: Path, *ends: RunResult, proof: str | None = WOULD, **asked: Any) -> Up:
    """An `up` of four nodes; `proof`: AWS's answer to a dry run of the end of each; None: AWS shows no machine."""
    if proof is None:
        aws = clients_of({})
    else:
        aws = clients_of(alive(), sfn=StateMachine([succeeded(**{f"i-{slot}": proof for slot in SLOTS})]))
    change = held(folder, Clock(DEADLINE), repair_s=0, aws=aws, ends=ends).change
    nodes = tuple(
        InventoryNode(slot=n, rank=n, name=f"train-{n}", private_ip="", host_public_key="", instance_id=f"i-{n}")
        for n in SLOTS
    )
    file = change.home.inventory_file(change.cluster)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(inventory_to_json(make_inventory(nodes=nodes))))
    usual = {"stack_dir": folder, "stack_name": "dev", "rehearse": False, "nodes": None}
    request = UpRequest(**{**usual, "is_agreed": False, "ready_timeout_s": None, **asked})
    return Up(request=request, change=change, was_cut_off=False, shown="s", size_note=None)


def planned_of(up: Up, **changes: str | None) -> WithPlan:
    intent = with_changes(read_intent(up.change.stack, "", nodes=None), changes)
    state = held(up.change.stack.directory, Clock(DEADLINE), repair_s=0).state
    return WithPlan(
        stack=up.change.stack,
        state=state,
        shown="s",
        now=BORN,
        held=up.change,
        intent=intent,
        plan=plan_of(intent, state_of(), now=BORN),
    )


def test_the_command_that_asks_once_more_has_the_size_that_was_typed(tmp_path: Path) -> None:
    up = an_up(tmp_path)
    assert up.again == "clusterctl up s"
    assert replace(up, request=replace(up.request, nodes=3)).again == "clusterctl up s --nodes 3"


@pytest.mark.parametrize(
    ("is_rehearsal", "is_new", "selects"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_plain_pulumi_means_a_rehearsed_stack_only_while_it_is_made_for_the_first_time(
    tmp_path: Path, is_rehearsal: bool, is_new: bool, selects: bool
) -> None:
    change = an_up(tmp_path).change
    environment = replace(change.engine.environment, rehearsal=is_rehearsal)
    change.engine = replace(change.engine, environment=environment)  # type: ignore[type-var]  # a dataclass, the fake
    found = selecting(change, is_new=is_new)
    assert isinstance(found, contextlib.nullcontext) is not selects


NOBODY = {
    "--yes agreed": ({"is_agreed": True}, False),
    "a rehearsal": ({}, True),
}


@pytest.mark.parametrize(("asked", "is_rehearsal"), NOBODY.values(), ids=NOBODY.keys())
def test_nobody_is_asked_who_has_agreed_or_pays_nothing(
    tmp_path: Path, asked: dict[str, Any], is_rehearsal: bool
) -> None:
    agreed: list[str] = []
    up = an_up(tmp_path, on_agreed=lambda: agreed.append("yes"), **asked)
    environment = replace(up.change.engine.environment, rehearsal=is_rehearsal)
    up.change.engine = replace(up.change.engine, environment=environment)  # type: ignore[type-var]
    assert not ask(up, WithPreview(**vars(planned_of(up)), anew=0, makes_machines=False))
    assert agreed == []


def test_without_a_terminal_a_price_is_not_agreed_to(tmp_path: Path) -> None:
    agreed: list[str] = []
    up = an_up(tmp_path, on_agreed=lambda: agreed.append("yes"))
    with pytest.raises(UsageError, match="not agreed"):
        ask(up, WithPreview(**vars(planned_of(up)), anew=0, makes_machines=False))
    assert agreed == []


def test_a_preview_says_which_nodes_end_and_what_decides_the_size(tmp_path: Path) -> None:
    up = replace(an_up(tmp_path), size_note="3 nodes, config says so")
    planned = planned_of(up)
    more = replace(planned.state, resources=(*planned.state.resources, *machines([4])))
    first, ends, *_ = preview_lines(up, replace(planned, state=more), [])
    assert first == "  size     3 nodes, config says so"
    assert ends.startswith("  ends     train-4")
    assert list(preview_lines(replace(up, size_note=None), planned, [])) == []


def made(up: Up, watches: FakeWatches, **changes: str | None) -> ClusterctlError | None:
    """What `make` raises."""
    try:
        make(up, planned_of(up, **changes), runs=Runs(), watches=watches)
    except ClusterctlError as e:
        return e
    return None


def is_to_be_repaired(change: Change) -> bool:
    return change.home.run_file(change.cluster).exists()


WELL = ended(is_well=True)


def test_an_up_that_went_well_keeps_its_config_and_leaves_nothing_to_repair(tmp_path: Path) -> None:
    up, watches = an_up(tmp_path, WELL), FakeWatches([ready(slot) for slot in SLOTS])
    up.change.begin()
    assert made(up, watches, nodes="4") is None
    assert [run.verb for run in runs_of(up.change)] == ["up"]
    assert config_values(up.change.stack.config_file.read_text())["nodes"] == "4"
    assert not is_to_be_repaired(up.change)
    assert watches.is_stopped
    assert "train · 4/4 ready" in screen_of(up.change)


def test_where_the_engine_fails_no_node_is_waited_for_and_no_deadline_is_tried(tmp_path: Path) -> None:
    up, watches = an_up(tmp_path, ended(is_well=False, stderr="no network"), proof=None), FakeWatches([])
    stopped: list[bool] = []

    def undone() -> RunResult:
        stopped.append(watches.is_stopped)
        return WELL

    engine = engine_of(up.change)
    engine.ends.append(undone)
    engine.state = StackState(resources=(IDENTITY, *RESERVED.resources))
    up.change.begin()
    with pytest.raises(ClusterctlError, match="no network"):
        make(up, replace(planned_of(up), state=StackState()), runs=Runs(), watches=watches)
    assert watches.waited == []
    assert stopped == [True], "undoing takes minutes, in which no node is connected to"
    assert "start_execution" not in answering(up.change.clients).asked


def test_nodes_are_waited_for_before_it_is_an_error_that_aws_would_not_end_them(tmp_path: Path) -> None:
    up, watches = an_up(tmp_path, WELL, proof=DENIED), FakeWatches([ready(slot) for slot in SLOTS])
    error = made(up, watches)
    assert isinstance(error, CloudError)
    assert error.code == "NotProven"
    assert "train · 4/4 ready" in screen_of(up.change)


@pytest.mark.parametrize("ready_slots", [SLOTS, SLOTS[:3]], ids=["all ready", "one is silent"])
def test_a_program_gets_all_nodes_whatever_is_wrong_with_them(tmp_path: Path, ready_slots: Sequence[int]) -> None:
    up = an_up(tmp_path, WELL, as_json=True)
    stdout = io.BytesIO()
    up.change.output = Output(stdout=stdout, stderr=io.BytesIO(), stdin=io.StringIO())
    error = made(up, FakeWatches([ready(slot, is_final=slot in ready_slots) for slot in SLOTS]))
    assert isinstance(error, SomeNodesFailed) is (len(ready_slots) < len(SLOTS))
    assert [node["slot"] for node in json.loads(stdout.getvalue())["nodes"]] == list(SLOTS)
