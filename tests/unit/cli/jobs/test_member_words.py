"""What a member of a job says is believed only where it is of the right shape and size."""

from __future__ import annotations

import json
from typing import Any  # JSON

import pytest
from clusterctl.on_node.job.channel import LONGEST_LINE
from clusterctl.on_node.job.coordination import Coordination
from clusterctl.on_node.job.member_words import bounded, checked_words, names_of
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.jobs.job_specs import RANK_END, spec

WORDS: dict[str, Any] = {"job": "first", "attempt": 1, "slot": 3, "phase": "running"}
WARNING = {"ends_s": 1e9, "stage": 2, "why": "the cluster's deadline"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_a_failure_is_of_the_node_that_tells_it() -> None:
    (failure,) = checked_words({**WORDS, "failures": [{**RANK_END, "slot": 1, "name": "train-1"}]}, names_of(spec()))[
        "failures"
    ]
    assert failure == {**RANK_END, "slot": 3, "name": "train-3"}


def test_what_a_launcher_s_end_and_marks_say_is_kept() -> None:
    launcher = {**RANK_END, "rank": None, "local_rank": None}
    vanished = {**RANK_END, "is_vanished": True, "is_out_of_memory": "yes"}
    found = checked_words({**WORDS, "failures": [launcher, vanished]}, names_of(spec()))["failures"]
    assert [(row["rank"], row.get("is_vanished"), "is_out_of_memory" in row) for row in found] == [
        (None, None, False),
        (4, True, False),
    ]


def test_orders_and_a_warning_are_passed_on_as_they_are_said() -> None:
    order = {"id": "1.order", "slot": 1, "command": "orted"}
    found = checked_words({**WORDS, "orders": [order], "warning": WARNING}, names_of(spec()))
    assert (found["orders"], found["warning"]) == ([order], WARNING)


@pytest.mark.parametrize(
    "odd",
    [
        {"slot": 2},
        {"slot": True},
        {"slot": "3"},
        {"phase": "asleep"},
        {"phase": None},
        {"warning": {**WARNING, "ends_s": float("nan")}},
        {"warning": {**WARNING, "ends_s": "soon"}},
        {"warning": {**WARNING, "ends_s": 10**400}},
        {"warning": {**WARNING, "stage": "last"}},
        {"warning": {"ends_s": 5.0}},
        {"warning": 5},
        {"failures": {"rank": 1}},
        {"failures": [5]},
        {"failures": [{}]},
        {"failures": [{**RANK_END, "at_s": float("inf")}]},
        {"failures": [{**RANK_END, "signal": 10**30}]},
        {"failures": [{**RANK_END, "rank": None, "lines": []}]},
        {"failures": [RANK_END] * 1025},
        {"orders": [{"id": "1.order", "slot": 7, "command": "orted"}]},
        {"orders": [{"id": 1, "slot": 1, "command": "orted"}]},
        {"orders": "orted"},
    ],
)
def test_odd_words_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 which words are wrong is nobody's business
        checked_words({**WORDS, **odd}, names_of(spec()))


@given(st.dictionaries(st.sampled_from(["slot", "phase", "failures", "orders", "warning", "is_cancelled"]), JSON))
def test_whatever_a_member_says_the_coordinator_can_go_on_deciding(odd: dict[str, Any]) -> None:
    coordination = Coordination(spec(), 0.0)
    try:
        words = checked_words({**WORDS, **odd}, names_of(spec()))
    except ValueError:
        return
    coordination.receive(words["slot"], words)
    for now_s in (0.1, 1.0, 70.0, 200.0):
        assert json.dumps(coordination.look(now_s, 1_000_000.0 + now_s, None), allow_nan=False)


def test_many_failures_with_long_last_words_fit_into_a_line_between_supervisors() -> None:
    long = {**RANK_END, "lines": ["é" * 2000] * 20}
    rows = bounded([long] * 64)
    assert len(json.dumps(rows)) < LONGEST_LINE / 2
    assert [row["code"] for row in rows] == [7] * 64
    assert rows[0] == long
    assert rows[-1]["lines"] == ["é" * 100]
