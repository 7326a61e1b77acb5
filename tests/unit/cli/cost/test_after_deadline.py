"""What a plan says of the time after its deadline."""

from __future__ import annotations

from typing import Any  # a configuration as YAML gives it

import pytest
from clusterctl.cost.after_deadline import bills_a_month_after, bills_on_after

from tests.unit.infra.plan.plan_cases import a_plan

LUSTRE = {"mount": "/shared", "fsx-lustre": {"size": "4800GiB"}}
SCRATCH = {"mount": "/scratch", "fsx-lustre": {"size": "1200GiB", "type": "scratch", "on_delete": "delete"}}
DOWN, DOWN_ALL = (
    "the deadline does not end it, clusterctl down does",
    "the deadline does not end it, clusterctl down --all does",
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, None),
        ({"access": {"mode": "private"}}, None),
        ({"storage": [LUSTRE]}, f"$0.95 an hour: storage; {DOWN_ALL}"),
        ({"storage": [SCRATCH]}, f"$0.23 an hour: storage; {DOWN}"),
        ({"instance_type": "m5.large"}, None),
    ],
    ids=["elastic IPs", "gateway", "data that is kept", "data that is not", "addresses of the machines"],
)
def test_what_no_deadline_ends_is_named_with_its_price_and_what_ends_it(
    changes: dict[str, Any], sentence: str | None
) -> None:
    assert bills_on_after(a_plan(**changes)) == sentence


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"storage": [SCRATCH]}, f"$168.00 a month: storage; {DOWN}"),
        ({"access": {"mode": "private"}}, None),
        ({"instance_type": "m5.large"}, None),
    ],
    ids=["storage", "gateway", "addresses of the machines"],
)
def test_the_question_has_it_by_the_month(changes: dict[str, Any], sentence: str | None) -> None:
    assert bills_a_month_after(a_plan(**changes)) == sentence
