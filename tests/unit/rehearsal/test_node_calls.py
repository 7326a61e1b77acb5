"""What a machine asks of AWS is allowed by its role's policies, or refused with AWS's code."""

from __future__ import annotations

import json

import pytest
from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.api.node_calls import START, NodeCalls
from clusterctl_rehearsal.region.metadata import metadata_text
from clusterctl_rehearsal.region.node_role import role_of
from clusterctl_rehearsal.region.types.deadline import STATE_MACHINE
from clusterctl_rehearsal.region.types.identity import INSTANCE_PROFILE, ROLE, ROLE_POLICY

from tests.unit.rehearsal.guarded_cluster import guarded
from tests.unit.rehearsal.small_region import SmallRegion

SCOPE = "AWS4-HMAC-SHA256 Credential=rehearsal/20261121/us-west-2/states/aws4_request, SignedHeaders=host, Signature=0"


def asked(world: SmallRegion, target: str = START, **policy: str) -> tuple[int, str]:
    """Status and body of the answer to a node whose role has a policy with this Action and Resource."""
    machine = guarded(world)
    trust = json.dumps({"Statement": [{"Effect": "Allow", "Principal": {"Service": ["ec2.amazonaws.com"]}}]})
    world.make(ROLE, name="nodes", assumeRolePolicy=trust)
    world.make(INSTANCE_PROFILE, name="nodes", role="nodes")
    if policy:
        statement = {"Effect": "Allow", "Resource": machine.id, **policy}
        world.make(ROLE_POLICY, name="early-end", role="nodes", policy=json.dumps({"Statement": [statement]}))
    node = world.node(0, iamInstanceProfile={"name": "nodes"})
    assert role_of(world.store, node) is not None
    api = Api(region=world.region, before=lambda: None, executions=world.executions, buckets=world.buckets)
    body = json.dumps({"stateMachineArn": machine.id, "name": "idle-x", "input": '{"WaitSeconds": 1}'}).encode()
    headers = {"X-Amz-Target": target, "Authorization": SCOPE}
    reply = NodeCalls(api=api, store=world.store).answer(node, headers, body)
    return reply.status, reply.body.decode()


def test_a_node_whose_role_may_starts_the_state_machine(world: SmallRegion) -> None:
    status, body = asked(world, Action="states:StartExecution")
    assert status == 200
    assert json.loads(body)["executionArn"].endswith(":idle-x")
    (machine,) = world.store.live(STATE_MACHINE)
    assert len(world.executions.of_machine(machine.id)) == 1


REFUSED: dict[str, tuple[str, dict[str, str]]] = {
    "it has no policy": (START, {}),
    "its policy is for another machine": (START, {"Action": "states:StartExecution", "Resource": "arn:x"}),
    "its policy allows something else": (START, {"Action": "states:StopExecution"}),
    "it asks for something else": ("AWSStepFunctions.DeleteStateMachine", {"Action": "states:StartExecution"}),
}


@pytest.mark.parametrize(("target", "policy"), REFUSED.values(), ids=REFUSED.keys())
def test_a_node_is_refused_otherwise(world: SmallRegion, target: str, policy: dict[str, str]) -> None:
    status, body = asked(world, target, **policy)
    assert status == 400
    assert "AccessDeniedException" in body


def test_a_node_whose_profile_has_no_role_has_none(world: SmallRegion) -> None:
    world.make(INSTANCE_PROFILE, name="empty")
    node = world.node(0, iamInstanceProfile={"name": "empty"})
    assert role_of(world.store, node) is None
    assert metadata_text(node, "iam/security-credentials/", None) is None
