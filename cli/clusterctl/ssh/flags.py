"""Which flags of `clusterctl ssh` go together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_infra.errors import UsageError

HINT = "clusterctl ssh --help"
WITHOUT_TERMINAL = ("--gather", "--json", "--env", "--sudo", "--timeout", "--fail-fast")


def refuse_contradiction(*, gather: bool, as_json: bool) -> None:
    """Raises UsageError where two flags answer the same question."""
    if gather and as_json:
        raise UsageError("--gather and --json are two ways to show the same", hint=HINT)


def refuse_beside_terminal(given: Mapping[str, object]) -> None:
    """Raises UsageError when a flag that is only for a command without a terminal was given; `given`: flag → value."""
    seen = [flag for flag in WITHOUT_TERMINAL if given[flag]]
    if seen:
        *most, last = WITHOUT_TERMINAL
        told = f"{', '.join(most)} and {last} are for a command without a terminal"
        raise UsageError(f"{', '.join(seen)} beside a login or --tty: {told}", hint=HINT)
