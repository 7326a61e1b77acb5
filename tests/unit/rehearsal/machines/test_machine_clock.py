"""The deadline of a process machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusterctl_rehearsal.machines.first_process import deadline, is_past

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-15T08:00:00Z", True),
        ("2027-01-15T07:59:59Z", True),
        ("2027-01-15T08:00:01Z", False),
        ("2027-01-15T10:00:00+02:00", True),
        ("soon", False),
        (None, False),
    ],
)
def test_a_machine_ends_at_its_deadline(text: str | None, expected: bool) -> None:
    assert is_past(text, NOW) is expected


def test_the_agents_file_beats_the_birth_certificate(tmp_path: Path) -> None:
    node, birth = tmp_path / "node.json", tmp_path / "birth.json"
    birth.write_text(json.dumps({"deadline": "birth"}))
    assert deadline((str(node), str(birth))) == "birth"
    node.write_text('{"half')
    assert deadline((str(node), str(birth))) == "birth"
    node.write_text(json.dumps({"deadline": "pushed"}))
    assert deadline((str(node), str(birth))) == "pushed"


def test_without_a_file_there_is_no_deadline(tmp_path: Path) -> None:
    assert deadline((str(tmp_path / "none"),)) is None
