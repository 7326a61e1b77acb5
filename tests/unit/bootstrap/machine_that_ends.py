"""A machine made of files that is to end, and a process on it that asked to be warned."""

from __future__ import annotations

from pathlib import Path

from clusterctl_bootstrap.node import register
from clusterctl_bootstrap.node.notices import remembered
from clusterctl_bootstrap.node.spot_market import SpotNotices
from clusterctl_bootstrap.node.watch import Rule, Watch

from tests.unit.bootstrap.fake_outside import FakeOutside
from tests.unit.bootstrap.node_examples import born

STARTED_S = 1000
MINUTE = 60


class Ending:
    """A machine whose uptime a test moves, with one terminal."""

    def __init__(self, root: Path, *rules: Rule) -> None:
        self.root = born(root, with_systemd=True)
        self.outside = FakeOutside()
        self.rules = {str(number): rule for number, rule in enumerate(rules)}
        self.notices = SpotNotices()
        """AWS's notices, changed by a test."""
        (root / "dev/pts").mkdir(parents=True)
        (root / "dev/pts/0").touch()
        (root / "dev/pts/ptmx").touch()
        register.open_register(root, self.outside)
        self.at(0)
        self.watch = self.started_anew()

    def started_anew(self) -> Watch:
        """The watch, started anew as after a push: it knows the notices on disk, and has not asked AWS yet."""
        self.notices = remembered(self.root)
        self.watch = Watch(self.root, self.outside, self.rules, aws_notices=lambda: self.notices)
        return self.watch

    def at(self, second: float) -> None:
        (self.root / "proc").mkdir(exist_ok=True)
        (self.root / "proc/uptime").write_text(f"{STARTED_S + second:.2f} 9.00\n")

    def deadline(self, second: int) -> None:
        """As the guard writes it: the last stage is 90 s later."""
        (self.root / "run/clusterctl/last-stage-at").write_text(f"uptime {STARTED_S + second + 90}\n")

    def look(self, second: float) -> str:
        """What the terminal shows after a look at that second."""
        self.at(second)
        (self.root / "dev/pts/0").write_text("")
        self.watch.look()
        return (self.root / "dev/pts/0").read_text().strip("\r\n\a* ")

    @property
    def has_ended(self) -> bool:
        return ["systemctl", "poweroff", "--force"] in self.outside.commands


def ask(ending: Ending, process_id: int | str) -> Path:
    """An entry in the register, and that process among this machine's."""
    (ending.root / f"proc/{process_id}").mkdir(exist_ok=True)
    entry = ending.root / register.REGISTER / str(process_id)
    entry.touch()
    return entry
