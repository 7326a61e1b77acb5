"""Why a command that is kept running does not run any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any  # fields of a dataclass

import pytest
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.kept_running import reason
from clusterctl.ssh.results import NodeResult


@pytest.mark.parametrize(
    ("result", "complaint", "message"),
    [
        ({"failure": NodeFailure("lost", "the connection broke")}, b"", "the connection broke"),
        ({"exit_code": 127}, b"sh: python3: not found\n", "it ended: sh: python3: not found"),
        ({"exit_code": 1}, b"", "it ended: exit 1"),
    ],
)
def test_the_reason_is_the_failure_else_the_commands_last_words(
    result: Mapping[str, Any], complaint: bytes, message: str
) -> None:
    facts: dict[str, Any] = {"exit_code": None, "failure": None, **result}
    whole = NodeResult(slot=0, name="train-0", signal=None, stdout=b"", stderr=b"", duration_s=1, **facts)
    assert reason(whole, complaint).message == message
