"""Flags of `clusterctl ssh` that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl.ssh.machines import chosen_machines
from clusterctl.ssh.request import WITHOUT_TERMINAL, refuse_beside_terminal, refuse_contradiction
from clusterctl_infra.errors import UsageError


def test_there_is_one_way_to_show_and_one_set_of_machines() -> None:
    refuse_contradiction(gather=True, as_json=False)
    with pytest.raises(UsageError, match="--gather and --json"):
        refuse_contradiction(gather=True, as_json=True)
    with pytest.raises(UsageError, match=r"--cluster train and --inventory lab\.json: give only one"):
        chosen_machines("train", Path("lab.json"))


@pytest.mark.parametrize("flag", WITHOUT_TERMINAL)
def test_what_needs_no_terminal_is_named_beside_one(flag: str) -> None:
    nothing: dict[str, object] = dict.fromkeys(WITHOUT_TERMINAL)
    refuse_beside_terminal(nothing)
    with pytest.raises(UsageError, match=f"^{flag} beside a login or --tty: "):
        refuse_beside_terminal({**nothing, flag: True})
