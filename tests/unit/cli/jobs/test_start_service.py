"""How a job's keeper is started as a service, and the reason given where systemd does not answer."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from clusterctl.jobs.start import START_S
from clusterctl.on_node.job.keeper_service import (
    RELOAD_LOGIND,
    SERVICE_S,
    START_WITHIN_S,
    STARTED_WITHIN_S,
    start_service,
)
from clusterctl.on_node.job.layout import Layout, write_json

LOGIND_FILE = "run/systemd/logind.conf.d/50-clusterctl-job.conf"
SILENT = None
"""In place of an exit code: the command does not end."""


class Systemd:
    """Stands in for subprocess.run; the commands of a program end with `codes[program]`, else with 0."""

    def __init__(self, root: Path, codes: dict[str, int | None]) -> None:
        self._root = root
        self._codes = codes
        self.asked: list[Sequence[str]] = []
        self.waited_s = 0.0
        """How long the silent commands were waited for."""

    def __call__(
        self, argv: Sequence[str], *, stdin: int, stdout: int, stderr: int, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        self.asked.append(argv)
        assert (self._root / LOGIND_FILE).exists(), "it must be there before logind is asked to read it"
        code = self._codes.get(argv[0], 0)
        if code is SILENT:
            self.waited_s += timeout
            raise subprocess.TimeoutExpired(list(argv), timeout)
        return subprocess.CompletedProcess(argv, code, stderr=b"Failed to start: no bus\n" if code else b"")


def started(root: Path, **codes: int | None) -> tuple[str, list[Sequence[str]]]:
    why, systemd = asked_of_systemd(root, **codes)
    return why, systemd.asked


def asked_of_systemd(root: Path, **codes: int | None) -> tuple[str, Systemd]:
    layout, systemd = Layout(root), Systemd(root, {name.replace("_", "-"): code for name, code in codes.items()})
    layout.folder("first").mkdir(parents=True, exist_ok=True)
    write_json(layout.spec("first"), {"is_sudo": False})
    why = start_service(layout, "first", Path("/p.pyz"), ["python3", "keep", "first"], run=systemd)
    return why, systemd


def test_a_keeper_is_a_service_of_its_own(tmp_path: Path) -> None:
    why, asked = started(tmp_path)
    assert why == ""
    assert asked[-1][0] == "systemd-run"
    assert asked[-1][-3:] == ["python3", "keep", "first"]


@pytest.mark.parametrize("code", [0, 1, SILENT])
def test_each_job_tells_logind_to_leave_shared_memory_alone_as_an_earlier_one_may_have_failed(
    tmp_path: Path, code: int | None
) -> None:
    for _ in range(2):
        why, asked = started(tmp_path, systemctl=code)
        assert why == "", "the job runs all the same"
        assert asked[0] == RELOAD_LOGIND
        assert len(asked) == 2
    assert "RemoveIPC=no" in (tmp_path / LOGIND_FILE).read_text()


@pytest.mark.parametrize(
    ("code", "reason"), [(1, "Failed to start: no bus"), (SILENT, f"no answer within {SERVICE_S:g} s")]
)
def test_a_systemd_that_fails_or_is_silent_is_told_in_a_sentence(tmp_path: Path, code: int | None, reason: str) -> None:
    assert started(tmp_path, systemd_run=code)[0] == f"systemd-run: {reason}"


def test_a_node_says_why_a_job_did_not_start_before_the_computer_gives_up(tmp_path: Path) -> None:
    _, systemd = asked_of_systemd(tmp_path, systemctl=SILENT, systemd_run=SILENT)
    assert systemd.waited_s + STARTED_WITHIN_S <= START_WITHIN_S
    login_and_python_s = 20.0
    assert START_WITHIN_S + login_and_python_s <= START_S
