"""What was begun or set and still counts: a run, an `extend` that was cut off, a size by a flag."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from datetime import datetime

from clusterctl_infra.config.flag_size import size_in_file
from clusterctl_infra.config.stack import read_stack_settings
from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import Inventory

from clusterctl.engine.run_file import RunRecord, read_record
from clusterctl.engine.stack_config import config_values, read_config
from clusterctl.engine.stack_plan import config_folder, size_note_of
from clusterctl.engine.whereabouts import whereabouts_of_cluster
from clusterctl.home import Home
from clusterctl.system.processes import is_alive


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A run that is under way, failed or was killed."""

    verb: str
    pid: int | None
    """The process that carries it out; None: it is gone, and left its work unfinished."""


def unfinished(cluster: str, home: Home) -> Unfinished | None:
    """The run in the cluster's run file; None where the last one succeeded, or is another computer's."""
    return unfinished_of(read_record(home.run_file(cluster)))


def unfinished_of(record: RunRecord | None) -> Unfinished | None:
    """The unfinished run that a record tells of; None where it tells of none."""
    if record is None or (not record.is_of_this_boot and record.host != socket.gethostname()):
        return None
    lives = record.is_of_this_boot and is_alive(record.cli_pid, record.cli_ticks)
    return Unfinished(verb=record.verb, pid=record.cli_pid if lives else None)


@dataclass(frozen=True, kw_only=True)
class HalfExtend:
    """An `extend` that is not finished: from which end, and to which: an instant, a budget, or both."""

    before: datetime
    until: datetime | None
    budget_usd: str | None
    """As it was typed."""


def size_note_here(inventory: Inventory, home: Home) -> str | None:
    """The line about a size that cluster.yaml does not give; None where it does, or this computer has no config."""
    with contextlib.suppress(ClusterctlError, ValueError, OSError):
        where = whereabouts_of_cluster(inventory)
        settings = read_stack_settings(config_folder(where.stack, home=home, rehearse=where.rehearse), where.stack.name)
        in_file = size_in_file(where.stack.cluster_file)
        return size_note_of(where.stack, settings, in_file=in_file, rehearse=where.rehearse)
    return None


def half_extend(inventory: Inventory, home: Home) -> HalfExtend | None:
    """The cluster's `extend` that is not finished; None if there is none, or this computer has no config of the
    cluster.
    """
    with contextlib.suppress(ClusterctlError, ValueError, OSError):
        where = whereabouts_of_cluster(inventory)
        folder = config_folder(where.stack, home=home, rehearse=where.rehearse)
        values = config_values(read_config(folder / where.stack.config_file.name))
        if (before := values.get("extended-from")) is not None:
            until = values.get("until")
            return HalfExtend(
                before=datetime.fromisoformat(before),
                until=None if until is None else datetime.fromisoformat(until),
                budget_usd=values.get("budget_usd"),
            )
    return None
