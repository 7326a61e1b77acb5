"""The flags of `clusterctl workflow`: several values behind one, and those that do not go together."""

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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("submit w.yaml --up . --cluster train", "--up . and --cluster train: give only one of them"),
        ("submit w.yaml --up . --dry-run", "--dry-run starts nothing, and --up a cluster: give only one of them"),
        ("list --up .", "workflow list brings no cluster up: --up belongs to submit"),
        ("submit w.yaml --rehearse", "--rehearse belongs to --up STACK"),
        ("submit w.yaml --yes", "--yes belongs to --up STACK"),
    ],
)
def test_flags_that_do_not_go_together_are_refused_before_any_file_is_read(words: str, message: str) -> None:
    done = CliRunner().invoke(command, words.split(), obj=None)
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == message
