"""The table of checks before a change: its order, its page, and a case of each row that it refuses."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any  # AWS's answers, and what a check needs

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.state import PLACEMENT_GROUP_TYPE, StackState, StateResource
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.checks.known import WithEngine, WithFolder, WithHold, WithPreview
from clusterctl.lifecycle.checks.page import checks_page
from clusterctl.lifecycle.checks.table import CHECKS, Asks, Check, run_checks, run_checks_of_time
from clusterctl.lifecycle.deadline_request import DeadlineRequest
from clusterctl.lifecycle.fixed_at_birth import CAPACITY, NETWORK
from clusterctl.lifecycle.intent import for_up, plan_of, read_intent
from clusterctl_infra.errors import ClusterctlError, ConfigError
from clusterctl_infra.names import ID_TAG, INVENTORY_TYPE, SLOT_TAG, guard_name
from clusterctl_infra.outputs import inventory_to_json

from tests.unit.cli.cloud.fake_answers import Answers, Refused, answering, clients_of
from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.lifecycle.held_cluster import DEADLINE, Clock, alive, held, slow_engine_of
from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER

PAGE = Path(__file__).resolve().parents[5] / "docs" / "checks.md"
BY_NAME = {check.name: check for check in CHECKS}
ID = "0123456789ab"
REGION = "us-west-2"
ALL_IS_WELL: Answers = {
    **alive(),
    (REGION, "describe_account_attributes", "AccountAttributes"): [{"AttributeValues": [{"AttributeValue": "5"}]}],
}


@dataclass
class Situation:
    """What a check is given: a cluster of four nodes that is as its file says."""

    folder: Path
    verb: Any = "up"
    file: str = CLUSTER + "placement: none\n"
    more: tuple[StateResource, ...] = ()
    without: Callable[[StateResource], bool] = lambda part: False
    answers: Answers | None = None
    refused: Refused | None = None
    sent_at: str | None = None
    now: datetime = BORN
    request: DeadlineRequest | None = None
    slot: int | None = None
    reorders_ranks: bool = False
    cluster: str = "train"
    region: str = REGION
    is_rehearsal: bool = False
    config: str = "config: {}\n"
    program: str | None = None
    backend_url: str | None = None

    def change(self) -> Change:
        aws = clients_of({**ALL_IS_WELL, **(self.answers or {})}, refused=self.refused, sent_at=self.sent_at)
        made = held(self.folder, Clock(self.now), repair_s=0, aws=aws).change
        environment = replace(
            made.engine.environment, rehearsal=self.is_rehearsal, env={"PULUMI_BACKEND_URL": self.backend_url or ""}
        )
        engine = replace(slow_engine_of(made), environment=environment)
        change = replace(made, verb=self.verb, cluster=self.cluster, region=self.region, engine=engine)
        change.stack.cluster_file.write_text(self.file)
        change.stack.config_file.write_text(self.config)
        return change

    def state(self) -> StackState:
        found = held(self.folder, Clock(self.now), repair_s=0).state
        kept = tuple(part for part in found.resources if not self.without(part))
        return StackState(resources=(*kept, *self.more))

    def known(self, needs: type[object]) -> Any:
        if needs is WithFolder:
            stack = Stack(
                directory=self.folder, project="train", name="dev", is_rehearsal_project=False, program=self.program
            )
            return WithFolder(stack=stack, home=self.change().home)
        state, change = self.state(), self.change()
        if needs is WithEngine:
            return WithEngine(engine=change.engine)
        if needs is WithHold:
            return WithHold(change=change, state=state)
        text = self.config
        intent = for_up(read_intent(change.stack, text, nodes=None), state, {})
        if self.request is not None:
            wanted = self.request.changes({}, base=DEADLINE)
            asked = "config:\n" + "".join(f"  clusterctl:{key}: '{value}'\n" for key, value in wanted.items())
            intent = for_up(read_intent(change.stack, asked, nodes=None), state, {})
        stack = replace(change.stack, program=self.program)
        return WithPreview(
            stack=stack,
            state=state,
            shown="stacks/train",
            now=self.now,
            held=change,
            slot=self.slot,
            intent=intent,
            reorders_ranks=self.reorders_ranks,
            plan=plan_of(intent, state, now=self.now),
            request=self.request,
            deadline_before=DEADLINE,
            makes_machines=True,
        )


def part(type: str, *, urn: str = "u::x", id: str = "x", outputs: object = None, **inputs: object) -> StateResource:
    return StateResource(urn=urn, type=type, id=id, inputs=inputs, outputs=outputs or {})  # type: ignore[arg-type]


def other_home(folder: Path) -> dict[str, Any]:
    there = folder / "other"
    (there / "rehearsal").mkdir(parents=True)
    return {"is_rehearsal": True, "more": (part(INVENTORY_TYPE, outputs={"home": str(there)}),)}


def renamed_project(folder: Path) -> dict[str, Any]:
    backend = folder / "backend"
    file = backend / ".pulumi" / "stacks" / "before" / "dev.json"
    file.parent.mkdir(parents=True)
    identity = {
        "urn": "u",
        "type": "clusterctl:index:Identity",
        "id": "1",
        "custom": True,
        "outputs": {"cluster_id": ID},
    }
    file.write_text(json.dumps({"version": 3, "checkpoint": {"latest": {"resources": [identity]}}}))
    keep_inventory(folder, stack_dir=str(folder), stack_name="dev", cluster_id=ID)
    return {"backend_url": f"file://{backend}", "without": lambda part: True}


def shared_project(folder: Path) -> dict[str, Any]:
    (folder / "first").mkdir()
    (folder / "first" / "cluster.yaml").write_text("name: train\n")
    keep_inventory(folder, stack_dir=str(folder / "first"), cluster_id=ID)
    return {"verb": "down", "cluster": "mine"}


def namesake(folder: Path) -> dict[str, Any]:
    other = {
        "InstanceId": "i-9",
        "State": {"Name": "running"},
        "Tags": [{"Key": ID_TAG, "Value": "ffffffffffff"}, {"Key": "clusterctl:name", "Value": "train"}],
    }
    return {
        "without": lambda part: True,
        "answers": {(REGION, "describe_instances", "Reservations"): [{"Instances": [other]}]},
    }


def state_larger_than_the_disk(folder: Path) -> dict[str, Any]:
    file = folder / "backend" / ".pulumi" / "stacks" / "train" / "dev.json"
    file.parent.mkdir(parents=True)
    with file.open("wb") as state:
        state.truncate(2**42)  # 4 TiB, sparse: nothing is written
    return {"backend_url": f"file://{folder / 'backend'}"}


def keep_inventory(folder: Path, **known: object) -> None:
    file = folder / "home" / "inventory" / "train.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(inventory_to_json(an_inventory(**known))))


def is_slot(number: int) -> Callable[[StateResource], bool]:
    return lambda part: (part.inputs.get("tags") or {}).get(SLOT_TAG) == str(number)


VPC = "aws:ec2/vpc:Vpc"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
SPOT = CLUSTER + "placement: none\ncapacity: spot\n"
MISSING_RIGHT = {("ec2", "cancel_spot_instance_requests"): "UnauthorizedOperation"}
DEAR = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-west-2b", "SpotPrice": "900.0"}
STATE_MACHINE = {"name": guard_name(ID), "stateMachineArn": "arn:machine"}
ENDING: Answers = {
    (REGION, "list_state_machines", "stateMachines"): [STATE_MACHINE],
    (REGION, "list_executions", "executions"): [{"name": "x", "startDate": datetime.now(UTC)}],
}
ONE_HOUR = DeadlineRequest(by=timedelta(hours=1))
NEARLY_OVER = DEADLINE - timedelta(minutes=1)
OTHER_MACHINES = CLUSTER.replace("p5.48xlarge", "p4d.24xlarge") + "placement: none\n"
OUR_VPC = f"u::{NETWORK}vpc:Vpc::train-vpc"
NO_MACHINE: Answers = {(REGION, "describe_instances", "Reservations"): []}
NO_ADDRESS: Answers = {
    (REGION, "describe_account_attributes", "AccountAttributes"): [{"AttributeValues": [{"AttributeValue": "0"}]}]
}
CLOSED_REGION: Answers = {
    (REGION, "describe_regions", "Regions"): [{"RegionName": REGION, "OptInStatus": "not-opted-in"}]
}
Given = Mapping[str, Any] | Callable[[Path], dict[str, Any]]
CASES: Mapping[str, tuple[Given, str]] = {
    "program": ({"program": "missing.py"}, r"has no missing\.py"),
    "room for the state": (state_larger_than_the_disk, r"a change of a cluster needs"),
    "program of what stays": ({"verb": "down", "program": "missing.py"}, r"has no missing\.py"),
    "ordered ranks": ({"reorders_ranks": True}, r"--reorder-ranks: a rank is its slot's number"),
    "project": (renamed_project, r"Pulumi has train under the name before"),
    "home": (other_home, r"is rehearsed in the home"),
    "region": ({"region": "eu-west-1"}, r"is in us-west-2b, and .* says region: eu-west-1"),
    "account": ({"more": (part(VPC, outputs={"ownerId": "999900001111"}),)}, r"999900001111"),
    "slot with a machine": ({"verb": "replace", "slot": 1, "without": is_slot(1)}, r"slot 1 has no machine to replace"),
    "whole cluster": ({"verb": "extend", "without": is_slot(1)}, r"its last change left 3 of 4 nodes"),
    "shared project": (shared_project, r"name one project, train"),
    "name": ({"file": CLUSTER.replace("train", "mine")}, r"holds the cluster train"),
    "region in the file": ({"file": CLUSTER.replace("us-west-2", "us-east-1")}, r"says region: us-east-1"),
    "data": ({"more": (part(LUSTRE, tags={"clusterctl:mount": "/shared"}),)}, r"would lose data"),
    "network": (
        {"more": (part(VPC, urn=OUR_VPC, cidrBlock="172.16.0.0/16"),)},
        r"would replace the network",
    ),
    "launch": ({"more": (part(PLACEMENT_GROUP_TYPE, urn=f"u::{CAPACITY}x"),)}, r"not made on running nodes"),
    "new deadline": (
        {"verb": "extend", "request": ONE_HOUR, "now": NEARLY_OVER},
        r"with less than 3 m left",
    ),
    "plan": ({"now": DEADLINE + timedelta(hours=1)}, r"its run time was over"),
    "machines stay": (
        {"verb": "extend", "file": CLUSTER.replace("p5.48xlarge", "p4d.24xlarge") + "placement: none\n"},
        r"would be replaced",
    ),
    "clock": ({"sent_at": "Sat, 21 Nov 2020 20:00:00 GMT"}, r"ahead of AWS's .* so nothing was created"),
    "namesake": (namesake, r"another cluster called train runs"),
    "reaped": ({"answers": NO_MACHINE, "more": (part(VPC, urn=OUR_VPC),)}, r"train was reaped"),
    "ending": ({"verb": "extend", "answers": ENDING}, r"is being ended by its state machine"),
    "spot rights": ({"file": SPOT, "refused": MISSING_RIGHT}, r"need ec2:CancelSpotInstanceRequests"),
    "spot price": (
        {"file": SPOT, "answers": {(REGION, "describe_spot_price_history", "SpotPriceHistory"): [DEAR]}},
        r"costs \$900\.00 in us-west-2b now, but the maximum is",
    ),
    "addresses": ({"answers": NO_ADDRESS}, r"the cluster needs 1 elastic IPs"),
    "preflight": ({"answers": CLOSED_REGION, "without": is_slot(3)}, r"AWS would refuse it: .*us-west-2: not-opted-in"),
}
OF_THEIR_OWN = {"room at home", "room for the config", "writable config", "way in", "vCPUs"}
"""Checks that have a test below instead of a case."""


def given(name: str, folder: Path) -> Situation:
    settings = CASES[name][0]
    return Situation(folder=folder, **(settings(folder) if callable(settings) else settings))


@pytest.mark.parametrize("name", CASES)
def test_a_row_refuses_what_it_is_there_for(tmp_path: Path, name: str) -> None:
    check = BY_NAME[name]
    with pytest.raises(ClusterctlError, match=CASES[name][1]):
        refuse_by(check, given(name, tmp_path))


def refuse_by(check: Check[Any], situation: Situation) -> None:
    assert situation.verb in check.verbs
    check.refuse(situation.known(check.needs))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_row_lets_a_cluster_pass_that_is_as_its_file_says(tmp_path: Path, check: Check[Any]) -> None:
    is_reachable = check.name == "way in"  # as a rehearsal is
    backend = f"file://{tmp_path}"
    well = Situation(folder=tmp_path, verb=check.verbs[0], slot=1, backend_url=backend, is_rehearsal=is_reachable)
    refuse_by(check, well)


def test_every_row_has_a_case() -> None:
    assert {*CASES, *OF_THEIR_OWN} == set(BY_NAME)
    assert len(BY_NAME) == len(CHECKS), "two rows of one name"


@pytest.mark.parametrize("name", ["room at home", "room for the config"])
def test_a_full_disk_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/integration/test_full_disk.py fills real ones."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=2**30, used=2**30, free=0))
    with pytest.raises(ClusterctlError, match="has 0 KiB free, and a change of a cluster needs"):
        refuse_by(BY_NAME[name], Situation(folder=tmp_path))


def test_a_config_that_this_user_may_not_write_is_refused(tmp_path: Path) -> None:
    known = Situation(folder=tmp_path).known(WithEngine)
    tmp_path.chmod(0o555)
    with an_ordinary_user(), pytest.raises(ClusterctlError, match="cannot be written by this user"):
        BY_NAME["writable config"].refuse(known)
    tmp_path.chmod(0o755)


@contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Root may write everywhere: access(2) asks for the real user."""
    if os.getuid() != 0:
        yield
        return
    os.setreuid(65534, 0)
    try:
        yield
    finally:
        os.setreuid(0, 0)


def test_nodes_behind_a_session_manager_that_this_computer_lacks_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterctlError, match=r"needs aws: .* and session-manager-plugin: .*Nothing was created"):
        refuse_by(BY_NAME["way in"], Situation(folder=tmp_path))


def test_machines_beyond_the_account_s_quota_are_refused(tmp_path: Path) -> None:
    situation = Situation(folder=tmp_path, without=is_slot(3))
    known = situation.known(WithPreview)

    class Quotas:
        def get_service_quota(self, **asked: object) -> dict[str, Any]:
            return {"Quota": {"Value": 8.0}}

    answering(known.clients).services["service_quotas"] = Quotas()
    with pytest.raises(ClusterctlError, match="this account may have 8 of that family"):
        BY_NAME["vCPUs"].refuse(known)


@pytest.mark.parametrize(
    ("verb", "is_rehearsal", "is_refused"),
    [("up", False, True), ("up", True, False), ("extend", False, False)],
    ids=["on AWS", "rehearsed", "a cluster that runs"],
)
def test_logins_from_an_address_that_nobody_has_are_refused_before_nodes_are_made_on_aws(
    tmp_path: Path, verb: str, is_rehearsal: bool, is_refused: bool
) -> None:
    public = CLUSTER.replace("access: {mode: private}", "access: {mode: public, ssh_from: [203.0.113.7/32]}")
    assert public != CLUSTER
    situation = Situation(folder=tmp_path, verb=verb, file=f"{public}placement: none\n", is_rehearsal=is_rehearsal)
    if not is_refused:
        refuse_by(BY_NAME["plan"], situation)
        return
    with pytest.raises(ConfigError) as refused:
        refuse_by(BY_NAME["plan"], situation)
    assert "an example's address" in " ".join(refused.value.problems)


def test_the_page_in_docs_is_the_one_that_the_table_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == checks_page(), "scripts/docs writes it anew"


@pytest.mark.parametrize("verb", ["up", "extend", "replace", "down"])
def test_aws_is_asked_last_unless_the_row_says_why(verb: str) -> None:
    rows = [check for check in CHECKS if verb in check.verbs]
    cheaper = [place for place, check in enumerate(rows) if check.asks is not Asks.AWS]
    early = [check.name for check in rows[: max(cheaper)] if check.asks is Asks.AWS and check.why_early is None]
    assert early == []


@pytest.mark.parametrize("verb", ["up", "extend", "replace", "down"])
def test_no_row_waits_for_what_is_known_later_than_what_the_next_one_needs(verb: str) -> None:
    """Otherwise the row would run after the next one, and the page would be wrong."""
    stages = ["WithFolder", "WithEngine", "WithHold", "WithState", "WithIntent", "WithPlan", "WithPreview"]
    needed = [stages.index(check.needs.__name__) for check in CHECKS if verb in check.verbs]
    # Where a verb reads cluster.yaml and makes the plan at once, its checks run at once, in the table's order.
    at_once = {"WithState", "WithIntent", "WithPlan"}
    moments = [-1 if stages[stage] in at_once else stage for stage in needed]
    assert [stage for stage in moments if stage >= 0] == sorted(stage for stage in moments if stage >= 0)


def test_what_was_asked_before_is_not_asked_again(tmp_path: Path) -> None:
    """The plan's deadline has passed: only the checks of time refuse it a second time."""
    over = Situation(folder=tmp_path, now=DEADLINE + timedelta(hours=1)).known(WithPreview)
    run_checks("up", over, after=type(over))
    with pytest.raises(ClusterctlError, match="its run time was over"):
        run_checks("up", over)
    with pytest.raises(ClusterctlError, match="its run time was over"):
        run_checks_of_time("up", over)


@pytest.mark.parametrize("verb", ["up", "extend", "replace"])
def test_a_clock_that_is_ahead_is_told_before_a_cluster_is_called_ended(tmp_path: Path, verb: str) -> None:
    a_day_ahead = Situation(
        tmp_path, verb=verb, now=DEADLINE + timedelta(days=1), slot=1, sent_at="Sat, 21 Nov 2020 20:00:00 GMT"
    )
    with pytest.raises(ClusterctlError, match=r"clock is .* ahead of AWS's"):
        run_checks(a_day_ahead.verb, a_day_ahead.known(WithPreview))
