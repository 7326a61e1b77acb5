"""A budget that `extend` gave goes with the cluster; one that a person set stays."""

from __future__ import annotations

import pytest
from clusterctl.engine.extended_budget import extended, taken_back


def after(values: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**values, **changes}.items() if value is not None}


@pytest.mark.parametrize("person", [{}, {"budget_usd": "1000"}, {"nodes": "4", "budget_usd": "1000.00"}])
@pytest.mark.parametrize("budgets", [(2500.0,), (2500.0, 3000.5), (1000.0,)])
def test_after_any_number_of_extends_it_is_as_the_person_wrote(
    person: dict[str, str], budgets: tuple[float, ...]
) -> None:
    values = person
    for budget_usd in budgets:
        values = after(values, extended(values, budget_usd))
    assert values["budget_usd"] == f"{budgets[-1]:.2f}"
    assert after(values, taken_back(values)) == person


def test_a_budget_that_a_person_set_since_stays() -> None:
    values = {**after({}, extended({}, 2500.0)), "budget_usd": "700"}
    assert after(values, taken_back(values)) == {"budget_usd": "700"}
    again = after(values, extended(values, 900.0))
    assert after(again, taken_back(again)) == {"budget_usd": "700"}


def test_one_that_a_person_took_away_stays_away() -> None:
    values = after({"budget_usd": "1000"}, extended({"budget_usd": "1000"}, 2500.0))
    del values["budget_usd"]
    assert after(values, taken_back(values)) == {}


@pytest.mark.parametrize("text", ["", "null", "{}", "[]", '{"to": 1}'])
def test_what_extend_did_not_write_takes_nothing_back(text: str) -> None:
    assert taken_back({"budget_usd": "1", "extended-budget": text}) == {}
    assert taken_back({"budget_usd": "1"}) == {}
