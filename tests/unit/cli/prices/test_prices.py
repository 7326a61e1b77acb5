"""Which prices are shown, how old they are, and how the price list is read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from clusterctl.cloud.price_list import ask_prices, on_demand_price
from clusterctl.prices.refresh import refresh_summary
from clusterctl.prices.rows import age_days, price_rows
from clusterctl.prices.view import age, prices_json, prices_text
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError, NothingMatched, UsageError

from tests.unit.cli.cloud.fake_answers import clients_of

CATALOG = load_catalog()
TODAY = date(2026, 11, 21)


def product(*usd: str, unit: str = "Hrs") -> str:
    """One document of the price list, with a term for each price."""
    terms = {
        f"SKU.{number}": {
            "priceDimensions": {f"SKU.{number}.0": {"unit": unit, "pricePerUnit": {"USD": price}}},
            "termAttributes": {},
        }
        for number, price in enumerate(usd)
    }
    return json.dumps({"product": {"productFamily": "Compute Instance"}, "terms": {"OnDemand": terms}})


@pytest.mark.parametrize(
    ("products", "price"),
    [
        ([product("55.0400000000")], 55.04),
        ([product("0.0000000000"), product("55.04")], 55.04),
        ([product("55.04"), product("55.04")], 55.04),
        ([], None),
        ([product("0.0000000000")], None),
        ([product("55.04", "60.00")], None),
        ([product("55.04", unit="Quantity")], None),
        ([json.dumps({"terms": {"Reserved": {}}})], None),
    ],
)
def test_one_price_by_the_hour_is_a_price_and_anything_else_is_unknown(
    products: list[str], price: float | None
) -> None:
    assert on_demand_price(products) == price


def test_a_family_stands_for_its_types() -> None:
    rows = price_rows(CATALOG, ["p5"], region="us-west-2", today=TODAY)
    assert [(row.instance_type, row.on_demand_usd_per_hour) for row in rows] == [
        ("p5.48xlarge", 55.04),
        ("p5.4xlarge", 6.88),
    ]


def test_a_gpu_stands_for_the_types_that_have_it() -> None:
    names = {row.instance_type for row in price_rows(CATALOG, ["h100"], region="us-west-2", today=TODAY)}
    assert {"p5.48xlarge", "p5.4xlarge"} <= names
    assert not any(name.startswith("p4d") for name in names)


def test_without_a_region_every_region_with_a_price_is_shown() -> None:
    regions = [row.region for row in price_rows(CATALOG, ["p5.48xlarge"], region=None, today=TODAY)]
    assert len(regions) > 5
    assert {"us-east-1", "us-west-2", "ap-northeast-1"} <= set(regions)
    assert "eu-south-2" not in regions, "no price is known there"


def test_an_unknown_price_is_unknown_and_never_0() -> None:
    rows = price_rows(CATALOG, ["p5.48xlarge"], region="eu-south-2", today=TODAY)
    assert prices_json(rows)[0]["on_demand_usd_per_hour"] is None
    line = prices_text(rows, with_spot=True).splitlines()[1]
    assert line.split()[3:5] == ["unknown", "unknown"]
    assert "$0" not in line


def test_a_word_that_is_no_type_or_region_has_a_near_one() -> None:
    with pytest.raises(NothingMatched, match=r"p5\.48xlarg\b.*did you mean p5\.48xlarge"):
        price_rows(CATALOG, ["p5.48xlarg"], region=None, today=TODAY)
    with pytest.raises(UsageError, match=r"us-west2: no AWS region.*did you mean us-west-2"):
        price_rows(CATALOG, [], region="us-west2", today=TODAY)


@pytest.mark.parametrize(("dated", "days"), [("2026-11-21", 0), ("2026-11-20", 1), ("2026-01", 324)])
def test_the_age_errs_on_the_old_side(dated: str, days: int) -> None:
    assert age_days(dated, TODAY) == days


def test_the_table_says_how_old_its_oldest_price_is() -> None:
    rows = price_rows(CATALOG, ["p5"], region="us-west-2", today=TODAY)
    assert prices_text(rows, with_spot=False).endswith("on demand; the oldest are of 2026-01, 10 months old")
    head, whole, part, notes = prices_text(rows, with_spot=True).splitlines()
    assert head.split() == ["type", "region", "gpus", "$/h", "$/gpu", "h", "spot", "$/h", "dated"]
    assert whole.split()[:5] == ["p5.48xlarge", "us-west-2", "8", "$55.04", "$6.88"]
    assert part.split()[:5] == ["p5.4xlarge", "us-west-2", "1", "$6.88", "$6.88"]
    assert "a cluster is counted at its maximum price" in notes


@pytest.mark.parametrize(("days", "text"), [(0, "0 days"), (1, "1 day"), (59, "59 days"), (60, "2 months")])
def test_an_age_is_told_in_days_and_from_two_months_on_in_months(days: int, text: str) -> None:
    assert age(days) == text


def test_what_aws_named_no_price_for_is_said() -> None:
    message = refresh_summary(["a", "b"], ["a"], region="us-west-2", file=Path("/home/prices.json"))
    assert message == (
        "1 of 2 prices of us-west-2 are today's, kept in /home/prices.json; "
        "AWS names none for b: what was known of them stays"
    )


def test_where_aws_refuses_to_tell_spot_prices_the_person_hears_what_was_asked() -> None:
    clients = clients_of({}, refused={("ec2", "describe_spot_price_history"): "UnauthorizedOperation"})
    with pytest.raises(CloudError, match="asking for spot prices in us-west-2") as refused:
        ask_prices(clients, ["p5.48xlarge"], now=datetime(2026, 11, 22, tzinfo=UTC))
    assert refused.value.code == "UnauthorizedOperation"
