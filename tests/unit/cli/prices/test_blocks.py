"""Capacity blocks: what may be asked for, what AWS answers, and the table of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any  # AWS's rows

import pytest
from clusterctl.cloud.block_offerings import BlockOffering, BlockRequest, ask_offerings
from clusterctl.prices.blocks import block_request, blocks_json, blocks_text, parse_start
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ClusterctlError

from tests.unit.cli.cloud.fake_answers import clients_of

CATALOG = load_catalog()
BEGINS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)


def offered(fee: object, *, currency: str = "USD", zone: str = "us-west-2b") -> dict[str, Any]:
    return {
        "CapacityBlockOfferingId": f"cb-{zone}",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": zone,
        "InstanceCount": 4,
        "StartDate": BEGINS,
        "EndDate": ENDS,
        "CapacityBlockDurationHours": 24,
        "UpfrontFee": fee,
        "CurrencyCode": currency,
    }


def found(*rows: dict[str, Any], types: tuple[str, ...] = ("p5.48xlarge",)) -> tuple[BlockOffering, ...]:
    answers = {("us-west-2", "describe_capacity_block_offerings", "CapacityBlockOfferings"): list(rows)}
    asked = BlockRequest(instance_types=types, instances=4, hours=24, starts_from=None)
    return ask_offerings(clients_of(answers), asked)


def test_the_cheapest_comes_first_and_what_has_no_price_last() -> None:
    rows = found(offered("5000.5", zone="a"), offered("x", zone="b"), offered("4000", zone="c"))
    assert [(row.zone, row.fee_usd) for row in rows] == [("c", 4000.0), ("a", 5000.5), ("b", None)]


@pytest.mark.parametrize("fee", ["nan", "inf", "-1", "0", "", None, "1,000"])
def test_a_sum_that_is_no_price_is_unknown_and_never_zero(fee: object) -> None:
    (row,) = found(offered(fee))
    assert row.fee_usd is None
    line = blocks_text([row], CATALOG, region="us-west-2", is_rehearsal=False).splitlines()[1]
    assert line.split()[-4:] == ["24", "unknown", "unknown", "unknown"]


def test_another_currency_is_unknown() -> None:
    assert found(offered("4000", currency="EUR"))[0].fee_usd is None


def test_the_table_has_the_sum_and_what_an_hour_and_a_gpu_hour_are() -> None:
    text = blocks_text(found(offered("3840.0000")), CATALOG, region="us-west-2", is_rehearsal=False)
    _, line, *notes = text.splitlines()
    assert line.split()[-4:] == ["24", "$3840.00", "$40.00", "$5.00"]
    assert "4 × p5.48xlarge  us-west-2b  2026-12-01 11:30  2026-12-02 11:30" in line
    assert "paid at once and not refunded" in notes[0]
    assert "clusterctl up buys the cheapest, once you agree" in notes[1]


def test_a_rehearsal_says_that_nothing_is_paid() -> None:
    text = blocks_text(found(offered("1")), CATALOG, region="us-west-2", is_rehearsal=True)
    assert "nothing is paid" in text
    assert "not refunded" not in text


def test_where_aws_offers_no_block_that_is_told_with_what_may_help() -> None:
    assert blocks_text((), CATALOG, region="us-west-2", is_rehearsal=False).startswith("AWS offers no such block")
    assert blocks_json(()) == []


def test_json_has_times_with_their_zone() -> None:
    (row,) = blocks_json(found(offered("3840")))
    times = (row["starts_at"], row["ends_at"])
    assert times == ("2026-12-01T11:30:00+00:00", "2026-12-02T11:30:00+00:00")
    assert row["fee_usd"] == 3840.0


@pytest.mark.parametrize(
    ("wanted", "types"),
    [("p5.48xlarge", ("p5.48xlarge",)), ("h100:8", ("p5.48xlarge",)), ("h200:8", ("p5e.48xlarge", "p5en.48xlarge"))],
)
def test_a_type_or_gpus_may_be_named(wanted: str, types: tuple[str, ...]) -> None:
    asked = block_request(CATALOG, wanted, nodes=64, hours=336, starts_from=None)
    assert sorted(asked.instance_types) == list(types)


@pytest.mark.parametrize("hours", [24, 336, 504, 4368])
def test_lengths_that_aws_sells_are_asked_for(hours: int) -> None:
    assert block_request(CATALOG, "h100:8", nodes=1, hours=hours, starts_from=None).hours == hours


@pytest.mark.parametrize(
    ("wanted", "nodes", "hours", "message"),
    [
        ("h100:8", 65, 24, "--nodes 65: AWS sells blocks of at most 64 machines"),
        (
            "h100:8",
            4,
            30,
            "--hours 30: AWS sells whole days up to 336 h, then whole weeks up to 4368 h (did you mean 48?)",
        ),
        ("h100:8", 4, 360, "(did you mean 504?)"),
        ("h100:8", 4, 4536, "(did you mean 4368?)"),
        ("g5.xlarge", 4, 24, "g5.xlarge: AWS sells no capacity blocks of it; it does of p4d.24xlarge"),
        ("p5.48xlage", 4, 24, "did you mean p5.48xlarge?"),
        ("h100:9", 4, 24, "h100:9: no instance type, and no GPUs of one"),
    ],
)
def test_what_aws_would_refuse_is_refused_before_it_is_asked(wanted: str, nodes: int, hours: int, message: str) -> None:
    with pytest.raises(ClusterctlError) as caught:
        block_request(CATALOG, wanted, nodes=nodes, hours=hours, starts_from=None)
    assert message in caught.value.message


def test_a_start_that_is_no_moment_is_named_with_its_flag() -> None:
    with pytest.raises(ClusterctlError, match="--start: 'soon' is no moment") as refused:
        parse_start("soon", now=BEGINS)
    assert refused.value.hint == "clusterctl capacity --help"
