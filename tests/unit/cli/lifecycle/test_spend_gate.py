"""The question of money: who is asked, when a name has to be typed, and what happens where nobody can be asked."""

from __future__ import annotations

import dataclasses
import io
from datetime import timedelta
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl.commands.up import command as up_command
from clusterctl.lifecycle.spend_gate import (
    NAME_TYPED_TOTAL_USD,
    NAME_TYPED_USD_PER_HOUR,
    Spending,
    agree,
    spending,
    why_name_is_typed,
)
from clusterctl.lifecycle.up_words import price_question
from clusterctl.output import Output
from clusterctl_infra.errors import UsageError
from clusterctl_infra.plan.model import ClusterPlan

from tests.unit.infra.plan.plan_cases import BORN, a_plan

AGAIN = "clusterctl up stacks/train --nodes 8"


class Terminal(io.StringIO):
    """A keyboard on which this was typed."""

    def isatty(self) -> bool:
        return True


def asked(cluster_plan: ClusterPlan, typed: str | None, *, asks: bool = True) -> str:
    """What stood on the screen of somebody who typed this; None: nobody is there. Raises UsageError."""
    screen = io.BytesIO()
    keyboard = io.StringIO() if typed is None else Terminal(f"{typed}\n")
    output = Output(stdout=io.BytesIO(), stderr=screen, stderr_is_terminal=typed is not None, stdin=keyboard)
    question = price_question(cluster_plan, running=0, now=BORN)
    agree(output, cluster_plan, question=question, now=BORN, shown="stacks/train", again=AGAIN, asks=asks)
    return screen.getvalue().decode()


def test_a_program_is_told_how_it_agrees() -> None:
    output, now = Output(stdout=io.BytesIO(), stderr=io.BytesIO(), stdin=io.StringIO()), BORN
    by = "app.run(yes=True)"
    with pytest.raises(
        UsageError, match=r"there is no terminal to ask at; nothing was changed\. .* app\.run\(yes=True\) agrees"
    ):
        agree(output, a_plan(**CHEAP), question="Price. Go?", now=now, shown="s", again=AGAIN, asks=True, agreed_by=by)


CHEAP: dict[str, Any] = {"instance_type": "m5.large", "fabric": "none", "placement": "none", "caps": {"runtime": "2h"}}


@pytest.mark.parametrize("typed", [None, "no"])
def test_the_command_that_agrees_asks_for_the_same_size(typed: str | None) -> None:
    with pytest.raises(UsageError) as refused:
        asked(a_plan(**CHEAP), typed)
    assert refused.value.hint == "clusterctl up stacks/train --nodes 8 --yes"


@pytest.mark.parametrize("answer", ["y", "yes", "Y"])
def test_a_cheap_cluster_takes_a_yes(answer: str) -> None:
    assert asked(a_plan(**CHEAP), answer).endswith("Create 4 × m5.large? [y/N] ")


@pytest.mark.parametrize("answer", ["", "n", "train"])
def test_anything_but_yes_is_no(answer: str) -> None:
    with pytest.raises(UsageError, match="not agreed, nothing was changed"):
        asked(a_plan(**CHEAP), answer)


def test_a_dear_cluster_wants_its_name_and_says_why() -> None:
    shown = asked(a_plan(caps={"runtime": "2h"}), "train")
    assert "(2 h: $440.54 in all)" in shown
    assert shown.endswith("$220.27 an hour is more than $20.00: type the cluster's name, train, to agree: ")


@pytest.mark.parametrize("answer", ["y", "yes", "", "Train", "train2"])
def test_a_dear_cluster_takes_nothing_but_its_name(answer: str) -> None:
    with pytest.raises(UsageError, match="not agreed, nothing was changed"):
        asked(a_plan(caps={"runtime": "2h"}), answer)


@pytest.mark.parametrize(
    ("rate", "total", "why"),
    [
        (20.0, 500.0, None),
        (20.01, 20.01, "$20.01 an hour is more than $20.00"),
        (5.0, 500.01, "$500.01 in all is more than $500.00"),
        (None, None, "A price is not known"),
    ],
)
def test_the_name_is_wanted_above_a_rate_or_a_sum_or_without_a_price(
    rate: float | None, total: float | None, why: str | None
) -> None:
    assert why_name_is_typed(Spending(usd_per_hour=rate, until_deadline_usd=total)) == why


@pytest.mark.parametrize(("typed", "asks", "why"), [(None, True, "there is no terminal"), ("train", False, "--json")])
def test_where_nobody_can_be_asked_the_refusal_names_sum_flag_and_caps(typed: str | None, asks: bool, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        asked(a_plan(caps={"runtime": "2h"}), typed, asks=asks)
    assert "This will run at $220.27/h" in refused.value.message
    assert "stacks/train/cluster.yaml bound it: total_usd_per_hour, budget_usd" in refused.value.message
    assert refused.value.hint == f"{AGAIN} --yes"


def test_what_is_spent_until_the_deadline_counts_from_now() -> None:
    made = a_plan(caps={"runtime": "4h"})
    assert spending(made, now=BORN + timedelta(hours=3)).until_deadline_usd == pytest.approx(
        4 * (55.04 + 0.005 + 200 * 0.08 / 730)
    )
    assert spending(made, now=BORN + timedelta(hours=5)).until_deadline_usd == 0


def test_an_unknown_price_is_no_sum() -> None:
    made = a_plan()
    unknown = dataclasses.replace(made, price=dataclasses.replace(made.price, total_usd_per_hour=None))
    assert spending(unknown, now=BORN).until_deadline_usd is None
    assert "unknown in all" in price_question(unknown, running=0, now=BORN)


def test_the_help_of_up_names_the_sums_that_are_kept() -> None:
    help_text = " ".join((up_command.help or "").split())
    assert (
        f"above ${NAME_TYPED_USD_PER_HOUR:.0f} an hour, or ${NAME_TYPED_TOTAL_USD:.0f} until the deadline" in help_text
    )
