"""The screen of `status`: cost, end, and what is out of the ordinary with the command that goes on."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any  # an inventory's facts

import pytest
from clusterctl.cloud.alarms import Alarm
from clusterctl.cloud.early_end import REAPED, EarlyEnd
from clusterctl.cloud.instances import InstanceState
from clusterctl.status.facts import Facts
from clusterctl.status.ledger import ledger_of, spent_usd
from clusterctl.status.node_report import NodeReport
from clusterctl.status.overview import overview
from clusterctl.status.unfinished import HalfExtend, Unfinished
from clusterctl.status.view import headline, status_json, status_text
from clusterctl_infra.ledger import Ledger, Standing, ledger_to_json

from tests.unit.cli.status.status_facts import BEGAN, NOW, READY, SILENT, machine, span

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory


def test_the_cost_is_every_span_and_what_runs_beside_the_machines(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=2, usd_per_hour=101.0)
    half = BEGAN + timedelta(minutes=30)
    beside = Standing(kind="storage", started_at=BEGAN, ended_at=None, usd_per_hour=1.0)
    ledger = Ledger(
        spans=(span(0, "a", BEGAN, None), span(1, "b", BEGAN, half), span(1, "c", half, None)), standing=(beside,)
    )
    now = BEGAN + timedelta(hours=2)
    assert spent_usd(inventory, ledger, alive=None, now=now) == pytest.approx(100 + 25 + 75 + 2)


def test_an_unknown_price_makes_the_cost_unknown(make_inventory: MakeInventory) -> None:
    ledger = Ledger(spans=(span(0, "a", BEGAN, None, None),))
    assert spent_usd(make_inventory(), ledger, alive=None, now=NOW) is None
    assert spent_usd(make_inventory(usd_per_hour=None), None, alive=None, now=NOW) is None


def test_without_a_ledger_the_cost_is_time_times_rate(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(usd_per_hour=100.0)
    assert spent_usd(inventory, None, alive=None, now=BEGAN + timedelta(hours=3)) == pytest.approx(300)


def test_the_ledger_is_read_from_what_each_change_opened_and_closed() -> None:
    opened, closed = span(0, "a", BEGAN, None), span(0, "a", BEGAN, NOW)
    stands = Standing(kind="storage", started_at=BEGAN, ended_at=None, usd_per_hour=1.38)
    over = dataclasses.replace(stands, ended_at=NOW)
    rows = [
        {"opened": ledger_to_json(Ledger(spans=(opened,), standing=(stands,))), "closed": []},
        {"opened": [], "closed": ledger_to_json(Ledger(spans=(closed,), standing=(over,)))},
    ]
    assert ledger_of(rows) == Ledger(spans=(closed,), standing=(over,))


def test_the_headline_has_count_time_cost_and_end(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=2, usd_per_hour=100.0, budget_usd=1000.0, deadline_reason="budget")
    facts = Facts(now=NOW, instances=(machine(0), machine(1)), answers={0: READY, 1: READY})
    assert headline(overview(inventory, facts)) == (
        "train · 2/2 ready · up 1 h 12 m · about $120.00 of $1000.00 · ends 22:00 UTC (in 10 h 48 m: budget)"
    )


def test_a_node_whose_boot_failed_is_helped_by_replacing_it(make_inventory: MakeInventory) -> None:
    failed = NodeReport(phase="failed", generation=3, failed_phase="network", message="no lease")
    facts = Facts(now=NOW, instances=(machine(0), machine(1)), answers={0: READY, 1: failed})
    text = status_text(overview(make_inventory(size=2), facts))
    assert "1 node failed; next: clusterctl replace --node 1 --cluster train" in text
    behind = dataclasses.replace(failed, generation=0)
    text = status_text(overview(make_inventory(size=2), dataclasses.replace(facts, answers={0: READY, 1: behind})))
    assert "list of nodes" not in text


def test_nodes_without_the_newest_membership_are_helped_by_an_up_of_their_stack(make_inventory: MakeInventory) -> None:
    behind = NodeReport(phase="ready", generation=2)
    facts = Facts(now=NOW, instances=(machine(0), machine(1)), answers={0: READY, 1: behind})
    text = status_text(overview(make_inventory(size=2, stack_dir="/s/train"), facts))
    assert "1 node has not been told the current list of nodes; next: clusterctl up /s/train" in text


def test_a_node_that_is_ahead_is_named_in_both_outputs(make_inventory: MakeInventory) -> None:
    ahead = NodeReport(phase="ready", generation=5)
    facts = Facts(now=NOW, instances=(machine(0), machine(1)), answers={0: READY, 1: ahead})
    seen = overview(make_inventory(size=2, stack_dir="/s/train"), facts)
    line = "train-1: the membership there is newer than what this computer knows: an older state was put back"
    assert line in status_text(seen)
    nodes = status_json(seen)["nodes"]
    assert isinstance(nodes, list)
    assert [node["membership"] for node in nodes] == [None, "ahead"]


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (Unfinished(verb="replace", pid=77), "clusterctl replace is changing it now (pid 77)"),
        (
            Unfinished(verb="replace", pid=None),
            "the last replace was interrupted; next: clusterctl up /s/train",
        ),
        (Unfinished(verb="down", pid=None), "the last down was interrupted; next: clusterctl down --cluster"),
    ],
)
def test_a_run_under_way_or_cut_off_is_named(run: Unfinished, line: str, make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(machine(0),), answers={0: READY}, unfinished=run)
    assert line in status_text(overview(make_inventory(size=1, stack_dir="/s/train"), facts))


def test_after_the_deadline_the_screen_says_so_and_the_cost_stands_still(make_inventory: MakeInventory) -> None:
    late = BEGAN + timedelta(hours=13)
    facts = Facts(now=late, instances=(machine(0, "terminated"),))
    seen = overview(make_inventory(size=1, usd_per_hour=10.0), facts)
    text = status_text(seen)
    assert "about $120.00 · ended 22:00 UTC (1 h ago: runtime)" in text
    assert "ended at its deadline; next: clusterctl down" in text


@pytest.mark.parametrize(
    ("rates", "line"),
    [
        (
            {"gateway_usd_per_hour": 0.045, "addresses_usd_per_hour": 0.005},
            "ended at its deadline, and still costs $0.05 an hour: addresses, ga",
        ),
        (
            {"storage_usd_per_hour": 1.38},
            "ended at its deadline, and still costs $1.38 an hour: storage; next: clusterctl down",
        ),
        ({"storage_usd_per_hour": None}, "ended at its deadline, and still costs unknown an hour: storage"),
        ({"storage_usd_per_hour": 1.38, "prices_dated": None}, "ended at its deadline; next:"),
        ({"addresses_usd_per_hour": 0.01, "addresses_go_with_machines": True}, "ended at its deadline; next:"),
        ({"disks_usd_per_hour": 0.02}, "ended at its deadline; next:"),
    ],
)
def test_after_the_deadline_what_bills_on_is_named_with_its_price(
    make_inventory: MakeInventory, rates: dict[str, Any], line: str
) -> None:
    facts = Facts(now=BEGAN + timedelta(hours=13), instances=(machine(0, "terminated"),))
    nothing = dict.fromkeys(("disks", "addresses", "gateway", "storage"), 0.0)
    fields = {**{f"{kind}_usd_per_hour": rate for kind, rate in nothing.items()}, "prices_dated": "2026-11", **rates}
    assert line in status_text(overview(make_inventory(size=1, **fields), facts))


def test_machines_that_are_gone_with_their_places_bill_nothing_and_both_ways_on_are_named(
    make_inventory: MakeInventory,
) -> None:
    gone = (machine(0, "terminated"), machine(1, "terminated"))
    text = status_text(overview(make_inventory(size=2), Facts(now=NOW, instances=gone, is_reserved=False)))
    assert "2 machines gone, and nothing is reserved or bills for them; next: clusterctl up" in text
    assert "or clusterctl down --cluster train" in text
    reserved = status_text(overview(make_inventory(size=2), Facts(now=NOW, instances=gone, is_reserved=True)))
    assert "2 machines gone; `up` makes them anew, same name and address; next: clusterctl up" in reserved
    assert "nothing is reserved" not in reserved


@pytest.mark.parametrize(
    ("made", "is_under_way", "shown", "hidden"),
    [
        ((), False, "2 machines not made; next: clusterctl up", "gone"),
        ((machine(0),), False, "1 machine not made; next: clusterctl up", "gone"),
        ((machine(0, "terminated"),), False, "1 machine gone, 1 not made; `up` makes it anew", "2 machines"),
        ((machine(0),), True, "clusterctl up is changing it now", "not made"),
    ],
)
def test_slots_that_a_killed_up_did_not_fill_are_not_called_gone(
    make_inventory: MakeInventory, made: tuple[InstanceState, ...], is_under_way: bool, shown: str, hidden: str
) -> None:
    whole = make_inventory(size=2)
    unmade = tuple(dataclasses.replace(node, instance_id=None) for node in whole.nodes)
    born = dataclasses.replace(whole, nodes=unmade)
    run = Unfinished(verb="up", pid=7 if is_under_way else None)
    text = status_text(overview(born, Facts(now=NOW, instances=made, unfinished=run)))
    assert shown in text
    assert hidden not in text


def test_of_a_cluster_that_was_reaped_down_is_the_only_way_on(make_inventory: MakeInventory) -> None:
    end = EarlyEnd(reason=REAPED, since=None, at=NOW - timedelta(minutes=12))
    cut_off = Unfinished(verb="replace", pid=None)
    facts = Facts(now=NOW, instances=(machine(0, "terminated"),), is_reserved=False, early_end=end, unfinished=cut_off)
    text = status_text(overview(make_inventory(size=1), facts))
    assert "ended 11:00 UTC (12 m ago: reaped)" in text
    assert "reaped: AWS has no machine, no reservation and no network of it" in text
    assert "clusterctl down --cluster train" in text
    assert "clusterctl up" not in text


def test_nodes_that_answer_where_no_machine_is_known_were_made_elsewhere(make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(), answers={0: READY, 1: SILENT})
    text = status_text(overview(make_inventory(size=2), facts))
    assert "train-0 answers, and AWS has no such machine: these credentials are of another account" in text
    assert "gone" not in text
    rehearsed = dataclasses.replace(make_inventory(size=1), rehearsal=True)
    text = status_text(overview(rehearsed, Facts(now=NOW, instances=(), answers={0: READY})))
    assert "this home's rehearsed region has no such machine: another home made the cluster" in text


@pytest.mark.parametrize(("hours", "way"), [(24, "1 d ahead of AWS's"), (-24, "1 d behind AWS's")])
def test_a_clock_that_is_wrong_here_is_said(hours: int, way: str, make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(machine(0),), answers={0: READY}, wrong_by=timedelta(hours=hours))
    text = status_text(overview(make_inventory(size=1), facts))
    assert f"this computer's clock is {way}; the times shown follow AWS's" in text


def test_an_extend_that_was_cut_off_is_named_with_the_command_that_finishes_it(make_inventory: MakeInventory) -> None:
    until = BEGAN + timedelta(hours=14)
    half = HalfExtend(before=BEGAN + timedelta(hours=12), until=until, budget_usd=None)
    facts = Facts(now=NOW, instances=(machine(0),), answers={0: READY}, half_extend=half)
    seen = overview(make_inventory(size=1), facts)
    text = status_text(seen)
    assert (
        "an extend was interrupted: parts of the cluster may still end at 22:00 UTC, and the earlier end holds" in text
    )
    assert "next: clusterctl extend --until 2026-11-22T00:00:00Z --cluster train" in text
    assert status_json(seen)["extend_cut_off"] is True
    late = dataclasses.replace(facts, now=BEGAN + timedelta(hours=15))
    assert "interrupted" not in status_text(overview(make_inventory(size=1), late))


def test_machines_that_outlive_the_deadline_are_told_and_paid(make_inventory: MakeInventory) -> None:
    late = BEGAN + timedelta(hours=13)
    seen = overview(
        make_inventory(size=1, usd_per_hour=10.0), Facts(now=late, instances=(machine(0),), answers={0: READY})
    )
    assert seen.spent_usd == pytest.approx(130)
    assert "machines still run after the deadline; next: clusterctl down" in status_text(seen)


def test_a_silent_api_is_said_once_and_nodes_are_not_gone(make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=None, cloud_trouble="no answer in 8 s", answers={0: READY, 1: SILENT})
    seen = overview(make_inventory(size=2), facts)
    assert [node.state for node in seen.nodes] == ["ready", "unknown"]
    assert status_text(seen).count("AWS did not say what runs (no answer in 8 s)") == 1


def test_an_alarm_is_named_with_what_it_means(make_inventory: MakeInventory) -> None:
    late = BEGAN + timedelta(hours=13)
    alarm = Alarm(name="clusterctl-x-failed", means="what ends a cluster at its deadline failed", since=late)
    facts = Facts(now=late, instances=(machine(0),), alarms=(alarm,), answers={0: READY})
    seen = overview(make_inventory(size=1), facts)
    sentence = "what ends a cluster at its deadline failed, at 23:00 UTC (alarm clusterctl-x-failed)"
    assert f"{sentence}; next: clusterctl down --cluster train" in status_text(seen)
    assert status_json(seen)["alarms"] == ["clusterctl-x-failed"]


def test_a_rehearsal_says_so(make_inventory: MakeInventory) -> None:
    seen = overview(make_inventory(rehearsal=True), Facts(now=NOW, instances=()))
    assert headline(seen).endswith("(rehearsed: simulated GPUs, simulated money)")


def test_json_has_null_for_what_is_not_known(make_inventory: MakeInventory) -> None:
    seen = overview(make_inventory(size=1, usd_per_hour=None), Facts(now=NOW, instances=()))
    shown = status_json(seen)
    assert shown["spent_usd"] is None
    assert shown["cloud"] == {"answered": True, "trouble": None}


def test_where_aws_does_not_tell_of_reservations_that_is_said(make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(machine(),), answers={0: READY}, reserved_trouble="UnauthorizedOperation: no")
    seen = overview(make_inventory(size=1), facts)
    assert "did not say whether places are reserved (UnauthorizedOperation: no)" in status_text(seen)
    assert status_json(seen)["reserved_trouble"] == "UnauthorizedOperation: no"
