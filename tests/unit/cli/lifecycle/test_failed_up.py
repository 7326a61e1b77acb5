"""An `up` of two runs whose second one fails: what the first one made bills, so it is undone or named."""

from __future__ import annotations

import errno
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any  # options of a run

import pytest
from clusterctl.changes.change import Change
from clusterctl.changes.display import Display
from clusterctl.changes.intent import Intent, read_intent
from clusterctl.changes.stopped import telling_if_stopped
from clusterctl.cloud.clients import Clients
from clusterctl.engine.call import Engine
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.events import Refusal
from clusterctl.engine.lock import Lock
from clusterctl.engine.run import RunResult
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.home import Home
from clusterctl.lifecycle.failed_up import raise_failed
from clusterctl.lifecycle.up_runs import Ran, Runs, run_up
from clusterctl.output import Output
from clusterctl_infra.errors import ClusterctlError, EngineError
from clusterctl_infra.names import ID_TAG, IDENTITY_TYPE

from tests.unit.cli.cloud.fake_session import clients_of

CLUSTER = "name: train\nregion: us-west-2\nnodes: 33\ninstance_type: p5.48xlarge\naccess: {mode: private}\n"
RESERVED = StackState(
    resources=(StateResource(urn="u::r", type=RESERVATION_TYPE, id="cr-1", inputs={"instanceCount": 33}),)
)
HELD = "error: the stack is currently locked by 1 lock(s).\n  created by bob@tower (pid 7) at 2026-11-21T10:15:13Z"
BEFORE = "config:\n  clusterctl:nodes: '2'\n"
MEANT = "config:\n  clusterctl:nodes: '33'\n"
LAST = Runs(makes_machines_last=True)
ID = "0123456789ab"
NO_ENGINE = EngineError("pulumi does not start: no such file", hint="scripts/engine")


def ended(*, is_well: bool, said: str = "", codes: Sequence[str] = ()) -> RunResult:
    refusals = tuple(Refusal(code=code, text="No.", urn="u") for code in codes)
    return RunResult(succeeded=is_well, interrupted=False, changes={}, refusals=refusals, log=Path("/x.log"), said=said)


def no_place() -> RunResult:
    return ended(is_well=False, codes=["ReservationCapacityExceeded"])


@dataclass(frozen=True, kw_only=True)
class OneState(Engine):
    """An engine that exports this, or raises it."""

    state: StackState | ClusterctlError
    when_asked_for_its_lock: BaseException | None

    def held_by(self) -> tuple[Lock, ...]:
        if self.when_asked_for_its_lock is not None:
            raise self.when_asked_for_its_lock
        return ()

    def export(self) -> StackState:
        if isinstance(self.state, ClusterctlError):
            raise self.state
        return self.state


@dataclass(frozen=True, kw_only=True)
class Runner(Change):
    """A change whose runs of the engine end one after the other in these ways."""

    ends: list[Callable[[], RunResult]]
    stderr: io.BytesIO
    aws: Clients
    options: list[dict[str, Any]] = field(default_factory=list)

    @property
    def clients(self) -> Clients:
        return self.aws

    def run(self, verb: object, **options: Any) -> RunResult:  # all that a run is told
        self.options.append(options)
        return self.ends.pop(0)()


@pytest.fixture
def runner(tmp_path: Path) -> Callable[..., Runner]:
    """A change of a stack in a folder, whose config file says `MEANT`."""
    stack = Stack(directory=tmp_path, project="train", name="dev", is_rehearsal_project=False)
    stack.cluster_file.write_text(CLUSTER)
    stack.config_file.write_text(MEANT)

    def make(
        *ends: Callable[[], RunResult],
        state: StackState | ClusterctlError = RESERVED,
        when_asked_for_its_lock: BaseException | None = None,
        aws: Clients | None = None,
    ) -> Runner:
        environment = EngineEnvironment(
            env={"PULUMI_BACKEND_URL": "s3://states"},
            rehearsal=False,
            executable="pulumi",
            config_file=stack.config_file,
            run_token="1",
        )
        engine = OneState(
            stack=stack, environment=environment, state=state, when_asked_for_its_lock=when_asked_for_its_lock
        )
        stderr = io.BytesIO()
        return Runner(
            stderr=stderr,
            verb="up",
            aws=aws or clients_of({}),
            engine=engine,
            home=Home(path=tmp_path / "home"),
            output=Output(stdout=io.BytesIO(), stderr=stderr, stdin=io.StringIO()),
            cluster="train",
            region="us-west-2",
            environ={"CLUSTERCTL_HOME": str(tmp_path / "home")},
            previous=None,
            ends=list(ends),
        )

    return make


def up(change: Runner, *, sleep: Callable[[float], None] = time.sleep) -> Ran:
    display = Display(change.output)
    return run_up(change, MEANT, display=display, on_event=lambda event: None, nodes=33, runs=LAST, sleep=sleep)


def failure_of(change: Runner, ran: Ran) -> ClusterctlError:
    with pytest.raises(ClusterctlError) as raised:
        raise_failed(change, ran, before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s")
    return raised.value


def intent_of(change: Runner) -> Intent:
    return read_intent(change.stack, MEANT, nodes=None)


def told(change: Runner) -> str:
    return change.stderr.getvalue().decode()


def refused(error: BaseException) -> Callable[[], RunResult]:
    def end() -> RunResult:
        raise error

    return end


@pytest.mark.parametrize(
    ("error", "said"),
    [(NO_ENGINE, "pulumi does not start"), (OSError(errno.ENOSPC, "full", "/x.log"), "/x.log cannot be written")],
)
def test_a_second_run_that_does_not_start_is_one_that_failed_after_the_first(
    runner: Callable[..., Runner], error: Exception, said: str
) -> None:
    change = runner(lambda: ended(is_well=True), refused(error))
    ran = up(change)
    assert (ran.has_made, ran.result.succeeded) == (True, False)
    assert said in ran.result.said
    assert [options.get("writes_state_once", False) for options in change.options] == [False, True]


def test_machines_that_found_no_reserved_place_are_made_by_another_run(runner: Callable[..., Runner]) -> None:
    well = partial(ended, is_well=True)
    change, waited = runner(well, no_place, no_place, well), list[float]()
    ran = up(change, sleep=waited.append)
    assert ran.result.succeeded
    assert waited == [15, 30]
    assert [options.get("writes_state_once", False) for options in change.options] == [False, True, True, True]
    assert "does not count all reserved places as free yet (ReservationCapacityExceeded): again in 15 s" in told(change)


@pytest.mark.parametrize(
    ("ends", "runs"),
    [
        ([no_place] * 4, 5),
        ([partial(ended, is_well=False, codes=["ReservationCapacityExceeded", "InvalidIPAddress.InUse"])], 2),
        ([partial(ended, is_well=False, codes=["InsufficientInstanceCapacity"])], 2),
        ([partial(ended, is_well=False, said="no")], 2),
    ],
)
def test_places_are_not_waited_for_without_end_nor_for_another_reason(
    runner: Callable[..., Runner], ends: Sequence[Callable[[], RunResult]], runs: int
) -> None:
    change = runner(partial(ended, is_well=True), *ends)
    assert not up(change, sleep=lambda seconds: None).result.succeeded
    assert len(change.options) == runs


def test_whoever_stops_the_waiting_for_places_is_told_what_exists(runner: Callable[..., Runner]) -> None:
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    change = runner(partial(ended, is_well=True), no_place)
    ran = up(change, sleep=stop)
    assert ran.result.interrupted
    with pytest.raises(KeyboardInterrupt):
        raise_failed(change, ran, before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s")
    assert "33 reserved places are empty and bill" in told(change)


def test_where_another_run_for_places_does_not_start_the_first_one_has_failed(runner: Callable[..., Runner]) -> None:
    ran = up(runner(partial(ended, is_well=True), no_place, refused(NO_ENGINE)), sleep=lambda seconds: None)
    assert [refusal.code for refusal in ran.result.refusals] == ["ReservationCapacityExceeded"]


def test_a_first_run_that_does_not_start_leaves_the_config_as_it_was(runner: Callable[..., Runner]) -> None:
    change = runner(refused(NO_ENGINE))
    change.stack.config_file.write_text(BEFORE)
    with pytest.raises(EngineError):
        up(change)
    assert change.stack.config_file.read_text() == BEFORE


def test_where_undoing_it_fails_too_what_bills_is_named_with_the_command_that_ends_it(
    runner: Callable[..., Runner],
) -> None:
    change = runner(lambda: ended(is_well=True), refused(NO_ENGINE), state=NO_ENGINE)
    error = failure_of(change, up(change))
    assert "Undoing it failed too (pulumi does not start: no such file)" in error.message
    assert "still there, and bills" in error.message
    assert "clusterctl down s ends it" in error.message
    assert error.hint == "scripts/engine"


def test_who_finds_the_stack_held_after_the_first_run_undoes_nothing_and_names_what_bills(
    runner: Callable[..., Runner],
) -> None:
    change = runner(lambda: ended(is_well=True), lambda: ended(is_well=False, said=HELD))
    change.begin()
    error = failure_of(change, up(change))
    assert "started by bob on tower" in error.message
    assert "1 resource is there, no node runs, 33 reserved places are empty and bill" in error.message
    assert "clusterctl down s ends it" in error.message
    assert change.home.run_file("train").exists(), "the next change has to repair"
    assert change.stack.config_file.read_text() == MEANT, "what was made is of this config"


def test_ctrl_c_between_the_two_runs_names_what_the_first_one_made(runner: Callable[..., Runner]) -> None:
    change = runner(lambda: ended(is_well=True), refused(KeyboardInterrupt()))
    ran = up(change)
    with pytest.raises(KeyboardInterrupt):
        raise_failed(change, ran, before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s")
    said = told(change)
    assert "1 resource is there, no node runs, 33 reserved places are empty and bill" in said
    assert "next: clusterctl up s    goes on\n        clusterctl down s  ends it" in said
    assert change.stack.config_file.read_text() == MEANT, "what was made is of this config"


def test_ctrl_c_after_the_last_run_names_what_exists(runner: Callable[..., Runner]) -> None:
    change = runner()
    with pytest.raises(KeyboardInterrupt), telling_if_stopped(change, shown="s"):
        raise KeyboardInterrupt
    assert "33 reserved places are empty and bill" in told(change)


def test_who_finds_the_stack_held_at_once_has_begun_nothing(runner: Callable[..., Runner]) -> None:
    change = runner(lambda: ended(is_well=False, said=HELD))
    change.begin()
    error = failure_of(change, up(change))
    assert "at 2026-11-21T10:15:13Z; wait for it, or remove its lock" in error.message
    assert error.hint == f"cd {change.stack.directory} && pulumi cancel --stack dev"
    assert not change.home.run_file("train").exists()
    assert change.stack.config_file.read_text() == BEFORE


def test_where_the_backend_is_silent_beside_another_what_bills_is_named_all_the_same(
    runner: Callable[..., Runner],
) -> None:
    change = runner(lambda: ended(is_well=True), lambda: ended(is_well=False, said=HELD), state=NO_ENGINE)
    error = failure_of(change, up(change))
    assert "started by bob on tower" in error.message
    assert "places that are reserved and empty" in error.message
    assert "clusterctl down s ends it" in error.message


def test_who_stops_the_undoing_is_told_that_something_may_bill(runner: Callable[..., Runner]) -> None:
    change = runner(lambda: ended(is_well=False, said="no room"), when_asked_for_its_lock=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        raise_failed(
            change, up(change), before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s"
        )
    said = told(change)
    assert "stopped in the middle of the repair" in said
    assert "may bill" in said
    assert "clusterctl down" in said


def test_an_undone_up_says_that_nothing_bills_only_after_aws_was_asked_again(runner: Callable[..., Runner]) -> None:
    """An address that a killed engine had asked for is there after the destroy, and may not be released."""
    identity = StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": ID})
    made = StackState(resources=(identity, *RESERVED.resources))
    addresses: list[dict[str, Any]] = []

    def destroyed() -> RunResult:
        addresses.append({"AllocationId": "eipalloc-1", "Tags": [{"Key": ID_TAG, "Value": ID}]})
        return ended(is_well=True)

    aws = clients_of(
        {("us-west-2", "describe_addresses", "Addresses"): addresses},
        refused={("ec2", "release_address"): "UnauthorizedOperation"},
    )
    change = runner(lambda: ended(is_well=False, said="no room"), destroyed, state=made, aws=aws)
    error = failure_of(change, up(change))
    assert "not all is gone: 1 thing that bills is left: elastic IP eipalloc-1: bills" in error.message
    assert "clusterctl down" not in error.message, "its state is empty: it would end nothing"
    assert error.hint == f"clusterctl reap --cluster {ID} --region us-west-2"
    told_of = [line for line in told(change).splitlines() if "no state knows it" in line]
    assert told_of == ["  repair   ending elastic IP eipalloc-1: no state knows it"]


def test_where_the_disk_was_full_nothing_is_undone_which_may_cost_the_state(runner: Callable[..., Runner]) -> None:
    said = "error: failed to save snapshot: write /not/there/dev.json.tmp: no space left on device"
    change = runner(lambda: ended(is_well=False, said=said))
    change.begin()
    error = failure_of(change, up(change))
    assert "with room again clusterctl up s goes on with it, and clusterctl down s ends it" in error.message
    assert error.hint == "df -h /"
    assert len(change.options) == 1, "no second run"
    assert change.home.run_file("train").exists(), "the next change has to repair"
