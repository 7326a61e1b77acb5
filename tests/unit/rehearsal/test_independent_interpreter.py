"""The machine that ends a cluster, run by an interpreter of Amazon States Language that is not ours: moto's.

It asks the region's EC2 through boto3. Its waits take real time, so the definition's are set to zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any  # definitions are JSON, and moto has no types

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.session import Session
from clusterctl_infra.plan.ending_machine import DRY_RUN_INPUT, SCHEDULE_INPUT, ending_definition
from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.types.network import INSTANCE
from clusterctl_rehearsal.states.failure import TaskFailed
from clusterctl_rehearsal.states.interpreter import Execution
from moto import mock_aws
from moto.core.models import botocore_stubber
from moto.stepfunctions.parser.utils import TMP_THREADS

from tests.unit.rehearsal.api_client import SESSION
from tests.unit.rehearsal.guarded_cluster import region_ec2
from tests.unit.rehearsal.many_machines import UNSURE_INPUT
from tests.unit.rehearsal.small_region import CLUSTER_ID, EVERYTHING, REGION, TAGS, SmallRegion

ROLE = "arn:aws:iam::123456789012:role/guard"
RUNS: Any = {"stepfunctions": {"execute_state_machine": True}}
ENDED_WITHIN_S = 60.0


def without_waits(value: Any) -> Any:
    """The definition with waits of 0 s and retries after 1 s; all else stays."""
    if isinstance(value, dict):
        short = {"Seconds": 0} if value.get("Type") == "Wait" else {}
        kept = {key: without_waits(item) for key, item in value.items() if not (short and key == "SecondsPath")}
        return {**kept, **short, **({"IntervalSeconds": 1} if "IntervalSeconds" in value else {})}
    return [without_waits(item) for item in value] if isinstance(value, list) else value


def by_moto(world: SmallRegion, given: str) -> tuple[str, Any, list[str]]:
    """The status, the output, and what was asked of the region's EC2, in this order."""
    asked: list[str] = []
    api = Api(region=world.region, before=lambda: None, executions=world.executions, buckets=world.buckets)

    def answered(request: Any, event_name: str, **_: object) -> AWSResponse:
        asked.append(event_name.rpartition(".")[2])
        headers = {key: value.decode() if isinstance(value, bytes) else value for key, value in request.headers.items()}
        reply = api.answer(headers, request.body if isinstance(request.body, bytes) else request.body.encode())
        finish_ends(world)
        raw = BytesIO(reply.body)
        raw.stream = lambda **_: iter([reply.body])  # type: ignore[attr-defined]
        return AWSResponse(request.url, reply.status, HTTPHeaders(), raw)

    with mock_aws(config=RUNS):
        client = boto3.client("stepfunctions", region_name=REGION)
        session: Any = Session()  # its types want a handler of keywords alone
        session.register_component("data_loader", SESSION.get_component("data_loader"))  # which has read EC2's model
        session.unregister("before-send", botocore_stubber)  # moto's own EC2
        session.register("before-send.ec2", answered)
        boto3.setup_default_session(botocore_session=session)
        definition = json.dumps(without_waits(ending_definition(CLUSTER_ID)))
        machine = client.create_state_machine(name="guard", definition=definition, roleArn=ROLE)["stateMachineArn"]
        run = client.start_execution(stateMachineArn=machine, input=given)["executionArn"]
        for thread in list(TMP_THREADS):
            thread.join(ENDED_WITHIN_S)
        row = client.describe_execution(executionArn=run)
        return row["status"], json.loads(row.get("output") or "null"), asked


def by_ours(world: SmallRegion, given: str) -> tuple[str, Any, list[str]]:
    """How a run under our own interpreter ended, its output, and the calls that it made."""
    asked: list[str] = []
    ec2 = region_ec2(world)

    def call(action: str, parameters: Any) -> Any:
        asked.append(action[0].upper() + action[1:])
        answer = ec2(action, parameters)
        finish_ends(world)
        return answer

    run = Execution(
        definition=without_waits(ending_definition(CLUSTER_ID)),
        call=call,
        pause=lambda _: None,
        clock=lambda: world.now,
    )
    try:
        return "SUCCEEDED", run.run(json.loads(given)), asked
    except TaskFailed:
        return "FAILED", None, asked


def finish_ends(world: SmallRegion) -> None:
    """Ends the machines that shut down, as a thread of the region would while the definition asks again."""
    for row in list(world.store.live(INSTANCE)):
        if row.state == "shutting-down":
            world.instances.finish(row)


def cluster(world: SmallRegion) -> None:
    """Two nodes, one of them in slot 0, a reservation, a machine of somebody else's."""
    _, subnet, group = world.network()
    for slot in range(2):
        world.launch(world.template(subnet, group, slot))
    own = [{"resourceType": "instance", "tags": {"clusterctl:id": "another"}}]
    world.launch(world.template(subnet, group, 2, name="another", tagSpecifications=own))
    world.make(CAPACITY_RESERVATION, **EVERYTHING[CAPACITY_RESERVATION], tags=TAGS)


def without_slot_0(world: SmallRegion) -> None:
    cluster(world)
    zero = next(row for row in world.store.live(INSTANCE) if row.tags.get("clusterctl:slot") == "0")
    world.store.put(zero.changed(state="terminated"))


CASES = {
    "a dry run": (cluster, DRY_RUN_INPUT, 3),
    "the deadline": (cluster, SCHEDULE_INPUT, 1),
    "who is not sure, and slot 0 is gone": (without_slot_0, UNSURE_INPUT, 1),
}


@pytest.mark.timeout(150)  # retries wait whole seconds; a busy machine takes several times as long
@pytest.mark.parametrize(("make", "given", "left"), CASES.values(), ids=CASES)
def test_moto_runs_the_definition_as_our_own_interpreter_does(
    world: SmallRegion, tmp_path: Any, make: Callable[[SmallRegion], None], given: str, left: int
) -> None:
    other = SmallRegion(tmp_path / "other")
    make(world)
    make(other)
    status, output, asked = by_moto(world, given)
    own_status, own_output, own_asked = by_ours(other, given)
    assert asked
    assert (status, sorted(asked)) == (own_status, sorted(own_asked))
    assert (len(list(world.store.live(INSTANCE))), len(list(other.store.live(INSTANCE)))) == (left, left)
    assert shape(output) == shape(own_output)


def shape(value: Any) -> Any:
    """The output without the ids that each region makes up."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "an id" if isinstance(value, str) and value.partition("-")[0] in ("i", "cr") else type(value).__name__
