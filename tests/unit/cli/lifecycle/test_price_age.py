"""Prices that are old: an `up` on AWS asks for new ones, which never make it replace machines that run."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any  # configurations as YAML gives them, AWS's documents

import pytest
from clusterctl.cloud.boundary import Clients
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.price_age import price_age_text, priced_today
from clusterctl.lifecycle.up_words import price_question
from clusterctl_infra.catalog.fresh_prices import read_fresh_prices
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.stack import stack_settings

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.infra.plan.plan_cases import BORN, a_config, a_plan

LATER = BORN + timedelta(days=30)
"""89 days after the first of the month that the snapshot is of."""


def selling_at(*prices: float) -> Clients:
    """AWS, whose price list names this for every type; several prices of one type are none."""
    documents: list[Any] = [
        json.dumps({"terms": {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}}})
        for dimension in ({"unit": "Hrs", "pricePerUnit": {"USD": str(price)}} for price in prices)
    ]
    return clients_of({("us-east-1", "get_products", "PriceList"): documents})


def refusing() -> Clients:
    return clients_of({}, refused={("pricing", "get_products"): "AccessDeniedException"})


def renewed(
    clients: Clients, file: Path, *, lives: bool = False, now: datetime = LATER, **changes: Any
) -> tuple[float | None, list[str]]:
    """The price of a p5.48xlarge afterwards, and what a person saw."""
    messages: list[str] = []
    intent = Intent(
        config=a_config(**changes), settings=stack_settings({}), changes={}, config_text="", catalog=load_catalog()
    )
    after = priced_today(clients, intent, lives=lives, file=file, now=now, tell=messages.append)
    return after.catalog.price_usd_per_hour("p5.48xlarge", "us-west-2"), messages


def test_where_prices_are_old_aws_is_asked_and_the_new_ones_are_kept_and_told(tmp_path: Path) -> None:
    price, messages = renewed(selling_at(40.0), tmp_path / "prices.json")
    assert price == 40.0
    assert messages == ["  prices   AWS was asked, since those here were of 2026-01: p5.48xlarge is $40.00/h today"]
    assert [row.instance_type for row in read_fresh_prices(tmp_path / "prices.json")] == ["p5.48xlarge"]


def test_prices_are_asked_for_all_types_among_which_one_is_chosen_by_price(tmp_path: Path) -> None:
    renewed(selling_at(40.0), tmp_path / "prices.json", instance_type=None, gpus="a100:8")
    kept = {row.instance_type for row in read_fresh_prices(tmp_path / "prices.json")}
    assert {"p4d.24xlarge", "p4de.24xlarge"} <= kept


@pytest.mark.parametrize(
    ("clients", "start"),
    [
        (selling_at(), "  prices   those of p5.48xlarge are of 2026-01, and AWS has none that is newer"),
        (selling_at(40.0, 41.0), "  prices   those of p5.48xlarge are of 2026-01, and AWS has none that is newer"),
        (refusing(), "  prices   those of p5.48xlarge are of 2026-01, and AWS did not give today's: "),
    ],
)
def test_where_aws_names_none_the_old_ones_stay_and_it_is_said(tmp_path: Path, clients: Clients, start: str) -> None:
    price, (message,) = renewed(clients, tmp_path / "prices.json")
    assert price == 55.04
    assert message.startswith(start)
    assert not (tmp_path / "prices.json").exists()


def test_todays_prices_choose_no_other_type_for_machines_that_live(tmp_path: Path) -> None:
    """The snapshot has a price of p5en alone; at one price for both the first by name would be chosen."""
    file = tmp_path / "prices.json"
    _, messages = renewed(selling_at(9.0), file, lives=True, instance_type=None, gpus="h200:8")
    (line,) = messages
    assert "those of p5en.48xlarge are of 2026-01; by today's, up would choose p5e.48xlarge, but machines run" in line
    assert line.endswith(": write instance_type: p5en.48xlarge")
    assert not file.exists()
    renewed(selling_at(9.0), file, lives=False, instance_type=None, gpus="h200:8")
    assert file.exists()


def test_neither_new_prices_nor_those_of_a_paid_block_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    assert renewed(selling_at(40.0), file, now=BORN) == (55.04, [])
    assert renewed(selling_at(40.0), file, capacity_block="cr-0a1b2c3d4e5f67890", placement="none") == (55.04, [])
    assert not file.exists()


def test_the_question_says_how_old_its_prices_are() -> None:
    made = a_plan(now=LATER)
    assert " Prices are of 2026-01, 89 days old. Create" in price_question(made, running=0, now=LATER)
    assert price_age_text(made, today=BORN.date()) == ""
