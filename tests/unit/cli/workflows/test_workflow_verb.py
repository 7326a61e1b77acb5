from __future__ import annotations

import pytest
from click.testing import CliRunner
from clusterctl.commands.workflow import command, with_repeated_flags
from clusterctl_infra.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("f.yaml --set a=1 b=2", "f.yaml --set a=1 --set b=2"),
        ("--set a=1 b=2 f.yaml c=3", "--set a=1 --set b=2 f.yaml c=3"),
        ("--set a=1 --set-env A=1 B=2 --json", "--set a=1 --set-env A=1 --set-env B=2 --json"),
        ("--set-string a=1 -- b=2", "--set-string a=1 -- b=2"),
        ("--set f.yaml a=1", "--set f.yaml --set a=1"),
    ],
)
def test_a_flag_takes_several_values_as_in_osmo(typed: str, meant: str) -> None:
    assert with_repeated_flags(typed.split()) == meant.split()


@pytest.mark.parametrize("words", [[], ["train-3f9a"]])
def test_exec_wants_a_workflow_and_a_task_before_any_cluster_is_asked(words: list[str]) -> None:
    done = CliRunner().invoke(command, ["exec", *words], obj=None)
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == "write: clusterctl workflow exec ID TASK [-- COMMAND]"
