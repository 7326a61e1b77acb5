"""The proxy command of a private node: the program that shares one session, and after it the node's own session."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clusterctl_infra.home_folder import home_folder

from clusterctl.ssh.deadlines import Deadlines

_PROGRAM = str(Path(__file__).with_name("shared_session") / "relay.py")
_START = (sys.executable, "-I", "-S", _PROGRAM)
_OWN_ARGUMENTS = 4
"""Home, cluster, host and port."""
MOST_OPENING_S = 25.0
"""How long finding a node that leads to the others may take, before the node that is meant is dialled."""


def by_shared_session(cluster: str, *, host: str, port: int | str, session: Sequence[str]) -> tuple[str, ...]:
    """The argv that leads to `host` by the cluster's shared session, or by `session` where there is none."""
    return (*_START, home_folder(os.environ), cluster, host, str(port), *session)


def own_session(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The node's own session in what `by_shared_session` gave; any other proxy command as it is."""
    return argv[len(_START) + _OWN_ARGUMENTS :] if argv[: len(_START)] == _START else argv


def opening_s(argv: tuple[str, ...] | None) -> float:
    """How many seconds longer a node behind this proxy command has to answer."""
    return 0.0 if argv is None or own_session(argv) == argv else MOST_OPENING_S


def with_opening(deadlines: Deadlines, argv: tuple[str, ...] | None) -> Deadlines:
    """The deadlines of a node that this proxy command leads to."""
    more_s = opening_s(argv)
    return replace(deadlines, total_s=deadlines.total_s + more_s, greeting_s=deadlines.greeting_s + more_s)
