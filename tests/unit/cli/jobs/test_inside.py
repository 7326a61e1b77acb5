"""A command that is on its way into a job when that ends does not run outside of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from clusterctl.on_node.job.inside import keeper_of


def test_the_keeper_of_a_job_that_runs_is_named() -> None:
    assert keeper_of("train-1", {"job": "train-1", "keeper": [12, 3456]}) == (12, 3456)


@pytest.mark.parametrize("held", [None, {}, {"job": "train-1", "until_s": 5.0}])
def test_a_command_without_a_job_around_it_is_refused(held: Mapping[str, object] | None) -> None:
    with pytest.raises(ValueError, match="train-1 has just ended"):
        keeper_of("train-1", held)
