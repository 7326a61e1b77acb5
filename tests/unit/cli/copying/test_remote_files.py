"""A node's files over SFTP, where SFTP itself says too little."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast  # a stand-in for paramiko's client

import paramiko
import pytest
from clusterctl.copying.files import CopyFailed
from clusterctl.copying.remote_files import NO_WORDS, RemoteFiles
from clusterctl.ssh.single.transport import CommandResult, NodeConnection


class ShellThatSays:
    """The node's shell; each command ends the same way."""

    def __init__(self, stderr: bytes) -> None:
        self._stderr = stderr
        self.lines: list[str] = []

    def run(self, line: str, timeout_s: float) -> CommandResult:
        self.lines.append(line)
        return CommandResult(exit_code=1 if self._stderr else 0, stdout=b"", stderr=self._stderr)


class SftpWithoutWords:
    """Creates nothing, and has no code for the reason."""

    def get_channel(self) -> None:
        return None

    def open(self, path: str, mode: str) -> Any:
        if mode == "x+b":
            raise OSError(NO_WORDS)
        raise FileNotFoundError(path)


def files_on(shell: ShellThatSays) -> RemoteFiles:
    return RemoteFiles(cast(NodeConnection, shell), cast(paramiko.SFTPClient, SftpWithoutWords()))


def write(files: RemoteFiles, source: Path) -> None:
    source.write_bytes(b"x")
    files.resume_write("/data/.x.clusterctl-0", 0, lambda moved: None, source=source, size_bytes=1)


def test_where_sftp_has_no_word_for_it_the_nodes_shell_says_why_nothing_can_be_written(tmp_path: Path) -> None:
    shell = ShellThatSays(b"touch: cannot touch '/data/.x.clusterctl-0': Read-only file system\n")
    with pytest.raises(CopyFailed, match=r"^/data cannot be written: Read-only file system$"):
        write(files_on(shell), tmp_path / "x")


def test_a_failure_that_the_shell_does_not_share_stays_as_sftp_tells_it(tmp_path: Path) -> None:
    shell = ShellThatSays(b"")
    with pytest.raises(OSError, match=NO_WORDS):
        write(files_on(shell), tmp_path / "x")
    assert len(shell.lines) == 1
