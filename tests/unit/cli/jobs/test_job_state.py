"""One job out of what all its nodes say of it, and how that is shown."""

from __future__ import annotations

from typing import Any  # what a node says

import pytest
from clusterctl.jobs.following import OutputLine
from clusterctl.jobs.job_state import chosen_attempt, job_states, merged
from clusterctl.jobs.shown import ended_text, line_json, line_text, state_json, state_text
from clusterctl.on_node.job import judge
from clusterctl_infra.errors import UsageError

from tests.unit.cli.jobs.job_specs import spec

FAILURE = {
    "slot": 3,
    "name": "train-3",
    "rank": 4,
    "local_rank": 0,
    "at_s": 5.0,
    "code": 7,
    "signal": None,
    "lines": ["Traceback", "ValueError: no"],
}
FAILED = judge.outcome(judge.FAILED, "", [FAILURE])
LOST = judge.outcome(judge.LOST, "Node 1 was lost: its supervisor is gone", [])


def reported(state: str, outcome: object = None, since_s: float = 10.0) -> dict[str, Any]:
    return {"state": state, "since_s": since_s, **({} if outcome is None else {"outcome": outcome})}


@pytest.mark.parametrize(
    ("by_slot", "state", "exit_code"),
    [
        ({1: reported("starting"), 3: reported("running")}, "running", None),
        ({1: reported("failed", FAILED), 3: reported("stopping")}, "stopping", None),
        ({1: reported("failed", FAILED), 3: reported("failed", FAILED)}, "failed", 7),
        ({1: reported("lost", LOST), 3: reported("failed", FAILED)}, "failed", 7),
        ({1: reported("lost", LOST)}, "lost", 255),
        ({}, "lost", 255),
    ],
)
def test_a_job_is_over_when_all_that_answer_say_so(
    by_slot: dict[int, dict[str, Any]], state: str, exit_code: int | None
) -> None:
    job = merged(spec(), by_slot)
    assert (job.state, job.exit_code) == (state, exit_code)
    assert job.unheard == tuple(slot for slot in (1, 3) if slot not in by_slot)


def test_an_attempt_is_chosen_by_its_number_and_one_that_never_was_is_named() -> None:
    job = merged(spec(attempt=3), {1: reported("running")})
    assert [chosen_attempt(job, wanted) for wanted in (None, 1, 3)] == [3, 1, 3]
    with pytest.raises(UsageError, match="has the attempts 1 to 3, no attempt 4"):
        chosen_attempt(job, 4)
    with pytest.raises(UsageError, match="has only attempt 1, no attempt 2"):
        chosen_attempt(merged(spec(), {}), 2)


def test_a_node_that_lies_about_a_job_changes_nothing_of_it() -> None:
    lie = {"spec": spec(members=[{"slot": 3, "name": "train-3", "nproc": 1}]), "state": reported("succeeded")}
    true = {"spec": spec(), "state": reported("running")}
    found = job_states({1: {"jobs": [true]}, 2: {"jobs": [true]}, 3: {"jobs": [lie]}})
    assert [job.slots for job in found] == [(1, 3)]


def test_jobs_that_go_on_come_first_and_then_the_newest() -> None:
    rows = [
        {"spec": spec(job="old"), "state": reported("failed", FAILED, since_s=1.0)},
        {"spec": spec(job="new"), "state": reported("failed", FAILED, since_s=9.0)},
        {"spec": spec(job="now"), "state": reported("running", since_s=5.0)},
    ]
    assert [job.name for job in job_states({1: {"jobs": rows}, 3: {"jobs": []}})] == ["now", "new", "old"]


def test_the_end_names_the_cause_its_last_words_and_what_shows_more() -> None:
    job = merged(spec(), {1: reported("failed", FAILED), 3: reported("failed", FAILED)})
    assert ended_text(job).splitlines() == [
        "first: failed: Node 3 (train-3): rank 4 (local rank 0) exited with code 7",
        "  | Traceback",
        "  | ValueError: no",
        "  next: clusterctl job logs first --node 3",
    ]
    assert "Node 1 (train-1)  failed  4 ranks\n" in f"{state_text(job)}\n"
    assert state_json(job)["exit_code"] == 7


def test_a_cause_that_says_no_more_than_the_state_is_not_shown() -> None:
    outcome = {"state": "cancelled", "cause": "it was cancelled", "exit_code": 130}
    job = merged(spec(), {1: reported("cancelled", outcome), 3: reported("cancelled", outcome)})
    assert ended_text(job) == "first: cancelled"
    assert state_json(job)["cause"] == "it was cancelled"


def test_a_job_of_some_gpus_shows_which() -> None:
    members = [{**member, "gpu_indices": [0, 1, 2, 5]} for member in spec()["members"]]
    assert "failed  4 ranks  GPUs 0-2,5\n" in state_text(merged(spec(members=members), {1: reported("failed", FAILED)}))


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ({"code": None, "signal": 9}, "rank 4 (local rank 0) was killed by signal 9"),
        ({"code": None, "signal": 9, "is_out_of_memory": True}, "was killed: the node had no memory left"),
        ({"rank": None, "lines": ["the launcher ended with code 1 before its ranks did"]}, "the launcher ended with"),
    ],
)
def test_how_a_rank_ended_is_told(failure: dict[str, Any], text: str) -> None:
    assert text in judge.outcome(judge.FAILED, "", [{**FAILURE, **failure}])["cause"]


def test_a_line_says_its_rank_where_a_node_has_several() -> None:
    line = OutputLine(slot=1, at_s=0.5, rank="3", text="loss 1")
    assert line_text(line, has_ranks=False) == "[Node 1] [00:00:00] loss 1"
    assert line_text(line, has_ranks=True) == "[Node 1] [00:00:00] [rank 3] loss 1"
    for cluster in ("train", "train@rehearsal", "train@hosts"):
        assert line_text(line, has_ranks=True, cluster=cluster) == "[train-1] [00:00:00] [rank 3] loss 1"
    assert line_json(line)["rank"] == 3
