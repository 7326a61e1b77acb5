"""What `up` refuses because of its plan alone, and the question of money that it asks otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from clusterctl.engine.stack import Stack
from clusterctl.engine.stack_config import with_values
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.intent import Intent, for_up, plan_of, refuse
from clusterctl.lifecycle.price_age import price_age_text
from clusterctl.lifecycle.up_words import price_question
from clusterctl_infra.errors import CapExceeded, ConfigError

from tests.unit.cli.lifecycle.intent_cases import BORN, CLUSTER, intent_of, state_of


def refuse_at(now: datetime, intent: Intent, state: StackState, stack: Stack) -> None:
    made = plan_of(intent, state, now=now)
    refuse(intent, made, stack=stack, config_file=stack.config_file, shown="stacks/train", now=now)


def test_after_the_deadline_up_is_refused_with_what_to_type(stack: Stack) -> None:
    now = BORN + timedelta(hours=3)
    intent = for_up(intent_of(stack), state_of(), {})
    with pytest.raises(CapExceeded, match="train ended at 12:00 UTC: its run time was over") as refused:
        refuse_at(now, intent, state_of(), stack)
    assert refused.value.hint == "clusterctl down stacks/train && clusterctl up stacks/train"


def test_a_spent_budget_is_refused_with_its_sum_and_a_hint_that_is_not_refused_again(stack: Stack) -> None:
    stack.cluster_file.write_text(CLUSTER.replace("{runtime: 2h}", "{budget_usd: 100}"))
    now = BORN + timedelta(hours=1)
    intent = for_up(intent_of(stack), state_of(), {})
    with pytest.raises(CapExceeded, match=r"its budget of \$100\.00 is spent.*a higher caps\.budget_usd") as refused:
        refuse_at(now, intent, state_of(), stack)
    assert refused.value.hint == "clusterctl down stacks/train"


def test_a_spent_budget_that_extend_set_is_to_be_changed_in_the_stacks_config(stack: Stack) -> None:
    """The file's own, which is higher, does not count: the hint would be refused again for ever."""
    stack.cluster_file.write_text(CLUSTER.replace("{runtime: 2h}", "{budget_usd: 5000}"))
    now = BORN + timedelta(hours=1)
    intent = for_up(intent_of(stack, with_values("", {"budget_usd": "5.00"})), state_of(), {})
    with pytest.raises(
        CapExceeded, match=r"its budget of \$5\.00 is spent.*a higher clusterctl:budget_usd in "
    ) as refused:
        refuse_at(now, intent, state_of(), stack)
    assert refused.value.hint == f"${{EDITOR:-nano}} {stack.config_file}"


def test_problems_of_the_plan_are_refused_all_at_once(stack: Stack) -> None:
    too_many = CLUSTER.replace("{mode: private}", "{mode: public}").replace("nodes: 4", "nodes: 900")
    stack.cluster_file.write_text(f"{too_many}network: {{node_subnet_cidr: 10.0.0.0/24}}\n")
    intent = for_up(intent_of(stack), StackState(), {})
    with pytest.raises(ConfigError, match="2 problems, nothing was changed") as refused:
        refuse_at(BORN, intent, StackState(), stack)
    assert refused.value.message == f"{stack.source}: 2 problems, nothing was changed"
    assert [problem.split()[:2] for problem in refused.value.problems] == [["line", "5"], ["line", "7"]]


def test_the_question_names_price_end_and_what_is_made(stack: Stack) -> None:
    cluster_plan = plan_of(for_up(intent_of(stack), StackState(), {}), StackState(), now=BORN)
    asked = price_question(cluster_plan, running=0, now=BORN)
    assert asked.startswith("This will run at $")
    tail = "at worst $220.16 more for a reservation that AWS ends up to 1 h late"
    old = price_age_text(cluster_plan, today=BORN.date()).strip()
    assert asked.endswith(f"/h until 12:00 UTC (2 h: $440.60 in all), {tail}. {old} Create 4 × p5.48xlarge?")
    assert price_question(cluster_plan, running=2, now=BORN).endswith("Change 2 → 4 nodes?")
    anew = price_question(cluster_plan, running=4, anew=2, now=BORN)
    assert anew.endswith("Change 4 → 4 nodes, 2 of them replaced?")
