"""A repair ends nothing of a run that lives, on this computer or another."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # boto3 clients and what they answer

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.engine.boundary import Engine
from clusterctl.engine.engine_start import engine_start
from clusterctl.engine.environment import EngineEnvironment
from clusterctl.engine.lock import Lock
from clusterctl.engine.repair import end_what_runs, repair_state, unknown_machines
from clusterctl.engine.run_file import RunRecord, new_record
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import PendingOperation, StackState, StateResource
from clusterctl_infra.errors import EngineError
from clusterctl_infra.names import ID_TAG, IDENTITY_TYPE

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.cloud.fake_clients import FakeClients
from tests.unit.cli.engine.fake_engine import FakeEngine
from tests.unit.cli.engine.state_rows import machines

STACK = Stack(directory=Path("/stacks/train"), project="train", name="dev", is_rehearsal_project=False)
PENDING = StackState(pending=(PendingOperation(kind="creating", urn="urn::train-0", type="aws:ec2/instance:Instance"),))
IDENTITY = StateResource(urn="urn:id", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": "abc123abc123"})
BOBS = Lock(user="bob", host="tower", pid=7, since="2026-11-21T10:15:13Z")
CLUSTER = StackState(resources=(IDENTITY,))


@dataclass(kw_only=True)
class Backend(FakeEngine):
    """An engine whose stack a colleague may hold; `asked` is what it was asked to do."""

    is_held: bool
    found: StackState = PENDING
    asked: list[str] = field(default_factory=list)
    bobs: list[StackState | None] = field(default_factory=list)
    """Bob's runs that began since: None for one that is under way, else the state that it left."""
    left: list[Lock] = field(default_factory=list)
    """The locks that killed runs left."""

    def held_by(self) -> tuple[Lock, ...]:
        self.asked.append("lock")
        is_bobs = self.is_held or None in self.bobs
        return (BOBS,) if is_bobs else tuple(self.left)

    def cancel(self) -> None:
        self.asked.append("cancel")
        self.left.clear()

    def refresh(self, urns: Sequence[str], *, clears_pending: bool = False) -> None:
        self.asked.extend(["refresh", *(urn for urn in urns if urn != STACK.urn)])

    def export(self) -> StackState:
        return next((state for state in self.bobs if state is not None), self.found)


def backend(url: str, *, is_held: bool = False, found: StackState = PENDING) -> Backend:
    environment = EngineEnvironment(
        env={"PULUMI_BACKEND_URL": url},
        rehearsal=False,
        executable="pulumi",
        config_file=STACK.config_file,
        run_token="1",
    )
    return Backend(stack=STACK, environment=environment, is_held=is_held, found=found)


def nobody() -> Clients:
    raise AssertionError("AWS was asked")


def mended(engine: Engine, state: StackState = PENDING, *, clients: Callable[[], Clients] = nobody) -> None:
    repair_state(engine, state, was_cut_off=False, data_since=None, clients=clients, tell=tell_nobody, sleep=no_sleep)


def tell_nobody(text: str) -> None:
    """Nobody listens."""


def no_sleep(seconds: float) -> None:
    """Nobody waits."""


@pytest.mark.parametrize("url", ["s3://states", "https://api.pulumi.com", "azblob://states"])
def test_where_locks_cannot_be_seen_the_lock_is_taken_before_anything_is_ended(url: str) -> None:
    engine = backend(url, is_held=True)
    with pytest.raises(EngineError, match="started by bob on tower"):
        mended(engine)
    assert engine.asked == ["lock"]


class OneAnswer:
    """An EC2 that shows these instances."""

    def __init__(self, *instance_ids: str) -> None:
        self._shown = instance_ids

    def get_paginator(self, name: str) -> OneAnswer:
        assert name == "describe_instances"
        return self

    def paginate(self, **words: object) -> list[dict[str, Any]]:
        rows = [{"InstanceId": id, "State": {"Name": "running"}, "Tags": []} for id in self._shown]
        return [{"Reservations": [{"Instances": rows}]}]


def test_machines_that_the_state_lacks_are_what_a_large_run_left() -> None:
    state = StackState(resources=(*CLUSTER.resources, *machines((0, 1))))
    assert unknown_machines(lambda: FakeClients(ec2=OneAnswer("i-0", "i-1")), state) == ()
    (unknown,) = unknown_machines(lambda: FakeClients(ec2=OneAnswer("i-0", "i-9")), state)
    assert unknown.instance_id == "i-9"
    assert unknown_machines(nobody, StackState()) == ()


def test_a_run_that_nobody_holds_any_more_is_repaired() -> None:
    engine = backend("s3://states")
    mended(engine)
    assert engine.asked == ["lock", "refresh"]


def killed_here() -> tuple[RunRecord, Lock]:
    """A run of this computer that was killed, and the lock that its engine left."""
    start = replace(engine_start(2**22 + 1), ticks=1)
    record = new_record("up", tokens=(), stack="/stacks/train", engines=(start,))
    return record, Lock(user="ada", host=start.host, pid=start.pid, since=start.at)


@pytest.mark.parametrize("url", ["s3://states", "gs://states"])
def test_the_lock_of_a_run_that_was_killed_here_is_removed_where_locks_are_no_files(url: str) -> None:
    record, lock = killed_here()
    engine, messages = backend(url), list[str]()
    engine.left.append(lock)
    assert end_what_runs(engine, record, messages.append)
    assert engine.asked == ["lock", "cancel"]
    assert messages == [f"removed the lock of pid {lock.pid}, which is gone"]


def test_without_a_run_that_was_cut_off_here_no_lock_is_taken_to_look_for_one() -> None:
    engine = backend("s3://states", is_held=True)
    assert not end_what_runs(engine, None, tell_nobody)
    assert engine.asked == []


def test_a_colleagues_lock_is_left_although_a_run_was_killed_here() -> None:
    """On a computer of the same name, with the same number, at another time."""
    record, lock = killed_here()
    engine = backend("s3://states")
    engine.left.append(replace(lock, since="2026-01-01T00:00:00Z"))
    with pytest.raises(EngineError, match="if you are certain that it has ended") as refused:
        end_what_runs(engine, record, tell_nobody)
    assert engine.asked == ["lock"]
    assert refused.value.hint == "cd /stacks/train && pulumi cancel --stack dev"


def test_locks_that_are_files_are_read_and_not_taken() -> None:
    engine = backend("file:///states")
    mended(engine)
    assert engine.asked == ["refresh"]


def test_a_run_that_a_colleague_began_while_a_person_was_asked_keeps_its_machines(tmp_path: Path) -> None:
    """Its machines are in no state yet; the locks were read before the question, and now there is one."""
    lock = tmp_path / ".pulumi/locks/organization" / STACK.project / STACK.name / "1.json"
    lock.parent.mkdir(parents=True)
    now = datetime.now(UTC).isoformat()
    lock.write_text(json.dumps({"pid": 7, "username": "bob", "hostname": "tower", "timestamp": now}))
    engine = backend(f"file://{tmp_path}")
    with pytest.raises(EngineError, match="started by bob on tower"):
        mended(engine, CLUSTER, clients=lambda: FakeClients(ec2=OneAnswer("i-9")))
    assert engine.asked == []


def test_machines_of_a_run_that_has_ended_meanwhile_are_known(tmp_path: Path) -> None:
    """Otherwise the repair would end them, by a state that is older than they are."""
    known = StackState(resources=(*CLUSTER.resources, *machines((9,))))
    engine, messages = backend(f"file://{tmp_path}", found=known), list[str]()
    clients = FakeClients(ec2=OneAnswer("i-9"))
    mended_state = repair_state(
        engine, CLUSTER, was_cut_off=False, data_since=None, clients=lambda: clients, tell=messages.append
    )
    assert (mended_state, messages) == (known, [])


class OnlyMachines:
    """All services of an AWS that has instances alone; `meanwhile` happens once, when the first of them is ended."""

    def __init__(self, instance_ids: Sequence[str], *, meanwhile: Callable[[], None]) -> None:
        self.there = list(instance_ids)
        self._meanwhile = meanwhile

    @property
    def clients(self) -> FakeClients:
        return FakeClients(ec2=self, iam=self, efs=self, fsx=self, scheduler=self, sfn=self, cloudwatch=self)

    def get_paginator(self, name: str) -> OnlyMachines:
        pages = OnlyMachines(self.there if name == "describe_instances" else (), meanwhile=self._meanwhile)
        pages.of_instances = name == "describe_instances"
        return pages

    of_instances = False

    def paginate(self, **words: object) -> list[dict[str, Any]]:
        rows = [{"InstanceId": id, "InstanceType": "t", "State": {"Name": "running"}, "Tags": []} for id in self.there]
        return [{"Reservations": [{"Instances": rows}]}] if self.of_instances else []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda **words: defaultdict(list)

    def terminate_instances(self, *, InstanceIds: Sequence[str]) -> None:  # noqa: N803  as boto3 has it
        for id in InstanceIds:
            self.there.remove(id)
        self._meanwhile()
        self._meanwhile = lambda: None


def test_machines_of_a_run_that_began_while_the_repair_ended_others_are_left() -> None:
    """A repair takes up to ten minutes; a large run's machines are in no state until its end."""
    engine = backend("s3://states", found=CLUSTER)
    aws = OnlyMachines(["i-lost"], meanwhile=lambda: began(engine, aws))
    with pytest.raises(EngineError, match="started by bob on tower"):
        mended(engine, CLUSTER, clients=lambda: aws.clients)
    assert aws.there == ["i-bobs"]


def test_a_repair_says_of_what_it_could_not_ask() -> None:
    messages: list[str] = []
    engine, identity = backend("s3://states", found=CLUSTER), CLUSTER
    machine = {"InstanceId": "i-lost", "InstanceType": "t", "State": {"Name": "running"}}
    rows = [{"Instances": [{**machine, "Tags": [{"Key": ID_TAG, "Value": "abc123abc123"}]}]}]
    aws = clients_of(
        {("us-west-2", "describe_instances", "Reservations"): rows},
        refused={("fsx", "describe_file_systems"): "AccessDeniedException"},
    )
    repair_state(
        engine,
        identity,
        was_cut_off=False,
        data_since=None,
        clients=lambda: aws,
        tell=messages.append,
        agreed=lambda resource: rows.clear(),
        sleep=no_sleep,
    )
    assert messages[0] == "ending instance i-lost: it is in no Pulumi state"
    assert (
        messages[1] == "AWS did not say whether it has: FSx file system (AccessDeniedException). "
        "If the last run left any, it may bill"
    )


def test_a_run_that_began_and_ended_during_the_repair_is_in_the_state_that_comes_of_it() -> None:
    engine = backend("s3://states", found=CLUSTER)
    whole = StackState(resources=(*CLUSTER.resources, *machines((7,))))
    aws = OnlyMachines(["i-lost"], meanwhile=lambda: began(engine, aws, ended=whole))
    state = repair_state(
        engine,
        CLUSTER,
        was_cut_off=False,
        data_since=None,
        clients=lambda: aws.clients,
        tell=tell_nobody,
        sleep=no_sleep,
    )
    assert (state, aws.there) == (whole, ["i-7"])


def began(engine: Backend, aws: OnlyMachines, *, ended: StackState | None = None) -> None:
    """Bob's run, which is under way, or has ended with this state."""
    aws.there.append("i-bobs" if ended is None else "i-7")
    engine.bobs.append(ended)


def test_what_was_being_deleted_is_looked_at_for_it_may_be_gone() -> None:
    """Else the next `up` would update a network that is not there."""
    vpc = StateResource(urn="urn::train-vpc", type="aws:ec2/vpc:Vpc", id="vpc-1")
    pending = [PendingOperation(kind="deleting", urn=urn, type=vpc.type) for urn in (vpc.urn, "urn::forgotten")]
    state = StackState(resources=(vpc,), pending=(*PENDING.pending, *pending))
    engine = backend("file:///states", found=state)
    mended(engine, state)
    assert engine.asked == ["refresh", vpc.urn]
