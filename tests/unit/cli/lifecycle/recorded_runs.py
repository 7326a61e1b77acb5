"""A change of a stack whose runs of the engine end as a test says, and are recorded."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.engine.boundary import RunRequest, RunResult, Verb
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.events import Refusal
from clusterctl.engine.lock import Lock
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.data import LUSTRE_TYPE
from clusterctl.lifecycle.display import Display
from clusterctl.lifecycle.failed_up import raise_failed
from clusterctl.lifecycle.intent import Intent, read_intent
from clusterctl.lifecycle.up_runs import Runs, UpRunsResult, run_up
from clusterctl.output import Output
from clusterctl_infra.errors import ClusterctlError, EngineError
from clusterctl_infra.names import IDENTITY_TYPE, MOUNT_TAG, ON_DELETE_TAG

from tests.unit.cli.cloud.fake_answers import always, clients_of
from tests.unit.cli.engine.fake_engine import FakeEngine

CLUSTER = "name: train\nregion: us-west-2\nnodes: 33\ninstance_type: p5.48xlarge\naccess: {mode: private}\n"
RESERVED = StackState(
    resources=(StateResource(urn="u::r", type=RESERVATION_TYPE, id="cr-1", inputs={"instanceCount": 33}),)
)
HELD = "error: the stack is currently locked by 1 lock(s).\n  created by bob@tower (pid 7) at 2026-11-21T10:15:13Z"
BEFORE = "config:\n  clusterctl:nodes: '2'\n"
MEANT = "config:\n  clusterctl:nodes: '33'\n"
LAST = Runs(makes_machines_last=True)
ID = "0123456789ab"
IDENTITY = StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": ID, "name": "train"})
SHARED = StateResource(
    urn="u::shared",
    type=LUSTRE_TYPE,
    id="fs-1",
    inputs={
        "tags": {MOUNT_TAG: "/shared", ON_DELETE_TAG: "retain"},
        "storageCapacity": 4800,
        "perUnitStorageThroughput": 250,
        "deploymentType": "PERSISTENT_2",
    },
)
"""A file system that is to outlive the nodes."""
NO_ENGINE = EngineError("pulumi does not start: no such file", hint="scripts/engine")


def ended(*, is_well: bool, stderr: str = "", codes: Sequence[str] = ()) -> RunResult:
    refusals = tuple(Refusal(code=code, text="No.", urn="u") for code in codes)
    return RunResult(
        succeeded=is_well, interrupted=False, changes={}, refusals=refusals, log=Path("/x.log"), stderr=stderr
    )


def no_place() -> RunResult:
    return ended(is_well=False, codes=["ReservationCapacityExceeded"])


@dataclass(kw_only=True)
class RecordedEngine(FakeEngine):
    """An engine that exports this state, or raises it; its runs end one after the other in these ways."""

    state: StackState | ClusterctlError = RESERVED
    ends: list[Callable[[], RunResult]] = field(default_factory=list)
    when_asked_for_its_lock: BaseException | None = None
    refreshed: list[str] = field(default_factory=list)
    runs: list[RunRequest] = field(default_factory=list)
    wrote_state_once: list[bool] = field(default_factory=list)
    """Whether each run writes its state only once."""
    screen: io.BytesIO = field(default_factory=io.BytesIO)
    """What the change writes to stderr, for a person."""

    def run(self, asked: RunRequest) -> RunResult:
        self.runs.append(asked)
        self.wrote_state_once.append("PULUMI_SKIP_CHECKPOINTS" in self.environment.env)
        if not self.ends:
            raise AssertionError(f"the engine was run: {asked.verb}")
        return self.ends.pop(0)()

    def refresh(self, urns: Sequence[str], *, clears_pending: bool = False) -> None:
        self.refreshed += urns

    def held_by(self) -> tuple[Lock, ...]:
        if self.when_asked_for_its_lock is not None:
            raise self.when_asked_for_its_lock
        return ()

    def export(self) -> StackState | None:
        if isinstance(self.state, ClusterctlError):
            raise self.state
        return self.state


def runner_in(folder: Path) -> Callable[..., Change]:
    """Makes changes of a stack in a folder, whose config file says `MEANT`."""
    stack = Stack(directory=folder, project="train", name="dev", is_rehearsal_project=False)
    stack.cluster_file.write_text(CLUSTER)
    stack.config_file.write_text(MEANT)

    def make(
        *ends: Callable[[], RunResult],
        state: StackState | ClusterctlError = RESERVED,
        when_asked_for_its_lock: BaseException | None = None,
        aws: Clients | None = None,
    ) -> Change:
        environment = EngineEnvironment(
            env={"PULUMI_BACKEND_URL": "s3://states"},
            rehearsal=False,
            executable="pulumi",
            config_file=stack.config_file,
            run_token="1",
        )
        engine = RecordedEngine(
            stack=stack,
            environment=environment,
            state=state,
            ends=list(ends),
            when_asked_for_its_lock=when_asked_for_its_lock,
        )
        return Change(
            verb="up",
            engine=engine,
            home=Home(path=folder / "home"),
            output=Output(stdout=io.BytesIO(), stderr=engine.screen, stdin=io.StringIO()),
            cluster="train",
            region="us-west-2",
            environ={"CLUSTERCTL_HOME": str(folder / "home")},
            previous=None,
            clients_at=always(aws or clients_of({})),
        )

    return make


def runs_of(change: Change) -> list[RunRequest]:
    """What each run of the change's engine was asked to do."""
    return engine_of(change).runs


def engine_of(change: Change) -> RecordedEngine:
    assert isinstance(change.engine, RecordedEngine)
    return change.engine


def verbs_of(change: Change) -> list[Verb]:
    return [run.verb for run in runs_of(change)]


def up(change: Change, *, sleep: Callable[[float], None] = time.sleep) -> UpRunsResult:
    display = Display(change.output)
    return run_up(change, MEANT, display=display, on_event=lambda event: None, nodes=33, runs=LAST, sleep=sleep)


def failure_of(change: Change, ran: UpRunsResult) -> ClusterctlError:
    with pytest.raises(ClusterctlError) as raised:
        raise_failed(change, ran, before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s")
    return raised.value


def intent_of(change: Change) -> Intent:
    return read_intent(change.stack, MEANT, nodes=None)


def screen_of(change: Change) -> str:
    return engine_of(change).screen.getvalue().decode()


def refused(error: BaseException) -> Callable[[], RunResult]:
    def end() -> RunResult:
        raise error

    return end
