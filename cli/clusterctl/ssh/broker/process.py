"""The process that keeps connections between commands: a fork of the first command, which had opened them.

It listens on a socket in a folder that only this user can enter, and carries out what later commands ask of it. It ends
when no command has come for IDLE_S, when no connection is left, or when its folder is gone. It keeps no login key: the
keys are read anew for each command. Its memory may still hold some, so no other process may read it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_infra.private_home import make_private_folder

from clusterctl.ssh.broker.command_request import broker_request_from_bytes
from clusterctl.ssh.broker.frames import ACCEPTED, EXIT, GO, REFUSED, WITH_STDIN, Frames, frame
from clusterctl.ssh.broker.place import SOCKET_NAME, VARIABLE, is_same_person, opened, write_stamp
from clusterctl.ssh.broker.warm_command import warm_command
from clusterctl.ssh.fanout.canceller import Canceller
from clusterctl.ssh.fanout.link_pool import LinkPool

IDLE_S = 600.0
LOOK_S = 2.0
PR_SET_DUMPABLE = 4  # linux/prctl.h
OWN_NAME = "clusterctl: keeps connections (export CLUSTERCTL_WARM=no)"
MOST_DESCRIPTORS = 2
"""Stdin, and for a terminal the pipe through which what is typed comes."""
BACKLOG = 64
REQUEST_S = 10.0
"""How long a command may take to say what it wants."""
PACKAGES = {"clusterctl", "clusterctl_infra"}


class OwnCode:
    """The modules of ours that this process has loaded, and when their files were changed last."""

    def __init__(self) -> None:
        modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES]
        files = [file for module in modules if (file := module.__file__) is not None]
        self._changed_ns = {file: _changed_ns(file) for file in files}

    def is_changed(self) -> bool:
        """Whether another version was installed: this process would still behave like the old one."""
        return any(_changed_ns(file) != changed for file, changed in self._changed_ns.items())


def _changed_ns(file: str) -> int:
    """When the file was changed; -1 when it is gone."""
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return -1


@dataclass
class _State:
    """What the threads of this process share."""

    pool: LinkPool
    used_at: float = field(default_factory=time.monotonic)
    commands: int = 0
    """How many are being carried out."""
    changing: threading.Lock = field(default_factory=threading.Lock)
    code: OwnCode = field(default_factory=OwnCode)
    has_ended: bool = False
    """This process takes no more commands; those that it has begun go on to their end."""

    def is_outdated(self) -> bool:
        """Whether another version was installed meanwhile. Then the next command makes a process of that version."""
        self.has_ended = self.has_ended or self.code.is_changed()
        return self.has_ended


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """Where later commands connect: a listening socket, and the lock that the process behind it holds."""

    listener: socket.socket
    lock: int
    place: Path
    number: int
    """The number of the socket's inode."""


def keep_warm(pool: LinkPool, folder: Path) -> str | None:
    """Leaves a process behind that keeps the pool's connections, unless there is one already; returns at once.

    Returns a sentence that says why not, where the folder's file system allows no socket or no lock; else None.
    """
    if not len(pool):
        return None
    try:
        make_private_folder(folder)
        folder.chmod(0o700)
    except OSError:
        return None  # a home that is read-only, or root's: no failure, since the command itself has run
    try:
        meeting = _meeting(folder)
    except OSError as e:
        reason = f"connections are not kept: that takes a socket and a lock in {folder} ({e.strerror})"
        return f"{reason}; without this message: export {VARIABLE}=no"
    if meeting is None:
        return None  # another command was quicker
    if os.fork() != 0:
        meeting.listener.close()
        os.close(meeting.lock)
        return None
    try:
        _become_daemon(pool, meeting)
        _serve(_State(pool), meeting)
    finally:
        os._exit(0)  # never returns into the code of the command that was forked


def _meeting(folder: Path) -> Meeting | None:
    """The socket and the lock, this process's from now on; None where another process holds them. Raises OSError."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    listener = socket.socket(socket.AF_UNIX)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        place, fresh = folder / SOCKET_NAME, folder / f"{SOCKET_NAME}.new"
        fresh.unlink(missing_ok=True)
        usual = os.umask(0o177)
        try:
            listener.bind(f"{opened(str(folder))}.new")
        finally:
            os.umask(usual)
        listener.listen(BACKLOG)
        number = fresh.stat().st_ino
        write_stamp(str(folder), number)
        fresh.rename(place)  # whoever finds the socket also finds the stamp that says whose it is
    except OSError as e:
        listener.close()
        os.close(lock)
        if isinstance(e, BlockingIOError):
            return None
        raise
    return Meeting(listener=listener, lock=lock, place=place, number=number)


def _become_daemon(pool: LinkPool, meeting: Meeting) -> None:
    """Leaves the terminal and lets go of the command's descriptors: else its pipes and locks would stay open."""
    os.setsid()
    os.chdir("/")
    _take_own_name()
    refuse_tracing()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    kept = pool.descriptors() | {0, 1, 2, meeting.listener.fileno(), meeting.lock}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            # Not closed: an object of the command's may still close this number, which would then be another file's.
            with contextlib.suppress(OSError):
                os.dup2(null, int(name))


def _take_own_name() -> None:
    """Overwrites the command's arguments, which may hold secrets, and shows a name of its own in `ps`."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end (proc_pid_stat(5), 48 and 49)
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(OWN_NAME.encode()[: end - start - 1].ljust(end - start, b"\0"))
        Path("/proc/self/comm").write_text("clusterctl-warm")


def refuse_tracing() -> None:
    """From now on no other process of this user traces this one or reads its memory; only root does.

    Its memory is a copy of the command's, which may have read the login key (PR_SET_DUMPABLE, prctl(2); ptrace(2)).
    """
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _serve(state: _State, meeting: Meeting) -> None:
    os.umask(0o077)  # what is made here later is for this user alone
    threading.Thread(target=_look_after, args=(state,), daemon=True).start()
    with meeting.listener as listener:
        listener.listen(BACKLOG)  # again, by this process: commands ask the kernel who called it (SO_PEERCRED, unix(7))
        while _is_wanted(state, meeting.place, meeting.number):
            if _has_come(listener, LOOK_S):
                connection, _ = listener.accept()
                threading.Thread(target=_answer, args=(state, connection), daemon=True).start()
    meeting.place.unlink(missing_ok=True)
    state.pool.close()


def _is_wanted(state: _State, place: Path, number: int) -> bool:
    return is_wanted(
        commands=state.commands,
        is_reachable=not state.has_ended and _is_ours(place, number),
        connections=len(state.pool),
        used_at_s=state.used_at,
        now_s=time.monotonic(),
    )


def is_wanted(*, commands: int, is_reachable: bool, connections: int, used_at_s: float, now_s: float) -> bool:
    """Whether a command is being carried out, or a later one may use connections that still live.

    `is_reachable`: whether a later command would come here; `used_at_s`: when the last one ended, by the clock of
    `now_s`.
    """
    return commands > 0 or (is_reachable and connections > 0 and now_s - used_at_s < IDLE_S)


def _is_ours(place: Path, number: int) -> bool:
    """Whether the socket that later commands find is still this process's."""
    try:
        return place.stat().st_ino == number
    except OSError:
        return False


def _look_after(state: _State) -> None:
    while True:
        state.pool.drop_dead(LOOK_S)
        time.sleep(0.1)  # a connection that will not be quiet is no reason to spin


def _answer(state: _State, connection: socket.socket) -> None:
    with state.changing:
        state.commands += 1
    try:
        with contextlib.closing(connection), contextlib.suppress(OSError, ValueError):
            if is_same_person(connection):
                _carry_out(state, connection)
    finally:
        with state.changing:
            state.used_at = time.monotonic()  # first: whoever sees no command running sees when the last one ended
            state.commands -= 1


def _carry_out(state: _State, connection: socket.socket) -> None:
    connection.settimeout(REQUEST_S)
    _, descriptors, _, _ = socket.recv_fds(connection, len(WITH_STDIN), MOST_DESCRIPTORS)
    with contextlib.ExitStack() as held:
        files = [held.enter_context(open(number, "rb", buffering=0)) for number in descriptors]
        coming = Frames(connection)
        received = coming.next(within_s=REQUEST_S)
        if received is None or not files:
            return
        command = None
        if not state.is_outdated():  # else the request may have another form
            command = warm_command(broker_request_from_bytes(received[1]), files, state.pool)
        if command is None:
            connection.sendall(frame(REFUSED))
            return
        connection.sendall(frame(ACCEPTED, b"%d %d" % (command.code_if_lost, command.remote.stdin is not None)))
        if coming.next(within_s=REQUEST_S) != (GO, b""):
            return
        connection.settimeout(None)
        canceller = Canceller()
        threading.Thread(target=_cancel_when_left, args=(connection, canceller), daemon=True).start()
        code = command.done(connection, state.pool, canceller)
        connection.sendall(frame(EXIT, b"%d" % code))


def _cancel_when_left(connection: socket.socket, canceller: Canceller) -> None:
    """Ends the work when the command is gone. A command sends nothing after GO: whatever can be read is its end."""
    with contextlib.suppress(OSError, ValueError):
        _has_come(connection, None)
        canceller.cancel()


def _has_come(connection: socket.socket, wait_s: float | None) -> bool:
    """Whether there is something to read. By poll: select knows no descriptor above 1023, and each node has one."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(None if wait_s is None else wait_s * 1000))
