"""Prices asked for after the snapshot: kept in a file, used in place of the shipped ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_infra.catalog.fresh_prices import FreshPrice, fresh_prices_text, merged, read_fresh_prices
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import ConfigError


def a_price(type: str = "p5.48xlarge", price: float | None = 50.0, dated: str = "2026-11-21") -> FreshPrice:
    return FreshPrice(
        instance_type=type, region="us-west-2", on_demand_usd_per_hour=price, spot_usd_per_hour=None, dated=dated
    )


def test_what_was_asked_stands_in_place_of_what_was_shipped(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(fresh_prices_text([a_price()]))
    catalog = load_catalog(file)
    assert catalog.price_usd_per_hour("p5.48xlarge", "us-west-2") == 50.0
    assert catalog.price_dated("p5.48xlarge", "us-west-2") == "2026-11-21"
    assert catalog.price_usd_per_hour("p5.48xlarge", "us-east-1") == 55.04
    assert catalog.price_dated("p5.48xlarge", "us-east-1") == catalog.prices_dated == "2026-01"


def test_without_the_file_the_shipped_prices_count(tmp_path: Path) -> None:
    assert load_catalog(tmp_path / "none.json") == load_catalog()


def test_the_file_says_what_was_written(tmp_path: Path) -> None:
    rows = (a_price("a.large", 0.0116), a_price("b.large", None))
    (tmp_path / "prices.json").write_text(fresh_prices_text(rows))
    assert read_fresh_prices(tmp_path / "prices.json") == rows


def test_a_later_price_takes_the_place_of_an_earlier_one() -> None:
    later = a_price(price=51.0, dated="2026-12-01")
    assert merged([a_price(), a_price("other")], [later]) == (later, a_price("other"))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"prices": [{}]}', fresh_prices_text([a_price()]).replace("50.0", "0"), '{"prices": 3}']
)
def test_a_broken_file_is_no_old_price_and_the_way_out_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="not a price list that clusterctl wrote") as refused:
        load_catalog(file)
    assert refused.value.hint == f"rm {file}"
