"""What a campaign calls wrong: each of its judgements, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any  # rows of parsed JSON

import pytest
from clusterctl.lifecycle.change import STOPPING
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_rehearsal.region.bill import BillRow

from tests.integration.campaign.befalling import Outcome
from tests.integration.campaign.cost_check import at_spot, compare, wrong_last_word, wrong_spot_sum
from tests.integration.campaign.ledger_and_bill import LedgerAndBill
from tests.integration.campaign.mishap import lives
from tests.integration.campaign.report import Met, Report, ReportFile
from tests.integration.campaign.table import table

USD_PER_S = 36.0 / 3600
BEGAN_AT = 1_800_000_000.0
COMPARED = LedgerAndBill(
    bill_usd=1.0,
    empty_usd=0.0,
    uncounted_usd=0.0,
    ledger_usd=1.0,
    uncounted_s=20.0,
    machines=2,
    seen_to_their_end=1,
    unreal=(),
    misbilled=(),
)


def billed(id: str, *, lived_s: float, is_over: bool = True) -> BillRow:
    ended_at = BEGAN_AT + lived_s if is_over else None
    return BillRow(
        id=id, kind="Instance", cluster_id="c", began_at=BEGAN_AT, ended_at=ended_at, usd=USD_PER_S * lived_s
    )


def cost_row(id: str, *, usd: float, end: str | None = "observed", ended_at: str | None = None) -> dict[str, Any]:
    return {"instance_id": id, "start": "observed", "end": end, "ended_at": ended_at, "spent_usd": usd}


def met(action: str, *, is_met: bool) -> Met:
    return Met(action=action, fault="kill", is_met=is_met, exit_code=1, took_s=2.5, output="killed")


@pytest.mark.parametrize(
    ("rows", "bill", "wrong"),
    [
        ([cost_row("i-1", usd=1.0)], [billed("i-1", lived_s=100)], []),
        ([cost_row("i-1", usd=1.0, end=None)], [billed("i-1", lived_s=100, is_over=False)], []),
        ([cost_row("i-1", usd=0.99)], [billed("i-1", lived_s=100)], ["i-1 bills $1.0000, and cost says $0.9900"]),
        ([], [billed("i-1", lived_s=100)], ["i-1 bills and cost has it not"]),
        ([cost_row("i-1", usd=1.0)], [], ["cost has i-1, and the region never had"]),
        (
            [cost_row("i-1", usd=9.0, end="assumed", ended_at="2027-01-15T08:10:00+00:00")],
            [billed("i-1", lived_s=100)],
            [],
        ),
        (
            [cost_row("i-1", usd=0.5, end="assumed", ended_at="2027-01-15T08:00:50+00:00")],
            [billed("i-1", lived_s=100)],
            ["cost assumes an end 50.0 s before the true one"],
        ),
    ],
    ids=["right", "running", "a cent off", "not in cost", "never was", "assumed late", "assumed far too early"],
)
def test_cost_is_wrong_by_a_cent_or_a_machine(
    rows: list[dict[str, Any]], bill: list[BillRow], wrong: list[str]
) -> None:
    assert list(compare(rows, bill).wrong) == wrong


@pytest.mark.parametrize(
    ("output", "is_wrong"),
    [
        ("it cost about $1.00 in all, by list prices", False),
        ("it cost about $1.02 in all, by list prices", True),
        ("it cost about $0.98 in all, by list prices", True),
        ("it cost at most about $1.40 in all, by list prices", False),
        ("it cost at most about $0.90 in all, by list prices", True),
        ("it cost about $1,001.00 in all, by list prices", True),
        ("nothing to end", False),
    ],
)
def test_the_last_word_of_down_is_the_bill_or_more_where_it_says_so(output: str, is_wrong: bool) -> None:
    assert (wrong_last_word(output, [billed("i-1", lived_s=100)]) is not None) is is_wrong


@pytest.mark.parametrize(("usd", "is_wrong"), [("1.08", True), ("1.10", False), ("1.16", False), ("1.18", True)])
def test_what_was_reserved_and_empty_is_in_the_last_word_and_counts_a_moment_longer_at_most(
    usd: str, is_wrong: bool
) -> None:
    empty = replace(billed("cr-1", lived_s=100), kind="CapacityReservation", usd=0.10)
    output = f"it cost about ${usd} in all, by list prices"
    assert (wrong_last_word(output, [billed("i-1", lived_s=100), empty]) is not None) is is_wrong


@pytest.mark.parametrize(
    ("changed", "is_wrong"),
    [
        ({}, False),
        ({"misbilled": ("i-1",)}, True),
        ({"unreal": ("i-1",)}, True),
        ({"uncounted_s": 90.0}, True),
    ],
    ids=["right", "not to the cent", "never was", "not counted"],
)
def test_an_account_may_lack_a_minute_and_no_more(changed: dict[str, Any], is_wrong: bool) -> None:
    assert bool(replace(COMPARED, **changed).wrong) is is_wrong


@pytest.mark.parametrize(
    ("exit_code", "output", "is_wrong"),
    [
        (0, "", False),
        (1, "no capacity", False),
        (130, "", False),
        (70, "", True),
        (None, "", True),
        (1, "Traceback (most recent call last)", True),
        (130, STOPPING, False),
        (0, STOPPING, True),
    ],
)
def test_a_command_may_fail_but_not_hang_and_not_by_a_bug(exit_code: int | None, output: str, is_wrong: bool) -> None:
    assert (Outcome(is_met=True, exit_code=exit_code, output=output).wrong is not None) is is_wrong


def test_what_a_life_came_to_is_kept_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    report = Report(
        wrong=["i-1 bills and cost has it not"],
        met=[met("up", is_met=True)],
        looks=2,
        things=5,
        late_s=1.5,
        ledger_and_bill=COMPARED,
        costs=[compare([], [billed("i-1", lived_s=100)])],
    )
    kept = ReportFile(path, seed=1, runs=9, drawn="a")
    assert kept.read() == {}
    kept.add(3, report)
    kept.add(4, Report())
    assert kept.read() == {3: report, 4: Report()}
    for other in (ReportFile(path, seed=2, runs=9, drawn="a"), ReportFile(path, seed=1, runs=9, drawn="b")):
        with pytest.raises(ValueError, match="another campaign"):
            other.read()


def test_a_campaign_that_was_killed_while_it_wrote_goes_on_with_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept = ReportFile(path, seed=1, runs=9, drawn="a")
    kept.add(0, Report())
    kept.add(1, Report())
    for size in (len(path.read_bytes()) - 7, 5):  # in the second life, and in the first line
        path.write_bytes(path.read_bytes()[:size])
        before = kept.read()
        assert 1 not in before
        kept.add(1, Report(looks=2))
        assert kept.read() == {**before, 1: Report(looks=2)}


def test_every_other_round_of_endings_has_a_file_system_that_somebody_ends() -> None:
    stored = {life.number: life.ending for life in lives(7, runs=100) if life.has_storage}
    assert stored == {4: "deadline", 5: "down", 10: "deadline", 11: "down"}


def test_spot_lives_meet_every_ending_and_their_machines_are_taken_back_now_and_then() -> None:
    on_spot = [life for life in lives(7, runs=100) if life.is_spot]
    assert [(life.number, life.ending) for life in on_spot] == [(2, "down"), (6, "forsaken"), (10, "deadline")]
    taken = {life.number: sum(mishap.fault == "taken back" for mishap in life.mishaps) for life in lives(7, runs=100)}
    assert {number for number, count in taken.items() if count} == {2, 6, 10}
    assert min(taken[life.number] for life in on_spot) == 3


SPOT_ROW = cost_row("i-1", usd=1.0, end=None)


@pytest.mark.parametrize(
    ("spot_usd", "row", "is_wrong"),
    [
        (1.0, SPOT_ROW, False),
        (0.99, SPOT_ROW, True),
        (1.01, SPOT_ROW, True),
        (None, SPOT_ROW, True),
        (1.4, {**SPOT_ROW, "end": "assumed"}, False),
    ],
    ids=["the bill", "a cent less", "a cent more", "not known", "an end assumed late"],
)
def test_spot_prices_come_to_the_bill_where_aws_told_of_every_machine(
    spot_usd: float | None, row: dict[str, Any], is_wrong: bool
) -> None:
    bill = [billed("i-1", lived_s=100)]
    wrong = wrong_spot_sum(spot_usd, [row], bill)
    assert (wrong is not None) is is_wrong


def test_rows_at_the_maximum_are_compared_at_the_spot_price() -> None:
    (row,) = at_spot([cost_row("i-1", usd=55.04)], instance_type="p5.48xlarge")
    assert row["spent_usd"] == pytest.approx(load_catalog().spot_price_usd_per_hour("p5.48xlarge", "us-west-2"))


def test_the_table_counts_what_met_its_command_and_every_leak() -> None:
    report = Report(
        wrong=["up, kill: EIP bills and reap does not list it"],
        leaks=1,
        met=[met("up", is_met=True), met("down", is_met=False)],
        ledger_and_bill=COMPARED,
    )
    text = "\n".join(table(lives(1, runs=2), {0: report}))
    assert "| runs | 2 | happened while the command still ran: 1; clusters: 1 |" in text
    assert "| kill | 2 | during: 1 up |" in text
    assert "| leaks: resources that bill and that `reap` does not list | 1 |  |" in text
