"""One node's reports to slot 0, and what it does about slot 0's lines; a pipe stands for the connection."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any  # parsed JSON

import pytest
from clusterctl_bootstrap.node import register
from clusterctl_bootstrap.node.idle_node import report, wanted_end

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born, pushed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with one terminal."""
    born(tmp_path)
    (tmp_path / "var/lib/clusterctl/cluster.json").write_text(pushed(gpus_per_node=0))
    register.open_register(tmp_path, FakeOutside())
    (tmp_path / "dev/pts").mkdir(parents=True)
    (tmp_path / "dev/pts/0").touch()
    return tmp_path


def reports(root: Path, lines: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The reports that have reached slot 0 when it has sent `lines` and hangs up; buffered ones have not."""
    ours, theirs = os.pipe()
    os.write(theirs, lines.encode())
    os.close(theirs)
    sent = io.BytesIO()
    with os.fdopen(ours) as stdin, io.TextIOWrapper(sent) as stdout, monkeypatch.context() as patched:
        patched.setattr("sys.stdin", stdin)
        patched.setattr("sys.stdout", stdout)
        assert report(root, 1.0, ("0.0.0.0", 0), FakeOutside()) == 0
        arrived = sent.getvalue()
    return [json.loads(line) for line in arrived.splitlines() if line.startswith(b"{")]


def test_each_report_is_sent_at_once_and_answers_what_was_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row["asked"] for row in reports(root, "look 7\n", monkeypatch)] == [0, 7]


def test_a_warning_is_told_to_everybody_on_the_machine_and_ends_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports(root, "warn train ends in 4 minutes\n", monkeypatch)
    assert "train ends in 4 minutes" in (root / "dev/pts/0").read_text()
    assert wanted_end(root) == ""


def test_a_node_that_is_told_to_end_wants_to_end_for_that_reason(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports(root, "end idle since 2026-11-21T16:52:00Z\n", monkeypatch)
    assert wanted_end(root) == "idle since 2026-11-21T16:52:00Z"
    assert (root / "dev/pts/0").read_text() == ""
