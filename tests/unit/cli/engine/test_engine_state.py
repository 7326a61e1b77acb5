"""What an exported state says: who the cluster is, which instance is in which slot, what was under way."""

from __future__ import annotations

import json

from clusterctl.engine.state import INSTANCE_TYPE, RESERVATION_TYPE, identity_in, ledger_in, parse_state
from clusterctl.lifecycle.replace import slot_targets
from clusterctl_infra.names import SLOT_TAG

PREFIX = "urn:pulumi:dev::p::"


def resource(type: str, name: str, id: str, **more: object) -> dict[str, object]:
    return {"urn": f"{PREFIX}{type}::{name}", "type": type, "custom": True, "id": id, **more}


IDENTITY = {
    "name": "train",
    "cluster_id": "0123456789ab",
    "started_at": "2026-11-21T10:00:00+00:00",
    "owner": "ada",
    "image_id": "ami-0123456789abcdef0",
    "zone": "us-west-2b",
    "run": 2,
    "seed": {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"},
}
SPAN = {
    "slot": 0,
    "instance_id": "i-0",
    "started_at": "2026-11-21T10:00:00+00:00",
    "ended_at": None,
    "price_usd_per_hour": 55.04,
}
ROWS = [
    {"urn": f"{PREFIX}pulumi:pulumi:Stack::p-dev", "type": "pulumi:pulumi:Stack", "custom": False},
    resource("pulumi:providers:aws", "default", "abc"),
    resource("clusterctl:index:Identity", "train-identity", "0123456789ab", outputs=IDENTITY),
    resource("aws:ec2/launchTemplate:LaunchTemplate", "train-1", "lt-1"),
    resource("aws:ec2/launchTemplate:LaunchTemplate", "train-0", "lt-0"),
    resource(
        "aws:ec2/instance:Instance",
        "train-1",
        "i-1",
        inputs={"tags": {"clusterctl:slot": "1"}, "launchTemplate": {"id": "lt-1"}},
    ),
    resource(
        "aws:ec2/instance:Instance",
        "train-0",
        "i-0",
        inputs={"tags": {"clusterctl:slot": "0"}, "launchTemplate": {"id": "lt-0"}},
    ),
    resource(
        "aws:ec2/eip:Eip",
        "train-1",
        "eipalloc-1",
        inputs={"networkInterface": "eni-1", "tags": {"clusterctl:slot": "1"}},
    ),
    resource(
        "aws:ec2/route:Route",
        "out",
        "r-rtb-11080289494",
        inputs={"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0"},
    ),
    resource("clusterctl:index:Membership", "train-membership", "0123456789ab", outputs={"ledger": [SPAN]}),
]
PENDING = [{"type": "creating", "resource": {"urn": f"{PREFIX}x::y", "type": "x"}}]
STATE = parse_state(json.dumps({"version": 3, "deployment": {"resources": ROWS, "pending_operations": PENDING}}))


def test_a_stack_that_was_never_run_is_empty() -> None:
    state = parse_state('{"version": 3, "deployment": {}}')
    assert state.is_empty
    assert state.cluster_id is None
    assert state.instances == ()
    assert identity_in(state, region="us-west-2") is None
    assert ledger_in(state) is None


def test_providers_and_the_stack_are_not_counted_as_made() -> None:
    assert parse_state(json.dumps({"deployment": {"resources": ROWS[:2]}})).is_empty
    assert not STATE.is_empty


def test_instances_are_told_by_their_slot_tag_in_order() -> None:
    assert [(instance.slot, instance.instance_id) for instance in STATE.instances] == [(0, "i-0"), (1, "i-1")]


def test_the_identity_is_read_without_its_secret() -> None:
    identity = identity_in(STATE, region="us-west-2")
    assert identity is not None
    assert (identity.cluster_id, identity.run, identity.owner) == ("0123456789ab", 2, "ada")
    assert len(identity.seed) == 32
    assert b"v1:x" not in identity.seed


def test_the_ledger_comes_from_the_membership() -> None:
    ledger = ledger_in(STATE)
    assert ledger is not None
    assert [span.instance_id for span in ledger.spans] == ["i-0"]


def test_pending_operations_are_named() -> None:
    assert [(operation.kind, operation.type) for operation in STATE.pending] == [("creating", "x")]


def test_a_route_is_known_by_its_table_and_destination() -> None:
    assert "rtb-1/0.0.0.0/0" in STATE.physical_ids["aws:ec2/route:Route"]


def test_what_is_known_is_known_by_type() -> None:
    assert STATE.physical_ids["aws:ec2/eip:Eip"] == {"eipalloc-1"}
    assert "pulumi:providers:aws" not in STATE.physical_ids


def test_a_replacement_touches_the_slots_own_resources_alone() -> None:
    names = {urn.split("::", 2)[2] for urn in slot_targets(STATE, 1, shown="stacks/train")}
    assert names == {
        "aws:ec2/instance:Instance::train-1",
        "aws:ec2/launchTemplate:LaunchTemplate::train-1",
        "aws:ec2/eip:Eip::train-1",
        "clusterctl:index:Identity::train-identity",
        "clusterctl:index:Membership::train-membership",
    }


def test_what_was_replaced_and_is_still_there_is_told_from_what_took_its_place() -> None:
    """After a run that made the new one and did not come to the end of the old one, both have one URN."""
    rows = [{"urn": "u", "id": id, "type": RESERVATION_TYPE, "custom": True} for id in ("cr-2", "cr-1")]
    state = parse_state(json.dumps({"deployment": {"resources": [rows[0], {**rows[1], "delete": True}]}}))
    assert [(resource.id, resource.is_replaced) for resource in state.resources] == [("cr-2", False), ("cr-1", True)]


def test_a_machine_that_was_ended_to_be_made_anew_and_was_not_does_not_run() -> None:
    """Its row stays, with the old id, until the next run makes the one in its place."""
    rows = [
        {
            "urn": f"u{slot}",
            "id": f"i-{slot}",
            "type": INSTANCE_TYPE,
            "custom": True,
            "inputs": {"tags": {SLOT_TAG: str(slot)}},
            "outputs": {"instanceType": "p5.48xlarge"},
            "pendingReplacement": slot == 1,
        }
        for slot in range(2)
    ]
    inputs = {"instanceType": "p5.48xlarge", "instanceCount": 2}
    reservation = {"urn": "r", "id": "cr-1", "type": RESERVATION_TYPE, "custom": True, "inputs": inputs}
    state = parse_state(json.dumps({"deployment": {"resources": [*rows, reservation]}}))
    assert [instance.slot for instance in state.instances] == [0, 1]
    assert [machine.slot for machine in state.machines] == [0]
    assert state.empty_places == 1
