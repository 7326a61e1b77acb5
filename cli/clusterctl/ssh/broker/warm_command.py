"""Carries out a command that was left to this process: same words, same output, same exit code."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import click
from clusterctl_infra.errors import ClusterctlError, NotReached, SomeNodesFailed

from clusterctl.output import Output
from clusterctl.ssh.arguments import request_of
from clusterctl.ssh.broker.command_request import BrokerRequest
from clusterctl.ssh.broker.frames import STDERR, STDOUT
from clusterctl.ssh.broker.place import stamp
from clusterctl.ssh.broker.relayed_output import RelayedOutput
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.canceller import Canceller
from clusterctl.ssh.fanout.fan_out import run_remote
from clusterctl.ssh.fanout.link_pool import LinkPool, link_key
from clusterctl.ssh.fanout.shared_command import OpenLinks
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.on_nodes import run_and_show
from clusterctl.ssh.remote_command import RemoteCommand
from clusterctl.ssh.request import SshRequest, is_for_one, remote_command, with_node_named_first
from clusterctl.ssh.results import NodeResult
from clusterctl.ssh.target import target_of
from clusterctl.system.caller import Caller
from clusterctl.system.exit_codes import exit_code_of

SAME_FOR_BOTH = ("HOME", "USER", "LOGNAME")
"""Variables that some code reads from this process, not from the caller; a command with other values is refused."""


@dataclass(frozen=True, kw_only=True)
class WarmCommand:
    """A command that this process can carry out, and has not begun."""

    request: SshRequest
    remote: RemoteCommand
    asked: BrokerRequest

    @property
    def code_if_lost(self) -> int:
        """The exit code to use if this process is lost."""
        return (NotReached if is_for_one(self.request, self.remote) else SomeNodesFailed).exit_code

    def done(self, connection: socket.socket, pool: LinkPool, canceller: Canceller) -> int:
        """The exit code, after all output has gone through `connection`."""
        relayed = RelayedOutput(connection)
        output = Output(
            stdout=relayed.stream(STDOUT),
            stderr=relayed.stream(STDERR),
            encoding=self.asked.encoding,
            stdout_is_terminal=self.asked.is_stdout_terminal,
            stderr_is_terminal=self.asked.is_stderr_terminal,
        )
        links = _KeptLinks(pool, canceller, relayed.send)
        code = exit_code_of(lambda: run_and_show(self.request, self.remote, output, links), output)
        output.close()
        relayed.send()
        return code


def warm_command(asked: BrokerRequest, files: Sequence[IO[bytes]], pool: LinkPool) -> WarmCommand | None:
    """The command that was asked for; None for one that the asking process has to carry out itself.

    Such are a login, words that are refused, a request of another version, and all that needs the asking process's
    variables or ssh configuration. `files`: the command's stdin; if that is a terminal, also a pipe of what is typed.
    """
    if asked.stamp != stamp() or any(asked.environ.get(name) != os.environ.get(name) for name in SAME_FOR_BOTH):
        return None
    caller = Caller(environ=asked.environ, folder=Path(asked.folder), stdin=files[0])
    try:
        request = with_node_named_first(request_of(asked.argv), caller)
        if request.is_login or request.is_cold or _uses_persons_config(request, caller):
            return None
        remote = remote_command(request, caller)
        if not _is_all_kept(remote, pool):
            return None
    except (ClusterctlError, NodeFailure, click.ClickException, click.exceptions.Exit):
        return None  # the command reports it in its own words
    if remote.stdin is not None:
        remote = replace(remote, stdin=files[-1])
    return WarmCommand(request=request, remote=remote, asked=asked)


def _uses_persons_config(request: SshRequest, caller: Caller) -> bool:
    """Whether the person's ssh configuration has a say in how to reach the machines: such connections are not kept."""
    return request.file is not None and (caller.ssh_dir / "config").is_file()


def _is_all_kept(remote: RemoteCommand, pool: LinkPool) -> bool:
    """Whether no proxy command has to be run: it may need variables that only the command has, such as AWS logins."""
    if remote.inventory.ssh.proxy_command is None:
        return True
    keys = (link_key(remote.inventory, node, target_of(remote.inventory, node)) for node in remote.nodes)
    return all(pool.has(key) for key in keys)


class _KeptLinks:
    """Runs a command over the connections that this process keeps."""

    def __init__(self, pool: LinkPool, canceller: Canceller, on_quiet: Callable[[], None]) -> None:
        self._pool = pool
        self._canceller = canceller
        self._on_quiet = on_quiet

    def run(
        self,
        remote: RemoteCommand,
        *,
        sinks: NodeSinks | None = None,
        on_result: Callable[[NodeResult], None] | None = None,
    ) -> dict[int, NodeResult]:
        """Runs the command as `Links.run` promises."""
        results = run_remote(
            remote,
            sinks=sinks,
            on_result=on_result,
            links=OpenLinks(pool=self._pool),
            canceller=self._canceller,
            on_quiet=self._on_quiet,
        )
        if self._canceller.is_cancelled:
            raise KeyboardInterrupt
        return results
