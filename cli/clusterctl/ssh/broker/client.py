"""Hands a command, with its words and its input, to the process that has the connections already.

Imports next to nothing: starting Python is most of the time of such a command. The words are read, the cluster found
and the output rendered by that process, where all the code for it is loaded.
"""

from __future__ import annotations

import _thread  # threading costs as much as all else here
import os
import select
import socket
import sys
from collections.abc import Mapping, Sequence

from clusterctl_infra.home_folder import home_folder
from clusterctl_infra.names import HOME_VARIABLE

from clusterctl.ssh.broker.command_request import BrokerRequest
from clusterctl.ssh.broker.frames import ACCEPTED, EXIT, GO, REQUEST, STDERR, STDOUT, WITH_STDIN, Frames, frame
from clusterctl.ssh.broker.place import FOLDER_NAME, is_of_this_version, is_off, is_same_person, opened, stamp
from clusterctl.system.whole_write import write_whole

VERB = "ssh"
ANSWER_S = 2.0
"""A process that does not take the command in this time is left alone: a new connection is as quick."""
LAST_WORDS_S = 4.0
"""How long to wait for the end of an interrupted command: longer than the process waits for its nodes."""
EXIT_INTERRUPTED = 130
EXIT_UNWRITTEN = 1
TYPED_BYTES = 4096


def done_warm(argv: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """The exit code of `clusterctl ARGV`, its output passed on; None when no process takes it: then nothing has run."""
    if argv[:1] != [VERB] or is_off(environ):
        return None
    with socket.socket(socket.AF_UNIX) as connection:
        coming = Frames(connection)
        try:
            code_if_lost = _taken(connection, coming, argv, environ)
        except OSError:
            return None
        except KeyboardInterrupt:
            return _interrupted()
        return None if code_if_lost is None else _passed_on(connection, coming, code_if_lost)


def _taken(connection: socket.socket, coming: Frames, argv: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """The exit code to use if the process is lost; None when it does not take the command. Raises OSError."""
    connection.settimeout(ANSWER_S)
    home = home_folder(environ)
    place = opened(os.path.join(home, FOLDER_NAME))
    # Words and variables may be secrets, which a process of another version may not protect as this one does.
    if not is_of_this_version(os.path.dirname(place)):
        return None
    connection.connect(place)
    if not is_same_person(connection):
        return None
    typed_to = _stdin_sent(connection)
    connection.sendall(frame(REQUEST, _request(argv, {**environ, HOME_VARIABLE: home}).to_bytes()))
    answer = coming.next(within_s=ANSWER_S)
    if answer is None or answer[0] != ACCEPTED:
        return None
    try:
        code_if_lost, is_typed_read = map(int, answer[1].split())
    except ValueError:
        return None  # no answer of this version: nothing has run before GO
    connection.settimeout(ANSWER_S)
    connection.sendall(frame(GO))
    connection.settimeout(None)
    if typed_to is not None and is_typed_read == 1:
        _thread.start_new_thread(_pass_on_typed, (sys.stdin.fileno(), typed_to))
    return code_if_lost


def _stdin_sent(connection: socket.socket) -> int | None:
    """Sends stdin; for a terminal also a pipe, whose other end is returned.

    The process belongs to no terminal: it would not be stopped, as a background job is (SIGTTIN, termios(3)), from
    reading what is typed for other programs. So what is typed is read here, and goes through the pipe.
    """
    stdin = sys.stdin.fileno()
    if not os.isatty(stdin):
        socket.send_fds(connection, [WITH_STDIN], [stdin])
        return None
    reader, writer = os.pipe()
    socket.send_fds(connection, [WITH_STDIN], [stdin, reader])
    os.close(reader)
    return writer


def _pass_on_typed(terminal: int, typed_to: int) -> None:
    """Passes on what is typed, until its end or the command's; reads from the terminal only when something is there."""
    poll = select.poll()
    poll.register(terminal, select.POLLIN)
    try:
        while poll.poll() and (keys := os.read(terminal, TYPED_BYTES)):
            write_whole(typed_to, keys)
    except OSError:
        pass  # the terminal is gone, or the command
    os.close(typed_to)


def _request(argv: Sequence[str], environ: Mapping[str, str]) -> BrokerRequest:
    return BrokerRequest(
        argv[1:],
        stamp=stamp(),
        folder=os.getcwd(),
        encoding=sys.stdout.encoding,
        is_stdout_terminal=sys.stdout.isatty(),
        is_stderr_terminal=sys.stderr.isatty(),
        environ=environ,
    )


def _passed_on(connection: socket.socket, coming: Frames, code_if_lost: int) -> int:
    try:
        code = _written(coming)
    except BrokenPipeError:  # `clusterctl ssh … | head -1`: the reader has what it wanted
        return 0  # what runs ends with the connection
    except OSError as e:
        return _reported(f"stdout cannot be written: {e.strerror}", EXIT_UNWRITTEN)
    except KeyboardInterrupt:
        code = _ended(connection, coming)
        return _interrupted() if code is None else code
    if code is None:
        return _reported("the process that kept the connections has ended, and with it what ran", code_if_lost)
    return code


def _written(coming: Frames) -> int | None:
    """Writes all output; returns the exit code; None when the process has gone. Raises OSError if stdout fails."""
    is_stderr_written = True
    while (received := coming.next()) is not None:
        kind, data = received
        if kind == EXIT:
            return int(data) or (0 if is_stderr_written else EXIT_UNWRITTEN) if data.isdigit() else None
        if kind == STDOUT:
            write_whole(1, data)
        elif kind == STDERR:
            is_stderr_written = _complain(data) and is_stderr_written
    return None


def _ended(connection: socket.socket, coming: Frames) -> int | None:
    """Has the command ended, writes its last output, and returns its exit code; None if that does not come."""
    try:
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(LAST_WORDS_S)
        return _written(coming)
    except (OSError, KeyboardInterrupt):
        return None


def _interrupted() -> int:
    return _reported("interrupted", EXIT_INTERRUPTED)


def _reported(text: str, code: int) -> int:
    _complain(f"clusterctl: {text}\n".encode())
    return code


def _complain(data: bytes) -> bool:
    """Writes to stderr; False when that failed. A reader that has gone away has what it wanted: that is no failure."""
    try:
        write_whole(2, data)
    except BrokenPipeError:
        return True
    except OSError:
        return False
    return True
