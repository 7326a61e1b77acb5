"""What is the same for all nodes of one fan-out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from clusterctl.ssh.fanout.command_input import Input
from clusterctl.ssh.fanout.command_run import command_text
from clusterctl.ssh.fanout.dialling import Dialled
from clusterctl.ssh.fanout.link_pool import LinkPool
from clusterctl.ssh.fanout.outbox import Outbox
from clusterctl.ssh.remote_command import RemoteCommand


@dataclass(frozen=True, kw_only=True)
class OpenLinks:
    """Connections that exist before a fan-out begins."""

    dialled: Dialled = field(default_factory=Dialled)
    """Connections that are under way."""
    pool: LinkPool | None = None
    """Where connections come from and go to; None: each is made and ended."""


@dataclass(frozen=True, kw_only=True)
class SharedCommand:
    """The command, and what its nodes share while it runs."""

    remote: RemoteCommand
    links: OpenLinks
    stdin: Input | None
    """What `remote.stdin` has, for all nodes."""
    outbox: Outbox
    captures_bytes: int | None
    """Output is kept in the result, at most so much of each stream; None: it is handed on as it comes."""

    @cached_property
    def text(self) -> bytes:
        """The text that each node's shell runs, made once."""
        silence_s = self.remote.deadlines.silence_s
        return command_text(self.remote.command, has_input=self.stdin is not None, silence_s=silence_s)
