"""A run that changes the cluster now, or one that did and has not come to its end."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from clusterctl.engine.processes import is_alive
from clusterctl.engine.run_file import RunRecord, read_record
from clusterctl.home import Home


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """One run."""

    verb: str
    pid: int | None
    """The command that is at it now; None: it is gone, and its work is half done or was refused half way."""


def unfinished(cluster: str, home: Home) -> Unfinished | None:
    """The run in the cluster's run file; None where the last one came to a good end, or is another computer's."""
    return unfinished_of(read_record(home.run_file(cluster)))


def unfinished_of(record: RunRecord | None) -> Unfinished | None:
    """The same of a record that was read."""
    if record is None or (not record.is_of_this_boot and record.host != socket.gethostname()):
        return None
    lives = record.is_of_this_boot and is_alive(record.cli_pid, record.cli_ticks)
    return Unfinished(verb=record.verb, pid=record.cli_pid if lives else None)
