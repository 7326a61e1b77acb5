"""The base image that all machines share: built once from a recipe, stored under the recipe's hash."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shlex
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.folders import remove_tree
from clusterctl_rehearsal.machines.recipe import (
    DISK_FULL,
    ImageRecipe,
    build_argv,
    failure_reason,
    is_sources_text,
    usable_apt_options,
)

BUILD_TIMEOUT_S = 900.0
NEEDED_BYTES = 1_200_000_000
_SOURCES = (
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list.d/ubuntu.sources",
    "/etc/apt/sources.list",
)
_UNFINISHED = "unfinished-"


def host_recipe() -> ImageRecipe:
    """The recipe for this computer: its own distribution, release and package sources. Raises MachineError."""
    release = platform.freedesktop_os_release()
    suite = release.get("VERSION_CODENAME", "")
    sources = _host_sources()
    if not suite or sources is None:
        raise MachineError(
            "this is not a Debian or Ubuntu computer with package sources, so no base image can be built: with "
            "machines: process in rehearsal.yaml none is needed"
        )
    options = subprocess.run(["apt-config", "dump", "Acquire"], text=True, capture_output=True, timeout=20)
    return ImageRecipe(
        suite=suite,
        architecture=platform.machine(),
        sources=sources.read_text(),
        apt_options=usable_apt_options(options.stdout),
    )


def image_folder(cache: Path, recipe: ImageRecipe) -> Path:
    """Where the image of a recipe lies once it is built."""
    return cache / "images" / recipe.digest


def ensure_image(cache: Path, recipe: ImageRecipe, progress: Callable[[str], None]) -> Path:
    """The image's folder, built now if it is not there. Safe to kill, safe to call twice at once."""
    folder = image_folder(cache, recipe)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _build_lock(folder.parent, progress):
        if folder.exists():
            return folder
        for leftover in folder.parent.glob(f"{_UNFINISHED}*"):
            remove_tree(leftover)
        _refuse_full_disk(folder.parent)
        unfinished = folder.parent / f"{_UNFINISHED}{recipe.digest}"
        unfinished.mkdir(mode=0o755)
        try:
            _build(recipe, unfinished / "root", progress)
            _finish(recipe, unfinished / "root")
            # The image is the folder itself: one rename makes it appear whole.
            os.rename(unfinished / "root", folder)
        finally:
            remove_tree(unfinished)
    return folder


def _host_sources() -> Path | None:
    for name in _SOURCES:
        path = Path(name)
        if path.exists() and is_sources_text(path.read_text()):
            return path
    return None


@contextmanager
def _build_lock(folder: Path, progress: Callable[[str], None]) -> Iterator[None]:
    with os.fdopen(os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)  # whoever can open it can hold the lock, and an older clusterctl let everybody
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another build of the base image")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _refuse_full_disk(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise MachineError(
            f"the base image needs {NEEDED_BYTES / 1e9:.1f} GB in {folder}, {free / 1e9:.1f} GB are free",
            f"df -h {shlex.quote(str(folder))}",
        )


def _build(recipe: ImageRecipe, root: Path, progress: Callable[[str], None]) -> None:
    sources_file = root.parent / ("base.sources" if "URIs:" in recipe.sources else "base.list")
    sources_file.write_text(recipe.sources)
    argv = build_argv(recipe, target=str(root), sources_file=str(sources_file))
    progress("building the base image (about 40 s, once)")
    last_lines: deque[str] = deque(maxlen=400)
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C.UTF-8", "TMPDIR": str(root.parent)},
    ) as process:
        watchdog = threading.Timer(BUILD_TIMEOUT_S, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last_lines.append(line)
                step = re.match(r"I: (.+?)\.{0,3}$", line)
                if step is not None:
                    progress(f"base image: {step[1]}")
        finally:
            watchdog.cancel()
    if process.returncode != 0:
        reason = failure_reason("".join(last_lines), recipe.sources)
        helps = f"df -h {shlex.quote(str(root.parent))}" if reason == DISK_FULL else "apt-get update"
        raise MachineError(f"the base image could not be built: {reason}", helps)


def _finish(recipe: ImageRecipe, root: Path) -> None:
    for pattern in recipe.removed:
        for path in root.glob(pattern):
            path.unlink()
    for name, text in recipe.files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = 0o755 if text.startswith("#!") else 0o644
        mode = path.stat().st_mode & 0o7777 if path.is_file() else plain
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(mode)
    masked = {"system": recipe.masked_units, "system-generators": recipe.masked_generators}
    for folder, names in masked.items():
        for name in names:
            link = root / "etc/systemd" / folder / name
            link.parent.mkdir(exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to("/dev/null")
    (root / "root").chmod(0o755)
    root.chmod(0o755)
