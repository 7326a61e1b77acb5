"""Where a machine keeps its files below a driver's root folder."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.machines.names import checked
from clusterctl_rehearsal.put_in_place import put_in_place


@dataclass(frozen=True, kw_only=True)
class MachineFolder:
    """The paths of one machine; only `ended` outlives it."""

    root: Path
    cluster: str
    node: str

    @property
    def path(self) -> Path:
        """The folder removed with the machine."""
        return self.root / checked(self.cluster) / checked(self.node)

    @property
    def upper(self) -> Path:
        """The machine's own layer over the base image: its disk."""
        return self.path / "upper"

    @property
    def work(self) -> Path:
        """overlayfs' scratch folder, on the same file system as `upper`."""
        return self.path / "work"

    @property
    def disk(self) -> Path:
        """Mount point of the machine's root, inside its supervisor's mount namespace only."""
        return self.path / "disk"

    @property
    def console(self) -> Path:
        """What the machine printed on its console."""
        return self.path / "console.log"

    @property
    def launch(self) -> Path:
        """JSON: what the supervisor starts."""
        return self.path / "launch.json"

    @property
    def lock(self) -> Path:
        """Held by the supervisor for as long as it lives."""
        return self.path / "supervisor.lock"

    @property
    def ended(self) -> Path:
        """JSON, written when the machine ended by itself: `time`, `how`, `console`."""
        return self.root / checked(self.cluster) / f"{checked(self.node)}.ended"


def write_end(folder: MachineFolder, how: str) -> None:
    """Record that a machine ended by itself, with the last of its console."""
    record = {"time": time.time(), "how": how, "console": tail(folder.console, 100)}
    put_in_place(folder.ended, json.dumps(record))


def console_text(folder: MachineFolder, lines: int) -> str:
    """The last lines of a machine's console, from the record of its end if it has ended."""
    if folder.console.exists():
        return tail(folder.console, lines)
    try:
        text = str(json.loads(folder.ended.read_text()).get("console", ""))
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def tail(path: Path, lines: int) -> str:
    """The last lines of a file, without carriage returns; empty if it is not there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 200 * lines - 1000))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.replace("\r", "").splitlines()[-lines:])


def remove_tree(path: Path) -> None:
    """Remove a folder and all below; MachineError while something is mounted in it."""
    if not path.exists() and not path.is_symlink():
        return
    mounted = [place for place in mount_points() if place.is_relative_to(path)]
    if mounted:
        raise MachineError(f"{path} is not removed: {mounted[0]} is a mount", f"umount {mounted[0]}")
    shutil.rmtree(path, onerror=_try_again)
    if path.exists():  # another process was removing it, too: once more
        shutil.rmtree(path, onerror=_try_again)


def _try_again(action: Callable[..., object], path: str, _: object) -> None:
    """Make a path accessible and try again: overlayfs leaves folders of mode 0, which only root can look into."""
    try:
        os.chmod(path, 0o700)
        if action in (os.open, os.scandir, os.lstat):
            shutil.rmtree(path)
        else:
            action(path)
    except FileNotFoundError:
        return


def mount_points() -> Iterable[Path]:
    """Every mount point of this process's mount namespace."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        field = line.split()[4]
        yield Path(field.encode().decode("unicode_escape"))
