"""What a change of a cluster says of the jobs that run on it, and when it refuses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from clusterctl.lifecycle.running_jobs import ending_line, lost_line
from clusterctl_infra.errors import UsageError

AGAIN = "clusterctl replace --cluster train --node 2"


@dataclass(frozen=True, kw_only=True)
class _Case:
    """Jobs with their slots, and the line of `down` about them."""

    jobs: tuple[tuple[str, tuple[int, ...]], ...]
    line: str


@pytest.mark.parametrize(
    "case",
    [
        _Case(jobs=(("first", (0, 1, 2)),), line="  jobs     first on 0-2: it ends too"),
        _Case(jobs=(("first", (0,)), ("second", (3,))), line="  jobs     first on 0, second on 3: they end too"),
    ],
)
def test_down_names_the_jobs_that_end(case: _Case) -> None:
    assert ending_line(dict(case.jobs)) == case.line


def test_a_job_is_not_lost_unless_that_is_forced() -> None:
    with pytest.raises(UsageError) as refused:
        lost_line({"first": (2,), "second": (3,)}, machines=2, is_forced=False, again=AGAIN)
    assert str(refused.value) == "2 jobs would be lost, nothing was changed: first on 2, second on 3"
    assert refused.value.hint == f"clusterctl job wait first, or {AGAIN} --force"


@pytest.mark.parametrize(("machines", "lost"), [(1, "1 machine"), (3, "3 machines")])
def test_what_is_forced_names_the_jobs_that_are_lost(machines: int, lost: str) -> None:
    line = lost_line({"first": (2,)}, machines=machines, is_forced=True, again=AGAIN)
    assert line == f"  jobs     first on 2: lost with {lost}"
