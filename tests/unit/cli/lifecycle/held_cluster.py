"""A cluster of four machines that is held for a change whose engine nobody may run."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any  # options of a run

from clusterctl.cloud.boundary import Clients
from clusterctl.engine.call import PulumiEngine
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.intent import plan_of, read_intent
from clusterctl.lifecycle.opening import Held
from clusterctl.output import Output
from clusterctl_infra.names import ID_TAG, MEMBERSHIP_TYPE, SLOT_TAG

from tests.unit.cli.cloud.fake_session import clients_of
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER, resource, state_of

DEADLINE = BORN + timedelta(hours=2)
SLOTS = range(4)


@dataclass
class Clock:
    """Moved by hand."""

    at: datetime

    def __call__(self) -> datetime:
        return self.at


@dataclass(kw_only=True)
class SlowRepair(Change):
    """A change whose repair takes its time, and whose engine nobody may run."""

    clock: Clock
    repair_s: float
    aws: Clients
    repaired: list[StackState] = field(default_factory=list)

    @property
    def clients(self) -> Clients:
        return self.aws

    def mend(self, state: StackState, *, was_cut_off: bool) -> StackState:
        self.repaired.append(state)
        self.clock.at += timedelta(seconds=self.repair_s)
        return state

    def run(self, verb: object, **options: Any) -> RunResult:
        raise AssertionError(f"the engine was run: {verb}")


def alive() -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """What AWS says of four machines that run."""
    rows = [
        {
            "InstanceId": f"i-{slot}",
            "State": {"Name": "running"},
            "Tags": [{"Key": ID_TAG, "Value": "0123456789ab"}, {"Key": SLOT_TAG, "Value": str(slot)}],
        }
        for slot in SLOTS
    ]
    return {("us-west-2", "describe_instances", "Reservations"): [{"Instances": rows}]}


def held(folder: Path, clock: Clock, *, repair_s: float, aws: Clients | None = None) -> Held:
    stack = Stack(directory=folder, project="train", name="dev", is_rehearsal_project=False)
    stack.cluster_file.write_text(CLUSTER + "placement: none\n")
    stack.config_file.write_text("config: {}\n")
    environment = EngineEnvironment(
        env={}, rehearsal=False, executable="pulumi", config_file=stack.config_file, run_token="1"
    )
    change = SlowRepair(
        verb="extend",
        engine=PulumiEngine(stack=stack, environment=environment),
        home=Home(path=folder / "home"),
        output=Output(stdout=io.BytesIO(), stderr=io.BytesIO(), stdin=io.StringIO()),
        cluster="train",
        region="us-west-2",
        environ={},
        previous=None,
        clock=clock,
        repair_s=repair_s,
        aws=aws or clients_of(alive()),
    )
    return Held(change=change, state=made_by_up(stack), was_cut_off=False)


def made_by_up(stack: Stack) -> StackState:
    """The state of a cluster whose machines are as the stack's file says."""
    membership = resource(MEMBERSHIP_TYPE, deadline=DEADLINE.isoformat(), members=[{} for _ in SLOTS])
    planned = plan_of(read_intent(stack, "", nodes=None), state_of(), now=BORN)
    rows = zip(machines(SLOTS), planned.slots, strict=True)
    return state_of(membership, *(replace(row, trigger=slot.replacement_trigger) for row, slot in rows))
