"""A cluster of four machines that is held for a change; its engine runs only where a test says how that ends."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any  # options of a run

from clusterctl.cloud.boundary import Clients
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import StackState
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.intent import plan_of, read_intent
from clusterctl.lifecycle.opening import Held
from clusterctl.output import Output
from clusterctl_infra.names import ID_TAG, MEMBERSHIP_TYPE, SLOT_TAG

from tests.unit.cli.cloud.fake_answers import always, clients_of
from tests.unit.cli.engine.state_rows import machines
from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER, resource, state_of
from tests.unit.cli.lifecycle.recorded_runs import RecordedEngine

DEADLINE = BORN + timedelta(hours=2)
SLOTS = range(4)


@dataclass
class Clock:
    """Moved by hand."""

    at: datetime

    def __call__(self) -> datetime:
        return self.at


@dataclass(kw_only=True)
class SlowEngine(RecordedEngine):
    """An engine that fetches its AWS plugin first, which a repair needs and which takes its time."""

    clock: Clock
    fetch_s: float = 0
    fetched: list[float] = field(default_factory=list)

    def provide_plugin(self, output: Output) -> None:
        self.fetched.append(self.fetch_s)
        self.clock.at += timedelta(seconds=self.fetch_s)


def alive() -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """What AWS says of four machines that run."""
    rows = [
        {
            "InstanceId": f"i-{slot}",
            "InstanceType": "p5.48xlarge",
            "State": {"Name": "running"},
            "Tags": [{"Key": ID_TAG, "Value": "0123456789ab"}, {"Key": SLOT_TAG, "Value": str(slot)}],
        }
        for slot in SLOTS
    ]
    return {("us-west-2", "describe_instances", "Reservations"): [{"Instances": rows}]}


def held(
    folder: Path,
    clock: Clock,
    *,
    repair_s: float,
    aws: Clients | None = None,
    ends: Sequence[RunResult] = (),
    after: StackState | None = None,
) -> Held:
    """The cluster in this folder; `after` is its state once the engine has run, `ends` is how its runs end."""
    stack = Stack(directory=folder, project="train", name="dev", is_rehearsal_project=False)
    stack.cluster_file.write_text(CLUSTER + "placement: none\n")
    stack.config_file.write_text("config: {}\n")
    found = made_by_up(stack)
    engine = SlowEngine(
        stack=stack,
        environment=environment_of(stack),
        state=after or found,
        ends=[partial(_given, result) for result in ends],
        clock=clock,
        fetch_s=repair_s,
    )
    change = Change(
        verb="extend",
        engine=engine,
        home=Home(path=folder / "home"),
        output=Output(stdout=io.BytesIO(), stderr=engine.screen, stdin=io.StringIO()),
        cluster="train",
        region="us-west-2",
        environ={},
        previous=None,
        clients_at=always(aws or clients_of(alive())),
    )
    return Held(change=change, state=found, was_cut_off=False)


def _given(result: RunResult) -> RunResult:
    return result


def environment_of(stack: Stack) -> EngineEnvironment:
    """For an engine that is never started, whose state is in a bucket."""
    return EngineEnvironment(
        env={"PULUMI_BACKEND_URL": "s3://states"},
        rehearsal=False,
        executable="pulumi",
        config_file=stack.config_file,
        run_token="1",
    )


def slow_engine_of(change: Change) -> SlowEngine:
    assert isinstance(change.engine, SlowEngine)
    return change.engine


def made_by_up(stack: Stack) -> StackState:
    """The state of a cluster whose machines are as the stack's file says."""
    membership = resource(MEMBERSHIP_TYPE, deadline=DEADLINE.isoformat(), members=[{} for _ in SLOTS])
    planned = plan_of(read_intent(stack, "", nodes=None), state_of(), now=BORN)
    rows = zip(machines(SLOTS), planned.slots, strict=True)
    return state_of(membership, *(replace(row, trigger=slot.replacement_trigger) for row, slot in rows))
