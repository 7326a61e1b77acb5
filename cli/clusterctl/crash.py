"""What is said and kept when a failure was not expected."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.home import named_home


def report_crash(error: Exception, *, environ: Mapping[str, str]) -> str:
    """The one line for the person; the traceback is in the file that it names."""
    directory = named_home(environ).log_dir
    path = write_crash_log(error, directory=directory, now=datetime.now(UTC))
    told = f"the traceback is in {path}" if path is not None else f"no traceback: {directory} cannot be written"
    return f"clusterctl: unexpected {type(error).__name__}: {error}; {told}"


def write_crash_log(error: Exception, *, directory: Path, now: datetime) -> Path | None:
    """The file that the traceback was written to; None when it could not be written."""
    path = directory / f"crash-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return None
    return path
