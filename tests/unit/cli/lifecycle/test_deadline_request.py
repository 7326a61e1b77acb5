"""Which end an `extend` may have, what it adds, and what is said where it may not."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any  # configurations as YAML gives them

import pytest
from clusterctl.engine.state import StackState, StateResource
from clusterctl.lifecycle.deadline_request import AWS_AHEAD, DeadlineRequest, Move, refuse_move
from clusterctl.lifecycle.extend import move_effect, untaken_line
from clusterctl.lifecycle.extend_checks import refuse_too_late
from clusterctl.lifecycle.intent import Intent
from clusterctl.lifecycle.spend_gate import Spending
from clusterctl.lifecycle.whole_cluster import refuse_half_made
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.config.stack import stack_settings
from clusterctl_infra.errors import CapExceeded, ClusterctlError, UsageError
from clusterctl_infra.ledger import Ledger
from clusterctl_infra.plan.model import ClusterPlan
from clusterctl_infra.provider.ledger_change import follow

from tests.unit.cli.engine.state_rows import machines
from tests.unit.infra.plan.plan_cases import BORN, a_config, a_plan

HOUR = timedelta(hours=1)
NOW = BORN + HOUR
PRIVATE = {"mode": "private"}


def an_intent(asked: DeadlineRequest, *, before: timedelta = 12 * HOUR, **config: Any) -> tuple[Intent, ClusterPlan]:
    """Four nodes that run since BORN until `before`, and the plan that the request makes of it."""
    members = {slot: f"i-{slot}" for slot in range(4)}
    account = follow(
        Ledger(),
        members,
        {"addresses": 0.005, "storage": 0.0},
        at=BORN,
        run_started_at=BORN,
        ends_by=None,
        price_usd_per_hour=55.04,
    ).ledger
    changes = asked.changes({}, base=BORN + before)
    values = {key: value for key, value in changes.items() if value is not None}
    settings = dataclasses.replace(stack_settings(values), ledger=account)
    caps = {**config, **({} if asked.budget_usd is None else {"budget_usd": asked.budget_usd})}
    whole: dict[str, Any] = {"access": PRIVATE, "caps": caps}
    intent = Intent(config=a_config(**whole), settings=settings, changes={}, config_text="", catalog=load_catalog())
    return intent, a_plan(ledger=account, now=NOW, until=settings.until, **whole)


def refused(asked: DeadlineRequest, **config: Any) -> ClusterctlError:
    """The error with which this request is refused."""
    intent, made = an_intent(asked, **config)
    with pytest.raises(ClusterctlError) as error:
        refuse_move(asked, intent, made, cluster="train", ahead=AWS_AHEAD, now=NOW)
    return error.value


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (DeadlineRequest(until=NOW - HOUR), "12:00 UTC is 1 h ago"),
        (DeadlineRequest(until=NOW + timedelta(seconds=30)), "moved to 2 m from now at the soonest"),
        (DeadlineRequest(until=BORN + timedelta(days=31)), "30 d is the most, which is 2026-03-31 12:00 UTC"),
        (DeadlineRequest(by=timedelta(days=30)), "30 d is the most"),
    ],
)
def test_a_moment_that_cannot_be_is_refused_with_the_value(asked: DeadlineRequest, words: str) -> None:
    error = refused(asked)
    assert isinstance(error, UsageError)
    assert words in error.message


def test_a_moment_after_the_budget_is_spent_is_refused_with_the_budget_that_would_do() -> None:
    error = refused(DeadlineRequest(until=BORN + 10 * HOUR), budget_usd=1000)
    assert isinstance(error, CapExceeded)
    assert "the budget of $1000.00 is spent at 16:32 UTC, before 22:00 UTC" in error.message
    assert "about $2202.84 over all runs" in error.message
    assert error.hint == "clusterctl extend --until 2026-03-01T22:00:00Z --budget 2203 --cluster train"


def test_the_budget_that_is_offered_does() -> None:
    asked = DeadlineRequest(until=BORN + 10 * HOUR, budget_usd=2203)
    intent, made = an_intent(asked, runtime="12h")
    refuse_move(asked, intent, made, cluster="train", ahead=AWS_AHEAD, now=NOW)
    assert made.deadline.at == BORN + 10 * HOUR


def test_a_budget_of_which_nobody_can_say_when_it_is_spent_refuses_no_end() -> None:
    asked = DeadlineRequest(until=BORN + 10 * HOUR)
    intent, made = an_intent(asked, budget_usd=1000)
    unknown = dataclasses.replace(made, deadline=dataclasses.replace(made.deadline, budget_at=None))
    refuse_move(asked, intent, unknown, cluster="train", ahead=AWS_AHEAD, now=NOW)


@pytest.mark.parametrize(("is_rehearsal", "too_late_s", "in_time_s"), [(False, 179, 180), (True, 9, 10)])
def test_close_to_its_end_a_cluster_is_not_moved_later(is_rehearsal: bool, too_late_s: int, in_time_s: int) -> None:
    def refuse(left_s: int) -> None:
        before = BORN + timedelta(seconds=left_s)
        refuse_too_late(before, cluster="train", is_rehearsal=is_rehearsal, shown="stacks/train", now=BORN)

    with pytest.raises(CapExceeded, match="a deadline is not moved later") as refusal:
        refuse(too_late_s)
    assert refusal.value.hint == "clusterctl down stacks/train && clusterctl up stacks/train"
    refuse(in_time_s)
    with pytest.raises(CapExceeded, match="train ended at 11:59 UTC; down and then up begin another run"):
        refuse(-60)  # somebody thought about the price until then


def test_a_budget_below_what_was_spent_is_refused_with_the_sum() -> None:
    error = refused(DeadlineRequest(budget_usd=100))
    assert error.message == "a budget of $100.00 is below what train has cost: about $220.16 over all runs"
    assert error.hint == "clusterctl cost --cluster train"


@pytest.mark.parametrize("runtime", ["12h", "24h"])
def test_a_higher_budget_moves_the_end_to_the_run_time_at_most(runtime: str) -> None:
    _, made = an_intent(DeadlineRequest(budget_usd=1e6), runtime=runtime)
    assert (made.deadline.reason, made.deadline.at) == ("runtime", made.deadline.runtime_at)


def test_longer_counts_from_the_end_that_holds() -> None:
    changes = DeadlineRequest(by=2 * HOUR).changes({}, base=BORN + 12 * HOUR)
    assert changes == {
        "extended-from": "2026-03-02T00:00:00+00:00",
        "until": "2026-03-02T02:00:00+00:00",
    }
    assert DeadlineRequest(budget_usd=50).changes({}, base=BORN) == {
        "extended-from": BORN.isoformat(),
        "budget_usd": "50.00",
        "extended-budget": '{"to": "50.00", "from": null}',
    }


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        (DeadlineRequest(by=HOUR), "clusterctl extend --until 2026-03-01T14:00:00Z --cluster train"),
        (DeadlineRequest(budget_usd=50), "clusterctl extend --budget 50.00 --cluster train"),
        (
            DeadlineRequest(until=NOW, budget_usd=50),
            "clusterctl extend --until 2026-03-01T14:00:00Z --budget 50.00 --cluster train",
        ),
    ],
)
def test_the_command_that_is_offered_asks_for_the_same_end_whenever_it_is_typed(
    asked: DeadlineRequest, command: str
) -> None:
    assert asked.again("train", BORN + 2 * HOUR) == command


def test_what_is_added_is_the_rate_times_the_longer_time_and_nothing_for_an_earlier_end() -> None:
    _, made = an_intent(DeadlineRequest())
    later = Move(before=BORN + 2 * HOUR, after=BORN + 4 * HOUR)
    assert later.is_later
    assert later.added(made).until_deadline_usd == pytest.approx(2 * (4 * (55.04 + 200 * 0.08 / 730) + 0.005 + 0.045))
    earlier = Move(before=later.after, after=later.before)
    assert not earlier.is_later
    assert earlier.added(made) == Spending(usd_per_hour=0.0, until_deadline_usd=0.0)


def test_an_unknown_price_adds_an_unknown_sum() -> None:
    _, made = an_intent(DeadlineRequest())
    unknown = dataclasses.replace(made, price=dataclasses.replace(made.price, total_usd_per_hour=None))
    assert Move(before=BORN, after=BORN + HOUR).added(unknown).until_deadline_usd is None


def test_the_question_names_nodes_time_and_what_is_added() -> None:
    _, made = an_intent(DeadlineRequest())
    later = Move(before=BORN + 5 * HOUR, after=BORN + 7 * HOUR)
    assert move_effect(made, later, now=NOW) == (
        "4 nodes run 2 h longer, until 19:00 UTC instead of 17:00 UTC: $440.60 more at $220.30/h"
    )
    earlier = Move(before=later.after, after=later.before)
    assert move_effect(made, earlier, now=NOW).startswith("4 nodes end 2 h earlier, at 17:00 UTC instead of 19:00")


def test_a_node_that_was_not_told_is_named_with_what_it_means() -> None:
    later = Move(before=BORN + 5 * HOUR, after=BORN + 7 * HOUR)
    earlier = Move(before=later.after, after=later.before)
    assert untaken_line("train-3", later, "no answer", now=NOW) == "train-3: still ends at 17:00 UTC (no answer)"
    line = untaken_line("train-3", earlier, "no answer", now=NOW)
    assert line == "train-3: would itself run until 19:00 UTC; AWS ends it at 17:00 UTC (no answer)"


def membership(*, deadline: str, members: int, instances: int) -> StackState:
    """A state with these, as far as they are looked at."""
    rows = [{"slot": slot, "instance_id": f"i-{slot}"} for slot in range(members)]
    own = StateResource(
        urn="u::m", type="clusterctl:index:Membership", id="x", outputs={"deadline": deadline, "members": rows}
    )
    return StackState(resources=(own, *machines(range(instances))))


@pytest.mark.parametrize(
    ("state", "words", "hint"),
    [
        (StackState(), "has no nodes", "clusterctl up stacks/train"),
        (membership(deadline=BORN.isoformat(), members=0, instances=0), "has no nodes", "clusterctl up stacks/train"),
        (
            membership(deadline=BORN.isoformat(), members=2, instances=2),
            "ended at 12:00 UTC",
            "clusterctl down stacks/train && clusterctl up stacks/train",
        ),
        (
            membership(deadline=(NOW + HOUR).isoformat(), members=2, instances=1),
            "left 1 of 2 nodes",
            "clusterctl up stacks/train",
        ),
    ],
)
def test_without_a_whole_cluster_that_runs_there_is_no_deadline_to_move(
    state: StackState, words: str, hint: str
) -> None:
    with pytest.raises(ClusterctlError) as error:
        refuse_half_made(state, cluster="train", shown="stacks/train", now=NOW)
    assert words in error.value.message
    assert error.value.hint == hint
