"""Where a stack's state is: the URL of its backend, and the files if the backend is a folder (`file://`)."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from urllib.parse import unquote, urlsplit

from clusterctl.engine.stack import Stack

FILES = "file://"


def whole_url(url: str, *, folder: Path, user_home: Path) -> str:
    """The URL with its path in full: `~` is the user's home, and other paths are relative to where the engine runs.

    As the engine does (3.250, backend/diy, massageBlobPath), for which `~name` is a folder of that name. Pure.
    """
    path = url.removeprefix(FILES)
    if path == url or path.startswith("/"):
        return url
    whole = user_home / path[2:] if path == "~" or path.startswith("~/") else folder / path
    return FILES + os.path.normpath(whole)


def home_of_user() -> Path:
    """What the engine takes `~` for: the account's folder, whatever $HOME is (Go, os/user.Current)."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a container's user without a name
        return Path.home()


def folder_of(url: str) -> Path | None:
    """Where a backend of files keeps all that it knows; None for another kind of backend. Pure."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) / ".pulumi" if parts.scheme == "file" else None


def state_path(root: Path, stack: Stack) -> Path:
    """The file of a stack's state; `root`: what `folder_of` gives."""
    return root / "stacks" / _place(root, stack) / f"{stack.name}.json"


def lock_folder(root: Path, stack: Stack) -> Path:
    """Where the locks of a stack are."""
    projects = Path() if _has_no_projects(root, stack) else Path("organization")
    return root / "locks" / projects / _place(root, stack) / stack.name


def copy_folders(root: Path, stack: Stack) -> tuple[Path, Path]:
    """The two folders in which the backend puts a copy of the state at the end of each run."""
    history, backups = (root / kind / _place(root, stack) / stack.name for kind in ("history", "backups"))
    return history, backups


def _place(root: Path, stack: Stack) -> Path:
    return Path() if _has_no_projects(root, stack) else Path(stack.project)


def _has_no_projects(root: Path, stack: Stack) -> bool:
    """Whether the backend has the layout from before `pulumi state upgrade`, which the engine keeps (3.250, tried
    2026-11-22): stacks stand beside each other, whatever their project, and no meta.yaml tells a version."""
    known = (root / "stacks" / f"{stack.name}.json", root / "locks" / stack.name)
    return not (root / "meta.yaml").exists() and any(path.exists() for path in known)
