"""The boundary: however a step ends, it becomes an exit code, and a failure also a sentence for the person."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Protocol

import click
from clusterctl_infra.errors import ClusterctlError, UsageError

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
READER_GONE = 0
"""`clusterctl nodes | head -1`: the reader has what it wanted."""


class Notes(Protocol):
    """Where a person reads what became of a step; `Output` is that."""

    def error(self, error: ClusterctlError) -> None:
        """Shows a failure, with the command that helps."""

    def note(self, text: str) -> None:
        """Shows a line."""


def exit_code_of(step: Callable[[], object], output: Notes) -> int:
    """The exit code that `step` returns, 0 if it returns none; a failure becomes a sentence on `output` and a code."""
    try:
        code = step()
        return code if isinstance(code, int) else 0
    except ClusterctlError as error:
        output.error(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        output.note("clusterctl: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return READER_GONE
    except Exception as error:  # noqa: BLE001 the boundary: what nobody expected becomes one line and a log
        return _exit_code_after(error, output)


def _exit_code_after(error: Exception, output: Notes) -> int:
    """Reports a failure that is not a ClusterctlError: a command line that click refuses, a full disk, a bug."""
    failure = importlib.import_module("clusterctl.system.failure")
    if isinstance(error, click.ClickException):
        output.error(failure.usage_error(error, environ=os.environ))
        return UsageError.exit_code
    if (reason := failure.expected_failure(error, environ=os.environ)) is not None:
        output.error(reason)
        return ClusterctlError.exit_code
    output.note(failure.report_crash(error, environ=os.environ))
    return EXIT_BUG
