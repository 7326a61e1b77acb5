"""What a failure that is no ClusterctlError means to the person. Loaded when there is one: a start needs none of it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
from clusterctl_infra.errors import ClusterctlError, UsageError
from clusterctl_infra.private_home import make_private_folder

from clusterctl.home import named_home
from clusterctl.system.disk_space import cannot_write
from clusterctl.text.cluster_word import cluster_word, extra_word


def usage_error(error: click.ClickException, *, environ: Mapping[str, str]) -> UsageError:
    """click's refusal of a command line, with the command that helps; a cluster's name gets the flag it belongs to."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "clusterctl"
    message = error.format_message().removesuffix(".")
    if context is not None and (word := extra_word(message)) is not None:
        flags = [flag for parameter in context.command.params for flag in parameter.opts]
        named = cluster_word(word, named_home(environ).cluster_names, typed=path, flags=flags)
        if named is not None:
            return UsageError(f"{word} is {named.kind}: write it after {named.flag}", hint=named.hint)
    return UsageError(message[:1].lower() + message[1:], hint=f"{path} --help")


def expected_failure(error: Exception, *, environ: Mapping[str, str]) -> ClusterctlError | None:
    """The failure to report for a disk that is full or cannot be written; None for what only a bug explains."""
    return cannot_write(error, environ=environ) if isinstance(error, OSError) else None


def report_crash(error: Exception, *, environ: Mapping[str, str]) -> str:
    """Writes the traceback into the home; returns a line for the person, which names the file."""
    directory = named_home(environ).log_dir
    path = write_crash_log(error, directory=directory, now=datetime.now(UTC))
    where = f"the traceback is in {path}" if path is not None else f"no traceback: {directory} cannot be written"
    return f"clusterctl: unexpected {type(error).__name__}: {error}; {where}"


def write_crash_log(error: Exception, *, directory: Path, now: datetime) -> Path | None:
    """The file that the traceback was written to; None when it could not be written."""
    path = directory / f"crash-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
    try:
        make_private_folder(directory)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return None
    return path
