"""A rehearsal whose home is full says where that is, and goes on serving."""

from __future__ import annotations

import errno
import io
import sys

import pytest
from clusterctl_rehearsal.full_disk import cannot_keep, log_traceback, message_for_client

FULL = OSError(errno.ENOSPC, "No space left on device")
ENVIRON = {"CLUSTERCTL_HOME": "/a home"}


def test_a_full_home_is_looked_at_and_another_is_left() -> None:
    assert cannot_keep(FULL, ENVIRON) == ("/a home/rehearsal: no space left on device", "df -h '/a home/rehearsal'")
    is_file = OSError(errno.ENOTDIR, "Not a directory", "/a home/x")
    assert cannot_keep(is_file, ENVIRON) == ("/a home/x: not a directory", "unset CLUSTERCTL_HOME")


def test_the_plugin_gets_the_command_with_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERCTL_HOME", "/home")
    assert message_for_client(FULL) == "/home/rehearsal: no space left on device; next: df -h /home/rehearsal"
    assert message_for_client(KeyError("x")) == "the rehearsed region failed (its log says why): KeyError('x')"


class FullLog(io.StringIO):
    def write(self, text: str) -> int:
        raise FULL


def test_a_log_that_takes_nothing_ends_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", FullLog())
    try:
        raise KeyError("x")
    except KeyError:
        log_traceback()
