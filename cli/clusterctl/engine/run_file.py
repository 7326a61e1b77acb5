"""The file of a run under way, `runs/<cluster>.json`: who runs what since when, so that the next run can repair.

Beside it is a lock that the kernel releases when its holder dies, so that only one run at a time has a cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from clusterctl_infra.config.load import login_name
from clusterctl_infra.errors import EngineError
from clusterctl_infra.file_lock import Flock, try_lock
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.put_in_place import put_in_place
from clusterctl_infra.strict_json import Fields, NotAsExpected, parsed_object

from clusterctl.engine.engine_start import EngineStart, engine_start
from clusterctl.home import Home
from clusterctl.system.processes import LARGEST_PID, boot_id, find_process, is_alive

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run: the command line's process, and the token by which the engine and its plugins are known."""

    verb: str
    user: str
    host: str
    boot: str
    began_at: str
    cli_pid: int
    cli_ticks: int
    tokens: tuple[str, ...]
    """In the environment of every process that this run starts, and of those it found unfinished."""
    stack: str = ""
    """The stack as it is typed after `up`, from any folder; empty in the file of an older clusterctl."""
    engines: tuple[EngineStart, ...] = ()
    """The engine's starts that may have taken the stack's lock, those of unfinished earlier runs included."""
    trial: str = ""
    """The id of the trial that AWS is being asked for capacity with; empty: there is none."""
    trial_region: str = ""
    """The trial's region: by the next run cluster.yaml may name another. Empty in an older clusterctl's file."""

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the run is of this boot, so that its process ids are still valid."""
        return self.host == socket.gethostname() and self.boot == boot_id()


def new_record(verb: str, *, tokens: tuple[str, ...], stack: str, engines: tuple[EngineStart, ...] = ()) -> RunRecord:
    """The record of this very process."""
    own = find_process(os.getpid())
    return RunRecord(
        verb=verb,
        user=login_name(),
        host=socket.gethostname(),
        boot=boot_id(),
        began_at=datetime.now(UTC).isoformat(timespec="seconds"),
        cli_pid=os.getpid(),
        cli_ticks=0 if own is None else own.start_ticks,
        tokens=tokens,
        stack=stack,
        engines=engines,
    )


def read_record(path: Path) -> RunRecord | None:
    """The record in the file; None when there is none, or it is not readable as one."""
    try:
        row = parsed_object(path.read_bytes())
        return RunRecord(
            verb=row.text("verb"),
            user=row.text("user"),
            host=row.text("host"),
            boot=row.text("boot"),
            began_at=row.text("began_at"),
            cli_pid=row.whole("cli_pid", high=LARGEST_PID),
            cli_ticks=row.whole("cli_ticks"),
            tokens=row.texts("tokens"),
            stack=row.text_or_none("stack") or "",
            engines=tuple(_engine(start) for start in row.objects("engines")),
            trial=row.text_or_none("trial") or row.text_or_none("probe") or "",  # probe: an older clusterctl's
            trial_region=row.text_or_none("trial_region") or "",
        )
    except (OSError, NotAsExpected):
        return None


def _engine(row: Fields) -> EngineStart:
    row.moment("at")  # refuses what is no time
    return EngineStart(
        pid=row.whole("pid", high=LARGEST_PID),
        ticks=row.whole("ticks"),
        at=row.text("at"),
        host=row.text("host"),
        boot=row.text("boot"),
        machine=row.text("machine"),
        pids=row.text_or_none("pids") or "",
    )


def write_record(path: Path, record: RunRecord) -> None:
    """Puts the record in place, whole or not at all."""
    make_private_folder(path.parent)
    put_in_place(path, _text(record), mode=0o600, keeps_owner=True)


def note_engine(path: Path, pid: int) -> None:
    """Adds an engine that was just started to the record in the file, if there is one: no run fails because of that."""
    record = read_record(path)
    if record is not None:
        with contextlib.suppress(OSError):
            write_record(path, replace(record, engines=(*record.engines, engine_start(pid))))


@contextlib.contextmanager
def only_run(
    home: Home, cluster: str, *, verb: str, note: Callable[[str], None] | None = None, flock: Flock = fcntl.flock
) -> Iterator[IO[str]]:
    """Holds the cluster for this process while entered, and gives the lock's file.

    Raises EngineError naming who holds the cluster.

    That file says who holds it: not every holder is a run of the engine, and a run does not write its record at once.
    Where the file system has no locks, only what the files say keeps runs of this computer apart, and `note` says so.
    """
    path = home.run_file(cluster)
    make_private_folder(path.parent)
    with path.with_suffix(".lock").open("a") as lock:
        if not _hold(lock, path, cluster, flock) and note is not None:
            note(
                f"the file system of {home.path} has no locks: only Pulumi's own lock of the stack keeps a clusterctl "
                f"on another computer from changing {cluster} meanwhile"
            )
        with contextlib.suppress(OSError):  # a full disk: the next one cannot name this run
            lock.truncate(0)
            lock.write(_text(new_record(verb, tokens=(), stack="")))
            lock.flush()
        yield lock


def _text(record: RunRecord) -> str:
    return json.dumps({"version": VERSION, **asdict(record)})


def _hold(lock: IO[str], path: Path, cluster: str, flock: Flock) -> bool:
    """Whether the kernel holds a lock for us; False: the file system has none, and only the files tell who has it.

    Raises EngineError where another run has the cluster.
    """
    try:
        is_locked = try_lock(lock.fileno(), flock=flock)
    except BlockingIOError as e:
        raise _held_by(_living_record(path), cluster) from e
    if not is_locked and (record := _living_record(path)) is not None and record.cli_pid != os.getpid():
        raise _held_by(record, cluster)
    return is_locked


def _living_record(path: Path) -> RunRecord | None:
    """What the run that holds the cluster wrote about itself, if its process lives."""
    records = (read_record(path), read_record(path.with_suffix(".lock")))
    living = (record for record in records if record is not None and is_alive(record.cli_pid, record.cli_ticks))
    return next((record for record in living if record.is_of_this_boot), None)


def _held_by(record: RunRecord | None, cluster: str) -> EngineError:
    if record is None:
        return EngineError(f"another clusterctl is changing {cluster}", hint=f"clusterctl status --cluster {cluster}")
    return EngineError(
        f"clusterctl {record.verb} is changing {cluster}: started by {record.user} on {record.host} "
        f"(pid {record.cli_pid}) at {record.began_at}; wait for it, or end it",
        hint=f"kill -INT {record.cli_pid}",
    )
