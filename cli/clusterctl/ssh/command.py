"""A command for a node's shell, before anybody runs it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl_infra.errors import UsageError

FAN_OUT = 256
"""How many nodes are worked on at a time. A handshake is eight round trips and half a millisecond of CPU: nodes mostly
wait, and they can do that together."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A shell line to run on nodes, with its variables, its rights and its time limit."""

    line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    is_sudo: bool = False
    timeout_s: float | None = None


SCRIPT_FROM_INPUT = 'exec "${SHELL:-/bin/sh}" -s'


def command_line(argv: Sequence[str], line: str | None) -> str | None:
    """The line to run; None when nothing was asked for (a login).

    A single argument is a shell line, a lone `-` stands for a script that is read from the input, several arguments are
    an argv, which is quoted; `line` (`--command`) is always a shell line. Raises UsageError for a `line` that is empty
    or has an argv beside it.
    """
    if line is not None:
        if argv:
            raise UsageError(
                f"two commands: --command {shlex.quote(line)}, and {shlex.join(argv)}", hint="clusterctl ssh --help"
            )
        if not line.strip():
            raise UsageError("--command is empty", hint="clusterctl ssh --help")
        return line
    if not argv:
        return None
    if tuple(argv) == ("-",):
        return SCRIPT_FROM_INPUT
    return argv[0] if len(argv) == 1 else shlex.join(argv)
