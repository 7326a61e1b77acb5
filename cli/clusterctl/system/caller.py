"""Who asks and from where, so that one process can act for another."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clusterctl.home import Home, home_directory


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The process that a command acts for: its variables, folder and stdin."""

    environ: Mapping[str, str]
    folder: Path
    """Where a relative path begins."""
    stdin: IO[bytes] | None

    @property
    def home(self) -> Home:
        """Where clusterctl keeps what it knows for this person."""
        return home_directory(self.environ)

    @property
    def ssh_dir(self) -> Path:
        """The person's keys and configuration for SSH."""
        person = self.environ.get("HOME")
        return (Path(person) if person else Path.home()) / ".ssh"


def this_process() -> Caller:
    """This process as the caller; a relative path stays as it was typed."""
    return Caller(environ=os.environ, folder=Path(), stdin=sys.stdin.buffer)
