"""Where a stack's state is: the backend's URL as the engine takes it, and the folder of one that is made of files."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from urllib.parse import unquote, urlsplit

FILES = "file://"


def whole_url(url: str, *, folder: Path, user_home: Path) -> str:
    """The URL with its path in full: `pulumi login --local` is `file://~`, and others begin where the engine runs.

    As the engine does (3.250, backend/diy, massageBlobPath): only the caller's own `~` is meant. Pure.
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
