"""The programs that the way to private nodes needs on this computer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

SESSION_MANAGER = "aws"
_NEEDED = {
    SESSION_MANAGER: {
        "aws": "the AWS CLI (apt-get install awscli)",
        "session-manager-plugin": (
            "AWS's Session Manager plugin (https://docs.aws.amazon.com/systems-manager/latest/userguide/"
            "session-manager-working-with-install-plugin.html)"
        ),
    },
    "ssh": {"ssh": "OpenSSH's client (apt-get install openssh-client)"},
}
"""What has to be on PATH for a proxy command, by the program that it starts with; and where to get it (2026-11-21)."""


def uses_session_manager(argv: Sequence[str] | None) -> bool:
    """Whether a proxy command goes through AWS's Session Manager, where each connection takes seconds and a process."""
    return argv is not None and Path(argv[0]).name == SESSION_MANAGER


def missing_programs(argv: Sequence[str], *, which: Callable[[str], str | None]) -> str | None:
    """A sentence naming the programs that the way needs and this computer lacks; None if all seem to be there."""
    needed = _NEEDED.get(Path(argv[0]).name, {})
    missing = [f"{program}: install {source}" for program, source in needed.items() if which(program) is None]
    return f"the way to the nodes needs {', and '.join(missing)}" if missing else None
