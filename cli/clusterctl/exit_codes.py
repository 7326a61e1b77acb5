"""The boundary: however a step ends, it becomes an exit code, and a failure also a sentence for the person."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.private_home import make_private_folder

from clusterctl.home import named_home
from clusterctl.output import Output
from clusterctl.text.cluster_word import cluster_word, extra_word

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
READER_GONE = 0
"""`clusterctl nodes | head -1`: the reader has what it wanted."""


def exit_code_of(step: Callable[[], object], output: Output) -> int:
    """The exit code that `step` returns, 0 if it returns none; a failure becomes a sentence on `output` and a code."""
    try:
        code = step()
        return code if isinstance(code, int) else 0
    except ClusterctlError as error:
        output.error(error)
        return error.exit_code
    except click.ClickException as error:
        output.error(_usage(error))
        return UsageError.exit_code
    except (click.Abort, KeyboardInterrupt):
        output.note("clusterctl: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return READER_GONE
    except Exception as error:  # noqa: BLE001 the boundary: what nobody expected becomes one line and a log
        cannot_write = importlib.import_module("clusterctl.system.room").cannot_write
        if isinstance(error, OSError) and (reason := cannot_write(error, environ=os.environ)) is not None:
            output.error(reason)
            return ClusterctlError.exit_code
        output.note(report_crash(error, environ=os.environ))
        return EXIT_BUG


def _usage(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "clusterctl"
    message = error.format_message().removesuffix(".")
    if context is not None and (word := extra_word(message)) is not None:
        flags = [flag for parameter in context.command.params for flag in parameter.opts]
        named = cluster_word(word, named_home(os.environ).cluster_names, typed=path, flags=flags)
        if named is not None:
            return UsageError(f"{word} is {named.kind}: write it after {named.flag}", hint=named.hint)
    return UsageError(message[:1].lower() + message[1:], hint=f"{path} --help")


def report_crash(error: Exception, *, environ: Mapping[str, str]) -> str:
    """Writes the traceback to a file; returns one line for the person, which names that file."""
    directory = named_home(environ).log_dir
    path = write_crash_log(error, directory=directory, now=datetime.now(UTC))
    told = f"the traceback is in {path}" if path is not None else f"no traceback: {directory} cannot be written"
    return f"clusterctl: unexpected {type(error).__name__}: {error}; {told}"


def write_crash_log(error: Exception, *, directory: Path, now: datetime) -> Path | None:
    """The file that the traceback was written to; None when it could not be written."""
    path = directory / f"crash-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
    try:
        make_private_folder(directory)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return None
    return path
