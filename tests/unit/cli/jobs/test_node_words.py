"""What a node answers about jobs is read by verb, each field of its kind, before anything uses it."""

from __future__ import annotations

from typing import Any  # JSON

import pytest
from clusterctl.jobs.node_words import MOST_LOCK, checked_answer
from clusterctl_infra.strict_json import NotAsExpected

from tests.fuzz.job_samples import JOBS

VERBS = ("facts", "take", "pull", "lock", "ready", "cancel", "list", "events")


def spec_with(**changes: Any) -> dict[str, Any]:
    row = JOBS["jobs"][0]
    return {"jobs": [{**row, "spec": {**row["spec"], **changes}}]}


@pytest.mark.parametrize("verb", VERBS)
def test_a_sound_answer_is_taken_and_an_empty_one_is_not(verb: str) -> None:
    assert checked_answer(verb, JOBS | {"gpus": 8 if verb == "facts" else None}) is not None
    with pytest.raises(NotAsExpected, match="missing"):
        checked_answer(verb, {})


@pytest.mark.parametrize(
    ("verb", "change", "why"),
    [
        ("events", {"events": 5}, "events is 5: not a list"),
        ("events", {"events": [None]}, r"events\[0\] is None, not an object"),
        ("events", {"events": [{"event": "running", "at_s": "now"}]}, "at_s is 'now': not a number"),
        ("lock", {"lock": ["torch"]}, "lock is .*: not a text"),
        ("lock", {"lock": "x" * (MOST_LOCK + 1)}, f"longer than {MOST_LOCK} characters"),
        ("ready", {"version": None}, "version is missing"),
        ("facts", {"engine": None}, "engine is missing"),
        ("facts", {"shared": 5}, "shared is 5: not a text"),
        ("list", spec_with(cluster_id=None), "cluster_id is missing"),
        ("list", spec_with(cluster_id="../../home"), "cluster_id is '../../home': no id of a cluster"),
        ("list", spec_with(launcher_options=5), "launcher_options is no list"),
        ("list", spec_with(shared=["/shared"]), "shared is .*: not a text"),
    ],
)
def test_an_odd_answer_is_refused_by_its_field(verb: str, change: dict[str, Any], why: str) -> None:
    with pytest.raises(NotAsExpected, match=why):
        checked_answer(verb, {**JOBS, **change})
