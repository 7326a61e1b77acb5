"""Paths where the agent mounts on a host: nothing of the owner's is there before, and nothing of ours afterwards."""

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Iterable, List, Set

from clusterctl.on_node.host.commands import COMMAND_S, Refused, must, run

UNITS = "/etc/systemd/system"
"""Where the agent writes the units of its mounts (node/mounts.py)."""
MOUNTINFO = "/proc/self/mountinfo"


def refuse_taken(paths: Iterable[str]) -> None:
    """Raises Refused for a path where something is mounted, files lie, or systemd or fstab is to mount something.

    A path with a symbolic link in it is refused, as by systemd (systemd.mount(5), Where=): the kernel would list
    what is mounted there under another name.
    """
    for path in paths:
        if os.path.realpath(path) != path:
            why = "%s: by a symbolic link this is %s, and systemd does not mount at links: write that path"
            raise Refused(why % (path, os.path.realpath(path)))
        if path in mounted_paths():
            raise Refused("%s: something is mounted there already: findmnt %s" % (path, path))
        unit = unit_of(path)
        if must("systemctl", "show", "--property=LoadState", "--value", unit).strip() != "not-found":
            raise Refused("%s: systemd has a unit for it, or /etc/fstab a line: systemctl cat %s" % (path, unit))
        if os.path.lexists(path) and not is_empty_folder(path):
            raise Refused("%s: something lies there, which a mount would hide: ls -la %s" % (path, path))


def missing_folders(paths: Iterable[str]) -> List[str]:
    """These paths and the folders above them, as far as they do not exist: systemd makes them when it mounts."""
    ways = [each for path in paths for each in (Path(path), *Path(path).parents)]
    return sorted({str(each) for each in ways if not os.path.lexists(str(each))})


def on_the_way(folders: Iterable[str], paths: Iterable[str]) -> List[str]:
    """The folders that lead to one of the paths."""
    return [folder for folder in folders if any((path + "/").startswith(folder + "/") for path in paths)]


def remove_folders(paths: Iterable[str]) -> None:
    """Removes the empty ones of these folders, the innermost first; somebody may have put something into others."""
    for path in sorted(paths, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def unmount(path: str) -> None:
    """Unmounts what the agent mounted, and removes its unit; a mount without that unit stays. Raises Refused."""
    unit = unit_of(path)
    file = Path(UNITS, unit)
    if not file.exists():
        return
    try:
        output = run("systemctl", "stop", unit).stdout.strip()
    except subprocess.TimeoutExpired as e:
        why = "%s cannot be unmounted in %d s; does its server answer? If it never will: umount -f -l %s, then retry"
        raise Refused(why % (path, COMMAND_S, path)) from e
    if path in mounted_paths():
        raise Refused("%s cannot be unmounted, something uses it: fuser -vm %s (%s)" % (path, path, output[-200:]))
    file.unlink()


def mounted_paths() -> Set[str]:
    """Every path at which something is mounted. No path of ours has a character that the kernel escapes there."""
    rows = Path(MOUNTINFO).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return {row.split(" ")[4] for row in rows}


def unit_of(path: str) -> str:
    """The systemd unit for a mount at this path: `mnt-data.mount`."""
    return must("systemd-escape", "--path", "--suffix=mount", path).strip()


def is_empty_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)
