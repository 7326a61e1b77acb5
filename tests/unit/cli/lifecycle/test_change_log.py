"""Which logs are a cluster's own, so that a run deletes no others."""

from __future__ import annotations

import pytest
from clusterctl.lifecycle.change import is_log_of


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("train-up-20261126-120000.jsonl", True),
        ("train-destroy-20261126-120000.jsonl", True),
        ("train-eval-up-20261126-120000.jsonl", False),
        ("train@rehearsal-up-20261126-120000.jsonl", False),
        ("train-up-20261126-120000.err", False),
        ("crash-20261126-120000-17.log", False),
    ],
)
def test_a_log_is_of_the_cluster_whose_whole_name_it_has(name: str, is_own: bool) -> None:
    assert is_log_of("train", name) is is_own


def test_a_rehearsals_logs_are_its_own() -> None:
    assert is_log_of("train@rehearsal", "train@rehearsal-up-20261126-120000.jsonl")
