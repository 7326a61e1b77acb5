"""A connection to one node, for commands and for files."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import paramiko
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import home_directory
from clusterctl.ssh.connect_failures import TurnedAway, asked_again_at, connect_failure
from clusterctl.ssh.deadlines import Clock, Deadlines
from clusterctl.ssh.failures import FailureKind, NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.proxy import Proxy
from clusterctl.ssh.shared_session_argv import with_opening
from clusterctl.ssh.single.channel import drained
from clusterctl.ssh.single.ending import end_commands
from clusterctl.ssh.single.handshake import handshake, open_socket
from clusterctl.ssh.single.signs_of_life import NotingSocket, SignsOfLife
from clusterctl.ssh.target import Target, target_of

SESSION_S = 10.0


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The exit code and output of a command that ran."""

    exit_code: int | None
    """None: a signal ended it."""
    stdout: bytes
    stderr: bytes

    @property
    def ending(self) -> str:
        """`exit 1`, for a message."""
        return "a signal ended it" if self.exit_code is None else f"exit {self.exit_code}"


class NodeConnection:
    """A logged-in connection; use it as a context manager, or close it."""

    def __init__(self, transport: paramiko.Transport, life: SignsOfLife, target: Target, proxy: Proxy | None) -> None:
        self.target = target
        self._transport = transport
        self._life = life
        self._proxy = proxy

    @classmethod
    def open(
        cls,
        inventory: Inventory,
        node: InventoryNode,
        deadlines: Deadlines | None = None,
        *,
        keys: LoginKeys | None = None,
    ) -> Self:
        """A connection to `node`, tried again if it is turned away. Raises NodeFailure.

        `keys` saves reading them again for each of many nodes.
        """
        target = target_of(inventory, node)
        deadlines = with_opening(deadlines or Deadlines(), target.proxy_argv)
        clock = Clock(deadlines.total_s)
        keys = keys or load_login_keys(inventory, home_directory(os.environ), ssh_dir=Path.home() / ".ssh")
        while True:
            try:
                return cls._open_once(target, keys, deadlines, clock)
            except TurnedAway:
                again_at = asked_again_at(clock)
                if again_at is None:
                    raise
                time.sleep(max(0.0, again_at - time.monotonic()))

    @classmethod
    def _open_once(cls, target: Target, keys: LoginKeys, deadlines: Deadlines, clock: Clock) -> Self:
        proxy = None if target.proxy_argv is None else Proxy(target.proxy_argv)
        connection = None
        try:
            connection = NotingSocket.taking(open_socket(target, proxy, clock.left_s(deadlines.connect_s)))
            transport = handshake(connection, target, keys, deadlines, clock)
            return cls(transport, SignsOfLife(transport, connection, lost_after_s=deadlines.silence_s), target, proxy)
        except BaseException as error:
            complaint = None if proxy is None else proxy.complaint() if isinstance(error, NodeFailure) else None
            if connection is not None:
                connection.close()
            if proxy is not None:
                proxy.close()
            if complaint is not None and isinstance(error, NodeFailure) and error.kind in {"lost", "timeout"}:
                raise connect_failure(target, complaint) from error
            raise

    def run(self, command: str, timeout_s: float | None = None) -> CommandResult:
        """Runs `command` (a line for the person's shell there) without input; returns its result.

        Raises NodeFailure when it did not end; after `timeout_s` the command is ended.
        """
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        stdout: list[bytes] = []
        stderr: list[bytes] = []
        with self._session(command) as channel:
            channel.shutdown_write()
            try:
                code = drained(channel, stdout.append, stderr.append, ends_at, is_silent=lambda: self._life.is_silent)
            except TimeoutError as e:
                end_commands(self._transport)
                message = f"{self.target.name}: the command still ran after {timeout_s:g} s and was ended"
                raise NodeFailure("timeout", message, phase="command") from e
            except EOFError as e:
                raise self._lost() from e
        return CommandResult(exit_code=code, stdout=b"".join(stdout), stderr=b"".join(stderr))

    @property
    def transport(self) -> paramiko.Transport:
        """The transport, for callers that speak SSH through paramiko themselves; it ends with this connection."""
        return self._transport

    @contextlib.contextmanager
    def sftp(self) -> Iterator[paramiko.SFTPClient]:
        """The node's files. Raises NodeFailure when its sshd serves none, and OSError or EOFError while in use."""
        with contextlib.closing(self.open_sftp()) as client:
            yield client

    def open_sftp(self) -> paramiko.SFTPClient:
        """The node's files, until the caller closes them or this connection ends. Raises NodeFailure, as `sftp`."""
        guard = threading.Timer(SESSION_S, self._transport.close)  # paramiko waits for the answer without a deadline
        guard.daemon = True
        guard.start()
        try:
            client = paramiko.SFTPClient.from_transport(self._transport)
        except (paramiko.SSHException, EOFError, OSError) as e:
            raise NodeFailure("session", f"{self.target.name} serves no files over SFTP ({e})", phase="session") from e
        finally:
            guard.cancel()
        if client is None:
            raise NodeFailure("session", f"{self.target.name} serves no files over SFTP", phase="session")
        return client

    def close(self) -> None:
        """Ends the connection and the proxy; safe to call twice."""
        self._life.stop()
        self._transport.close()
        if self._proxy is not None:
            proxy, self._proxy = self._proxy, None
            proxy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lost(self) -> NodeFailure:
        message = f"the connection to {self.target.name} broke"
        if self._life.is_silent:
            message = f"{self.target.name} has given no sign of life for too long"
        return NodeFailure("lost", message, phase="command")

    @contextlib.contextmanager
    def _session(self, command: str) -> Iterator[paramiko.Channel]:
        """A channel on which `command` has been started."""
        try:
            channel = self._transport.open_session(timeout=SESSION_S)
        except paramiko.ChannelException as e:
            why = "does its sshd allow one for a connection (MaxSessions)?"
            raise NodeFailure(
                "session", f"{self.target.name} refused a session ({e.text}): {why}", phase="session"
            ) from e
        except (paramiko.SSHException, EOFError, OSError) as e:
            kind: FailureKind = "timeout" if "timeout" in str(e).lower() else "lost"
            raise NodeFailure(kind, f"{self.target.name} opened no session ({e})", phase="session") from e
        # exec_command waits without a deadline; closing the transport under it ends the wait.
        guard = threading.Timer(SESSION_S, self._transport.close)
        guard.daemon = True
        guard.start()
        try:
            channel.exec_command(command)
            guard.cancel()
            yield channel
        except (paramiko.SSHException, EOFError) as e:
            raise NodeFailure("lost", f"{self.target.name} did not start the command ({e})", phase="session") from e
        finally:
            guard.cancel()
            with contextlib.suppress(EOFError, OSError, paramiko.SSHException):
                channel.close()
