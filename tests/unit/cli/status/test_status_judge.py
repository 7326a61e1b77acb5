"""The state of each node: what AWS and the node itself say together."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING  # an inventory's facts

import pytest
from clusterctl.cloud.instances import InstanceState
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.results import NodeResult
from clusterctl.status.facts import Facts
from clusterctl.status.judge import NodeStatus, judge
from clusterctl.status.node_answers import answer_of
from clusterctl.status.node_report import NodeCheck, NodeReport, SpotNotice, parse_report
from clusterctl.status.overview import overview
from clusterctl.status.view import status_json, status_text
from clusterctl_infra.ledger import Ledger

from tests.unit.cli.status.status_facts import BEGAN, NOW, READY, SILENT, machine, span

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def judged(make_inventory: MakeInventory, facts: Facts) -> NodeStatus:
    return judge(make_inventory(size=1), facts)[0]


@pytest.mark.parametrize(
    ("instances", "answer", "state"),
    [
        ((machine(),), READY, "ready"),
        ((machine(),), NodeReport(phase="network", generation=0), "booting"),
        ((machine(),), NodeReport(phase="failed", generation=0, failed_phase="network", message="no lease"), "failed"),
        ((machine(),), SILENT, "unreachable"),
        ((machine(age_s=60),), SILENT, "booting"),
        ((machine(age_s=60),), NodeFailure("host-key", "another key"), "unreachable"),
        ((machine(age_s=60),), NodeFailure("timeout", "says nothing", phase="greeting"), "unreachable"),
        ((machine(state="pending"),), SILENT, "booting"),
        ((machine(state="stopped"),), SILENT, "stopped"),
        ((machine(state="terminated"),), SILENT, "terminated"),
        ((machine(state="shutting-down"),), READY, "terminated"),
        ((), SILENT, "missing"),
        (None, READY, "ready"),
        (None, SILENT, "unknown"),
        (None, None, "unknown"),
        ((machine(),), None, "unknown"),
    ],
)
def test_a_nodes_state_is_what_aws_and_the_node_say_together(
    make_inventory: MakeInventory,
    instances: tuple[InstanceState, ...] | None,
    answer: NodeReport | NodeFailure | None,
    state: str,
) -> None:
    answers = {} if answer is None else {0: answer}
    assert judged(make_inventory, Facts(now=NOW, instances=instances, answers=answers)).state == state


def test_a_terminated_machine_has_awss_reason(make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(machine(state="terminated"),))
    assert judged(make_inventory, facts).note == "Server.SpotInstanceTermination"


def test_a_failed_node_says_where_and_what(make_inventory: MakeInventory) -> None:
    report = NodeReport(phase="failed", generation=3, failed_phase="network", message="no lease")
    node = judged(make_inventory, Facts(now=NOW, instances=(machine(),), answers={0: report}))
    assert (node.phase, node.note) == ("network", "no lease")


def test_a_node_with_another_host_key_says_what_helps(make_inventory: MakeInventory) -> None:
    changed = NodeFailure("host-key", "shows another key", phase="key exchange")
    node = judged(make_inventory, Facts(now=NOW, instances=(machine(),), answers={0: changed}))
    assert (node.state, node.note) == (
        "unreachable",
        "shows another key; next: clusterctl replace --node 0 --cluster train",
    )


def test_a_node_with_an_old_generation_is_named(make_inventory: MakeInventory) -> None:
    report = NodeReport(phase="ready", generation=2)
    node = judged(make_inventory, Facts(now=NOW, instances=(machine(),), answers={0: report}))
    assert node.note == "not yet told about the current list of nodes"


INTERFACES = NodeCheck(name="EFA interfaces", verdict="failed", detail="31 of 32")
PAGES = NodeCheck(name="huge pages", verdict="ok", detail="5128")


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("interruption", "AWS takes it back at 11:14 UTC (spot)"),
        ("rebalance", "AWS may take it back soon (spot; it said so at 11:14 UTC)"),
    ],
)
def test_a_spot_machine_that_aws_wants_back_is_marked_on_the_screen_and_in_the_json(
    make_inventory: MakeInventory, kind: str, note: str
) -> None:
    notice = SpotNotice(kind=kind, time=NOW + timedelta(minutes=2), at=NOW)
    report = dataclasses.replace(READY, generation=make_inventory().generation, notice=notice)
    facts = Facts(now=NOW, instances=(machine(),), answers={0: report})
    node = judged(make_inventory, facts)
    assert (node.state, node.note) == ("ready", note)
    shown = json.loads(json.dumps(status_json(overview(make_inventory(size=1), facts))))
    assert shown["nodes"][0]["notice"] == {
        "kind": kind,
        "time": "2026-11-21T11:14:00+00:00",
        "at": "2026-11-21T11:12:00+00:00",
    }


def test_a_check_that_failed_is_noted_and_all_of_them_are_in_the_json(make_inventory: MakeInventory) -> None:
    report = NodeReport(phase="ready", generation=3, checks=(INTERFACES, PAGES))
    facts = Facts(now=NOW, instances=(machine(),), answers={0: report})
    assert judged(make_inventory, facts).note == "EFA interfaces: 31 of 32"
    shown = json.loads(json.dumps(status_json(overview(make_inventory(size=1), facts))))
    assert [check["verdict"] for check in shown["nodes"][0]["checks"]] == ["failed", "ok"]


def test_a_failing_part_of_a_nodes_watch_is_noted(make_inventory: MakeInventory) -> None:
    report = parse_report(json.dumps({"phase": "ready", "generation": 3, "watch": {"idle": "OSError: full"}}))
    assert report is not None
    facts = Facts(now=NOW, instances=(machine(),), answers={0: report})
    assert judged(make_inventory, facts).note == "its watch fails: idle: OSError: full"
    assert parse_report(json.dumps({"phase": "ready", "watch": None})) == NodeReport(phase="ready", generation=0)


def test_the_jobs_of_a_node_are_noted_and_in_the_json(make_inventory: MakeInventory) -> None:
    printed = b'{"phase": "ready", "generation": 3}\njob train-1123\n'
    answer = answer_of(
        NodeResult(
            slot=0, name="train-0", exit_code=0, signal=None, failure=None, stdout=printed, stderr=b"", duration_s=0.1
        )
    )
    facts = Facts(now=NOW, instances=(machine(),), answers={0: answer})
    node = judged(make_inventory, facts)
    assert (node.state, node.note) == ("ready", "job train-1123")
    shown = json.loads(json.dumps(status_json(overview(make_inventory(size=1), facts))))
    assert shown["nodes"][0]["jobs"] == ["train-1123"]


def test_a_node_that_failed_for_a_check_says_it_once(make_inventory: MakeInventory) -> None:
    message = "fabric: required, but EFA interfaces: 31 of 32: dmesg | grep efa"
    report = NodeReport(phase="failed", generation=3, failed_phase="fabric", message=message, checks=(INTERFACES,))
    assert judged(make_inventory, Facts(now=NOW, instances=(machine(),), answers={0: report})).note == message


def test_a_node_that_is_not_heard_has_no_checks(make_inventory: MakeInventory) -> None:
    assert judged(make_inventory, Facts(now=NOW, instances=(machine(),), answers={0: SILENT})).checks is None


def test_a_newer_machine_in_the_slot_is_the_one_that_counts(make_inventory: MakeInventory) -> None:
    newer = machine(id="i-new", age_s=30)
    facts = Facts(now=NOW, instances=(machine(state="terminated"), newer), answers={0: READY})
    node = judged(make_inventory, facts)
    assert (node.state, node.instance_id) == ("ready", "i-new")


def test_a_second_living_machine_of_a_slot_is_a_stray(make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(machine(), machine(id="i-twin")), answers={0: READY})
    seen = overview(make_inventory(size=1), facts)
    assert [row.instance_id for row in seen.strays] == ["i-twin"]
    assert "machines that are in no slot of the cluster: i-twin" in status_text(seen)


def test_a_replaced_node_says_when_and_what_it_was(make_inventory: MakeInventory) -> None:
    ended = NOW - timedelta(minutes=12)
    ledger = Ledger(spans=(span(0, "i-old", BEGAN, ended), span(0, "i-0", ended, None)))
    node = judged(make_inventory, Facts(now=NOW, instances=(machine(),), answers={0: READY}, ledger=ledger))
    assert node.note == "replaced 12 m ago (was i-old)"


def test_what_a_machine_takes_on_when_it_is_replaced_is_noted(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=1, birth="agent=a2 imds=root packages=p2")
    born = dataclasses.replace(machine(), birth="agent=a1 imds=root packages=p1")
    facts = Facts(now=NOW, instances=(born,), answers={0: READY})
    note = "a newer agent and packages: take effect when a node is replaced"
    assert judge(inventory, facts)[0].note == note
    newest = dataclasses.replace(machine(), birth=inventory.birth)
    assert judge(inventory, dataclasses.replace(facts, instances=(newest,)))[0].note is None


HERE, OTHER = datetime(2026, 11, 21, 22, 0, tzinfo=UTC), datetime(2026, 11, 21, 23, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("contents", "deadlines", "split"),
    [
        (("a", "a", "a"), (HERE, HERE, HERE), ()),
        (("a", "b", "a"), (HERE, HERE, HERE), (1,)),
        (("b", "a", "a"), (HERE, HERE, HERE), (0,)),
        (("a", "b", None), (HERE, HERE, None), (1,)),
        ((None, None, None), (None, None, None), ()),
        (("a", "a", "a"), (OTHER, OTHER, OTHER), (0, 1, 2)),
    ],
)
def test_memberships_of_one_number_with_other_content_are_a_split(
    contents: tuple[str | None, ...],
    deadlines: tuple[datetime | None, ...],
    split: tuple[int, ...],
    make_inventory: MakeInventory,
) -> None:
    inventory = make_inventory(size=3)
    assert datetime.fromisoformat(inventory.deadline) == HERE
    answers = {
        slot: dataclasses.replace(READY, membership=content, deadline=at)
        for slot, (content, at) in enumerate(zip(contents, deadlines, strict=True))
    }
    facts = Facts(now=NOW, instances=tuple(machine(slot) for slot in range(3)), answers=answers)
    assert tuple(node.slot for node in judge(inventory, facts) if node.is_split) == split


def test_a_node_of_another_number_is_ahead_or_behind_and_no_split(make_inventory: MakeInventory) -> None:
    answers = {
        slot: dataclasses.replace(READY, generation=number, membership=str(number))
        for slot, number in enumerate((3, 4, 2))
    }
    facts = Facts(now=NOW, instances=tuple(machine(slot) for slot in range(3)), answers=answers)
    flags = [(node.is_ahead, node.is_behind, node.is_split) for node in judge(make_inventory(size=3), facts)]
    assert flags == [(False, False, False), (True, False, False), (False, True, False)]
