"""What an `up` means on a state: the ledger's copy, a new run after a down, the order of ranks, kept storage."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from clusterctl.cost.sighting import SeenMachine
from clusterctl.engine.extended_budget import extended
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import config_values, with_values
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.intent import for_up, for_zero_nodes, plan_of, without_extended_settings, without_own_values

from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER, intent_of, resource, state_of

SPAN = {
    "slot": 0,
    "instance_id": "i-0",
    "started_at": BORN.isoformat(),
    "ended_at": None,
    "price_usd_per_hour": 55.04,
}


LAUNCHED = StateResource(
    urn="u::i::0", type="aws:ec2/instance:Instance", id="i-0", inputs={"tags": {"clusterctl:slot": "0"}}
)


@pytest.mark.parametrize(
    ("capacity", "machines", "run"),
    [("spot", (), 2), ("on-demand", (), 1), ("spot", (LAUNCHED,), 1)],
    ids=["none came of it", "as decided", "some run: it is refused elsewhere"],
)
def test_where_no_machine_was_made_another_capacity_begins_another_run(
    stack: Stack, capacity: str, machines: tuple[StateResource, ...], run: int
) -> None:
    stack.cluster_file.write_text(f"{CLUSTER}capacity: {capacity}\n")
    found = state_of(*machines)
    identity = found.resources[0]
    launch = {"placement": "cluster", "capacity": "on-demand"}
    decided = replace(identity, outputs={**identity.outputs, "launch": launch})
    state = StackState(resources=(decided, *found.resources[1:]))
    assert for_up(intent_of(stack), state, {}).settings.run == run


def test_another_size_is_kept_in_the_stacks_config(stack: Stack) -> None:
    intent = intent_of(stack, nodes=6)
    assert intent.config.nodes == 6
    assert intent.changes == {"nodes": "6", "nodes-over": None}


def test_the_ledger_of_the_state_is_copied_for_the_plan(stack: Stack) -> None:
    membership = resource("clusterctl:index:Membership", ledger=[SPAN])
    intent = for_up(intent_of(stack), state_of(membership), {})
    assert json.loads(str(intent.changes["ledger"])) == [SPAN]
    assert [span.instance_id for span in intent.settings.ledger.spans] == ["i-0"]


def test_what_a_run_that_was_killed_did_not_write_is_in_the_plan_and_told_to_the_state(stack: Stack) -> None:
    membership = resource("clusterctl:index:Membership", ledger=[SPAN], generation=4)
    launched = BORN + timedelta(minutes=10)
    stray = SeenMachine(
        instance_id="i-1",
        slot=1,
        instance_type="p5.48xlarge",
        launched_at=launched,
        ended_at=None,
        alive_at=BORN + timedelta(hours=1),
        gone_at=None,
    )
    intent = for_up(intent_of(stack), state_of(membership), {"i-1": stray})
    assert [(span.instance_id, span.started_at) for span in intent.settings.ledger.spans] == [
        ("i-0", BORN),
        ("i-1", launched),
    ]
    correction = intent.settings.correction
    assert correction is not None
    assert (correction.generation, correction.spans) == (4, intent.settings.ledger.spans[1:])
    again = for_up(intent, state_of(membership), {})
    assert "corrected" not in config_values(again.config_text)


@pytest.mark.parametrize(
    ("kind", "is_spot", "price"),
    [("p5.48xlarge", False, 55.04), ("p5.48xlarge", True, 30), ("x9.huge", False, 12.5), (None, True, 30)],
    ids=["on demand", "spot, at most the cap", "a type without a price costs as the last", "spot of an unknown type"],
)
def test_a_machine_of_no_account_costs_what_its_own_kind_does(
    stack: Stack, kind: str | None, is_spot: bool, price: float
) -> None:
    stack.cluster_file.write_text(CLUSTER.replace("{runtime: 2h}", "{runtime: 2h, price_usd_per_hour: 30}"))
    membership = resource("clusterctl:index:Membership", ledger=[{**SPAN, "price_usd_per_hour": 12.5}], generation=4)
    stray = SeenMachine(
        instance_id="i-1",
        slot=1,
        instance_type=kind,
        launched_at=BORN,
        ended_at=None,
        alive_at=BORN + timedelta(hours=1),
        gone_at=None,
        is_spot=is_spot,
    )
    intent = for_up(intent_of(stack), state_of(membership), {"i-1": stray})
    assert [span.price_usd_per_hour for span in intent.settings.ledger.spans] == [12.5, price]


def test_without_a_membership_an_old_copy_of_a_ledger_does_not_count(stack: Stack) -> None:
    old = with_values("", {"ledger": json.dumps([SPAN])})
    assert for_up(intent_of(stack, old), StackState(), {}).settings.ledger.spans == ()


@pytest.mark.parametrize(
    ("config", "state", "run"),
    [
        ({}, StackState(), 1),
        ({"run": "3"}, StackState(), 1),
        ({}, state_of(), 1),
        ({"down": "true"}, state_of(), 2),
        ({"down": "true", "run": "2"}, state_of(run=2), 3),
        ({"run": "2"}, state_of(run=1), 2),  # the `up` after a down was killed before its Identity was updated
    ],
)
def test_each_up_after_a_down_is_a_new_run(stack: Stack, config: dict[str, str], state: StackState, run: int) -> None:
    intent = for_up(intent_of(stack, with_values("", dict(config))), state, {})
    assert intent.settings.run == run
    assert not intent.settings.down


@pytest.mark.parametrize(
    ("config", "state", "hours"),
    [
        ({}, state_of(), 7),
        ({}, StackState(), 2),
        ({"down": "true"}, state_of(), 2),
    ],
    ids=["the same run", "another cluster's", "a new run"],
)
def test_a_moved_end_holds_for_its_run_and_an_up_finishes_a_move_that_was_cut_off(
    stack: Stack, config: dict[str, str], state: StackState, hours: int
) -> None:
    until = (BORN + timedelta(hours=7)).isoformat()
    text = with_values("", {**config, "until": until, "extended-from": BORN.isoformat()})
    intent = for_up(intent_of(stack, text), state, {})
    assert plan_of(intent, state, now=BORN).deadline.at == BORN + timedelta(hours=hours)
    assert "extended-from" not in config_values(intent.config_text)


ORDERED = {"ranks": "topology", "slot-ranks": "[0,2,1,3]"}


@pytest.mark.parametrize(
    ("config", "state", "ranks"),
    [
        (ORDERED, state_of(), (0, 2, 1, 3)),
        (ORDERED, StackState(), ()),
        ({**ORDERED, "down": "true"}, state_of(), ()),
        ({**ORDERED, "ranks": "slot"}, state_of(), ()),
    ],
    ids=["the same run", "another cluster's", "a new run has other machines", "no order is wanted any more"],
)
def test_an_order_of_ranks_is_kept_while_its_machines_are(
    stack: Stack, config: dict[str, str], state: StackState, ranks: tuple[int, ...]
) -> None:
    intent = for_up(intent_of(stack, with_values("", dict(config))), state, {})
    assert intent.settings.slot_ranks == ranks
    assert [slot.rank for slot in plan_of(intent, state, now=BORN).slots] == list(ranks or range(4))


def test_a_resize_keeps_the_ranks_of_those_who_stay(stack: Stack) -> None:
    for nodes, ranks in ((6, [0, 2, 1, 3, 4, 5]), (3, [0, 2, 1])):
        intent = for_up(intent_of(stack, with_values("", dict(ORDERED)), nodes=nodes), state_of(), {})
        assert [slot.rank for slot in plan_of(intent, state_of(), now=BORN).slots] == ranks


def test_ranks_change_nothing_that_a_machine_is_made_of(stack: Stack) -> None:
    plain = plan_of(for_up(intent_of(stack), state_of(), {}), state_of(), now=BORN)
    ordered = plan_of(for_up(intent_of(stack, with_values("", dict(ORDERED))), state_of(), {}), state_of(), now=BORN)
    assert [slot.replacement_trigger for slot in ordered.slots] == [slot.replacement_trigger for slot in plain.slots]


def test_a_new_run_begins_now_and_the_same_run_began_at_birth(stack: Stack) -> None:
    now = BORN + timedelta(days=3)
    again = for_up(intent_of(stack, with_values("", {"down": "true"})), state_of(), {})
    assert plan_of(again, state_of(), now=now).deadline.at == now + timedelta(hours=2)
    same = for_up(intent_of(stack), state_of(), {})
    assert plan_of(same, state_of(), now=now).deadline.at == BORN + timedelta(hours=2)


def test_down_and_the_end_of_all_leave_only_what_a_person_wrote(stack: Stack) -> None:
    text = with_values("", {"nodes": "6", "ledger": "[]", "run": "2"})
    assert (
        config_values(with_values(text, for_zero_nodes(intent_of(stack, text), StackState(), {}).changes))["down"]
        == "true"
    )
    assert config_values(without_own_values(text)) == {"nodes": "6"}


@pytest.mark.parametrize("was", [None, "1000"])
def test_what_extend_agreed_to_is_not_what_a_cluster_made_anew_may_cost(stack: Stack, was: str | None) -> None:
    person = {"nodes": "6", **({} if was is None else {"budget_usd": was})}
    text = with_values("", {**person, **extended(person, 2500.0)})
    assert config_values(without_own_values(text)) == person
    assert intent_of(stack, text).config.caps.budget_usd == 2500
    anew = without_extended_settings(intent_of(stack, text), stack)
    assert anew.config.caps.budget_usd == (None if was is None else 1000)
    assert config_values(with_values(text, anew.changes)) == person, "as `up` writes it"


def test_without_nodes_only_the_storage_that_is_there_to_be_kept_is_meant(stack: Stack) -> None:
    """Left out: storage that is in the file and was never made, and storage that ends with the nodes."""
    stack.cluster_file.write_text(
        CLUSTER + "storage: [{mount: /a, efs: {}}, {mount: /b, efs: {}}, {mount: /c, efs: {on_delete: delete}}]\n"
    )
    rows = [
        StateResource(
            urn=f"u::{mount}",
            type="aws:efs/fileSystem:FileSystem",
            id=f"fs-{mount}",
            inputs={"tags": {"clusterctl:mount": mount, "clusterctl:on-delete": on_delete}},
        )
        for mount, on_delete in (("/a", "retain"), ("/c", "delete"))
    ]
    state = state_of(*rows)
    intent = for_zero_nodes(intent_of(stack), state, {})
    assert [row.mount for row in plan_of(intent, state, now=BORN).storage] == ["/a"]
    again = for_up(intent, state, {})
    assert [row.mount for row in plan_of(again, state, now=BORN).storage] == ["/a", "/b", "/c"]
    assert "kept" not in config_values(again.config_text)


def test_the_size_that_is_asked_for_now_replaces_what_an_earlier_flag_said_over_the_file(stack: Stack) -> None:
    text = with_values("", {"nodes": "6", "nodes-over": "2"})
    meant = intent_of(stack, text, nodes=3)
    assert (meant.config.nodes, meant.settings.nodes_over) == (3, None)
    assert meant.changes == {"nodes": "3", "nodes-over": None}
