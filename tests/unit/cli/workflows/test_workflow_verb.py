from __future__ import annotations

import pytest
from clusterctl.commands.workflow import with_repeated_flags


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
