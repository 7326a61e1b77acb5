"""A machine that exists only in a test: its clock moves when somebody sleeps, its commands end as the test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clusterctl_bootstrap.node.outside import Outside

BANNER = "SSH-2.0-OpenSSH_9.2"


class FakeOutside(Outside):
    """`addresses` are the machine's own; `codes` gives exit codes by a command's last word, 0 where it has none.

    `answer` is asked first: exit code and output of a command, or None.
    """

    def __init__(self, *, addresses: tuple[str, ...] = ("10.0.8.2",), banner: str = BANNER) -> None:
        self.addresses = addresses
        self.banner = banner
        self.codes: dict[str, int] = {}
        self.answer: Callable[[list[str]], tuple[int, str] | None] = lambda argv: None
        self.commands: list[list[str]] = []
        self.owned: dict[str, tuple[int, int]] = {}
        self.slept_s = 0.0

    def has_address(self, address: str) -> bool:
        return address in self.addresses

    def ssh_banner(self, address: str, port: int = 22) -> str:
        return self.banner

    def run(self, argv: list[str], timeout_s: float = 30) -> tuple[int, str]:
        self.commands.append(argv)
        return self.answer(argv) or (self.codes.get(argv[-1], 0), "said by a test")

    def own(self, path: Path, user_id: int, group_id: int) -> None:
        self.owned[path.name] = (user_id, group_id)

    def monotonic(self) -> float:
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
