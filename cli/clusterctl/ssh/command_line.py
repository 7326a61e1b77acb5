"""What the person typed after the options, as one line for the shell on the node."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from clusterctl_infra.errors import UsageError

SCRIPT_FROM_INPUT = 'exec "${SHELL:-/bin/sh}" -s'


def command_line(argv: Sequence[str], line: str | None) -> str | None:
    """The line to run; None when nothing was asked for (a login).

    One argument is a shell line as it stands, `-` alone a script that is read from the input; several are an argv
    and quoted; `--command` is always a line.
    """
    if line is not None:
        if argv:
            raise UsageError(
                f"a command twice: --command {shlex.quote(line)}, and {shlex.join(argv)}", hint="clusterctl ssh --help"
            )
        if not line.strip():
            raise UsageError("--command is empty", hint="clusterctl ssh --help")
        return line
    if not argv:
        return None
    if tuple(argv) == ("-",):
        return SCRIPT_FROM_INPUT
    return argv[0] if len(argv) == 1 else shlex.join(argv)
