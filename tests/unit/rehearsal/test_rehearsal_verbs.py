"""The verbs of a rehearsal as a program."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusterctl_rehearsal.verbs import instant, main


@pytest.mark.parametrize("argv", [["list"], ["clean", "--all"], ["region", "stop"]])
def test_a_home_that_can_be_none_is_said_in_a_sentence(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path / "file"))
    assert main(argv) == 1
    assert "next: unset CLUSTERCTL_HOME" in capsys.readouterr().err


def test_a_reader_that_has_enough_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["bill"]) == 0


@pytest.mark.parametrize("argv", [["bill"], ["--help"], ["fault", "--help"]])
def test_a_full_disk_behind_stdout_is_not_the_home_s(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(argv) == 1
    assert capsys.readouterr().err == "clusterctl rehearse: stdout cannot be written: No space left on device\n"


def test_a_fault_tells_what_it_wants_and_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    assert main(["fault", "kill", "--help"]) == 0
    assert capsys.readouterr().out == "usage: clusterctl rehearse fault kill NODE\n\nthe machine dies at once\n"
    assert main(["fault", "stop-region", "-h"]) == 0
    assert capsys.readouterr().out.startswith("usage: clusterctl rehearse fault stop-region\n")


def test_json_is_indented_as_that_of_every_other_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", str(tmp_path))
    assert main(["bill", "--json"]) == 0
    assert capsys.readouterr().out.startswith('{\n  "')


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00", "2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00"])
def test_a_bill_is_counted_up_to_an_instant_in_utc_wherever_the_computer_stands(text: str) -> None:
    assert instant(text) == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_what_is_no_instant_is_refused_with_one_that_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bill", "--until", "yesterday"])
    assert left.value.code == 2
    assert "'yesterday' is no instant; write 2026-01-31T12:00:00" in capsys.readouterr().err
