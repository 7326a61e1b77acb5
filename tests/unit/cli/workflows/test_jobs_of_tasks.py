"""Workflows read from their jobs: the newest job of each task, as `workflow show` and `--json` show it."""

from __future__ import annotations

from typing import Any  # JSON

import pytest
from clusterctl.jobs.job_state import JobState, merged
from clusterctl.jobs.known import KnownJobs
from clusterctl.on_node.job import judge
from clusterctl.workflows.course import plans_json, plans_of
from clusterctl.workflows.jobs_of_tasks import known_workflow, workflow_json, workflow_text, workflows_of
from clusterctl_infra.errors import NothingMatched

from tests.unit.cli.jobs.job_specs import spec
from tests.unit.cli.workflows.workflow_files import SCALED, read

PLANS = plans_json(plans_of(read(SCALED).workflow))


def job(task: str, state: str, *, tries: int = 1, since_s: float = 0.0, **workflow: Any) -> JobState:
    words = {"id": "train-1a2b", "name": "train", "group": "training", "task": task, "tries": tries, "plans": PLANS}
    own = spec(job=f"{task}-{tries}", workflow={**words, **workflow})
    outcome = {"state": state, "exit_code": judge.EXIT_CODES.get(state, 3), "cause": "", "failure": None}
    row = {"state": state, "since_s": since_s, "outcome": outcome if state in judge.FINAL else None}
    return merged(own, {1: row, 3: row})


def test_a_workflow_is_what_the_newest_jobs_of_its_tasks_say() -> None:
    jobs = [
        job("master", judge.FAILED),
        job("master", judge.RUNNING, tries=2),
        job("worker_1", judge.SUCCEEDED),
        merged(spec(), {}),
    ]
    (found,) = workflows_of(jobs)
    assert found.state == "running"
    assert [each.name for each in found.live()] == ["master-2"]
    assert workflow_text(found).splitlines() == [
        "train-1a2b: running",
        "  group training: running",
        "    master (lead): running, try 2, Node 1 (train-1), master-2",
        "    worker_1: succeeded, exit code 0, Node 1 (train-1), worker_1-1",
    ]


def test_a_task_that_was_not_started_is_shown_so() -> None:
    (found,) = workflows_of([job("master", judge.SUCCEEDED)])
    assert "    worker_1: not started" in workflow_text(found).splitlines()
    groups: Any = workflow_json(found)["groups"]
    assert groups[0]["tasks"][1] == {
        "task": "worker_1",
        "is_lead": False,
        "state": "waiting",
        "exit_code": None,
        "tries": 0,
        "job": None,
        "slot": None,
        "node": None,
    }


@pytest.mark.parametrize(
    "broken",
    [
        {"plans": 4},
        {"plans": [{}]},
        {"tries": "many"},
        {"plans": [{**PLANS[0], "lead": "nobody"}]},
        {"plans": [{**PLANS[0], "after": ["nowhere"]}]},
    ],
)
def test_what_a_node_says_of_a_workflow_is_left_out_where_it_is_none(broken: dict[str, Any]) -> None:
    assert workflows_of([job("master", judge.RUNNING, **broken)]) == []


def test_a_workflow_that_nobody_knows_is_told_with_the_nearest() -> None:
    known = KnownJobs(jobs=[job("master", judge.RUNNING)], unheard=[])
    assert known_workflow(known, "train-1a2b", "train").name == "train"
    with pytest.raises(NothingMatched, match=r"no workflow 'train-1a2c' on train \(did you mean train-1a2b\?\)"):
        known_workflow(known, "train-1a2c", "train")
