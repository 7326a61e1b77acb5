"""What a project's uv.lock asks for, in the form that pip reads; uv on this computer checks and translates it.

So nodes need no uv, and a lock that is out of date is refused before any node is asked. The options are those of uv
0.13, read in `uv lock --help` and `uv export --help` and tried, 2026-11-26.
"""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import UsageError

PROJECT, LOCK = "pyproject.toml", "uv.lock"
UV_S = 300.0
"""How long uv may take: its check may ask the package index."""
CHECK = ("uv", "lock", "--check")
EXPORT = (
    *("uv", "export", "--frozen", "--no-dev", "--no-emit-workspace", "--format", "requirements-txt"),
    *("--no-header", "--no-annotate", "--emit-index-url", "--emit-find-links"),
)
"""It leaves the project itself out: its code is in the folder that is sent, and other jobs share the environment."""
LOCAL = ("-e ", "./", "../", "/", "file:")
"""The beginnings of lines that name a folder of this computer; for an archive uv writes `NAME @ file:…`."""
Run = Callable[[Sequence[str], Path], tuple[int, str, str]]
"""Runs argv in a folder: exit code, stdout, stderr. Raises FileNotFoundError, subprocess.TimeoutExpired."""


@dataclass(frozen=True, kw_only=True)
class UvLock:
    """A uv.lock, translated for pip."""

    text: str
    """Lines for pip: indexes, and each package with its version, hashes and markers."""
    requires_python: str
    """Which versions it was made for, such as `>=3.11, <3.13`; empty: any."""


def run_uv(argv: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Runs uv in `folder`; returns its exit code, stdout and stderr."""
    done = subprocess.run(list(argv), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=UV_S)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def read_uv_lock(project: Path, run: Run = run_uv) -> UvLock:
    """The uv.lock beside a pyproject.toml. Raises UsageError if it is missing or stale, or needs a local package."""
    folder, named = project.parent, f"--requirements {project}"
    try:
        requires_python = str(tomllib.loads((folder / LOCK).read_text()).get("requires-python", ""))
    except FileNotFoundError as e:
        raise UsageError(f"{named}: there is no {LOCK} beside it", hint=f"uv lock --project {folder}") from e
    except (OSError, ValueError) as e:
        raise UsageError(f"{folder / LOCK} cannot be read: {e}", hint=f"uv lock --project {folder}") from e
    _asked(CHECK, folder, run, f"{named}: {LOCK} does not fit it")
    text = _asked(EXPORT, folder, run, f"{named}: uv does not export {LOCK}")
    if not is_fully_hashed(text):
        # pip wants a hash for each package, or none at all.
        text = _asked((*EXPORT, "--no-hashes"), folder, run, f"{named}: uv does not export {LOCK}")
    if local := [line for line in requirement_lines(text) if is_local(line)]:
        why = f"{named}: {local[0]} lies on this computer, and local packages are not supported yet"
        raise UsageError(why, hint="publish it to an index, or import it from the folder that is sent")
    return UvLock(text=text, requires_python=requires_python)


def requirement_lines(text: str) -> list[str]:
    """The packages of a lock for pip, one line each: continued lines are joined, options and comments left out."""
    whole = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in whole if line.strip() and not line.startswith(("#", "--"))]


def is_fully_hashed(text: str) -> bool:
    """Whether each package has a hash."""
    return all("--hash=" in line for line in requirement_lines(text))


def is_local(line: str) -> bool:
    """Whether a package comes from a folder or file of this computer."""
    return line.startswith(LOCAL) or " @ file:" in line


def _asked(argv: Sequence[str], folder: Path, run: Run, what: str) -> str:
    """What uv printed to stdout. Raises UsageError; `what` begins the message."""
    try:
        code, output, errors = run(argv, folder)
    except FileNotFoundError as e:
        raise UsageError(f"{LOCK} is read by uv, and this computer has none", hint="pip install uv") from e
    except subprocess.TimeoutExpired as e:
        raise UsageError(f"{what}: {' '.join(argv[:3])} took longer than {UV_S:.0f} s", hint="uv lock") from e
    if code:
        lines = [line.strip() for line in errors.splitlines() if line.startswith("error")]
        why = (lines or errors.strip().splitlines() or [f"exit {code}"])[0].removeprefix("error: ")
        raise UsageError(f"{what}: {why[:500]}", hint=f"uv lock --project {folder}")
    return output
