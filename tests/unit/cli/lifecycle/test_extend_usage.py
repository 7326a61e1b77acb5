"""What `clusterctl extend` says to words that mean no new deadline."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from clusterctl.commands.extend import command
from clusterctl_infra.errors import UsageError


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "extend by how much?"),
        (["2h", "--until", "17:30"], "2h and --until 17:30: give only one of them"),
        (["-1h"], "-1h: extend only adds time"),
        (["--cluster", "train", "-30m"], "for an earlier end, give a moment by --until"),
        (["2"], "a number without a unit; write 90m, 12h, 2d or 1h30m"),
        (["31d"], "longer than 30d"),
        (["--until", "tomorrow"], "write 17:30"),
        (["--budget", "-5"], "--budget '-5': a budget is at least one cent; clusterctl down ends the cluster now"),
        (["--budget", "0"], "at least one cent"),
        (["--budget", "0.001"], "at least one cent"),
        (["--budget", "0.009"], "at least one cent"),
        (["--budget", "$2,500"], "did you mean 2500?"),
    ],
)
def test_words_that_mean_no_deadline_are_refused_before_any_cluster_is_looked_for(
    words: list[str], reason: str
) -> None:
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, UsageError)
    assert reason in done.exception.message
