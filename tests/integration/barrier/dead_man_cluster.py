"""Nodes of one cluster that watch for each other over the loopback network, and ways to cut them off."""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import socket
from pathlib import Path

from clusterctl_bootstrap.node.dead_man import PORT, DeadMan

from tests.unit.bootstrap.node_examples import born, pushed

ALLOWED_S = 60
SECRET = bytes(range(32))
_NUMBERS = itertools.count(1)


class Cluster:
    """Slots with a clock in common; those in `silent` are cut off or gone."""

    def __init__(self, folder: Path, nodes: int, *, allowed_s: int = ALLOWED_S) -> None:
        self.now_s = 0.0
        self.silent: set[int] = set()
        more, place = divmod(next(_NUMBERS), 32)
        cidr = f"127.{1 + 120 * more + os.getpid() // 250 % 120}.{os.getpid() % 250}.{8 * place}/29"
        self.place = (cidr.partition("/")[0], PORT)
        self.roots = [folder / str(slot) for slot in range(nodes)]
        for slot, root in enumerate(self.roots):
            root.mkdir()
            born(root, slot=slot, nodes=nodes, slot_cidr=cidr)
            (root / "etc/clusterctl").mkdir()
            (root / "etc/clusterctl/barrier").write_bytes(SECRET)
            membership = pushed(nodes=nodes, slot_cidr=cidr, dead_man_s=allowed_s)
            (root / "var/lib/clusterctl/cluster.json").write_text(membership)
        self.asked: list[tuple[int, str, bool]] = []
        """Slot, why, and whether only if slot 0 is gone: what AWS was asked to end."""
        self.nodes = [DeadMan(root, lambda: self.now_s, self.start) for root in self.roots]

    def run(self, seconds: int) -> dict[int, str]:
        """Slot → why it has to end, after `seconds` in which each slot looked once a second."""
        verdicts: dict[int, str] = {}
        for _ in range(seconds):
            self.now_s += 1
            verdicts = {slot: node.look() for slot, node in enumerate(self.nodes) if slot not in self.silent}
        return {slot: why for slot, why in verdicts.items() if why}

    def start(
        self, root: Path, known: dict[str, int], why: str, since: object, wait_s: int, sleep: object, only: bool
    ) -> str:
        """Stands for the call to AWS, and notes it."""
        self.asked.append((known["slot"], why, only))
        return "asked"

    def end(self) -> None:
        for node in self.nodes:
            if node.door is not None:
                node.door.close()


class Cut(socket.socket):
    """Sends nothing to `places`, and hears what they send: a network that fails in one direction."""

    places: frozenset[tuple[str, int]] = frozenset()

    def sendto(self, *arguments: object) -> int:
        data, place = arguments
        if place in self.places:
            raise OSError("unplugged")
        return super().sendto(data, place)  # type: ignore[call-overload,no-any-return]  # as the node calls it


def cut_off(cluster: Cluster, slot: int, *, other_half: set[int]) -> None:
    """Nothing that the slot says reaches the others."""
    door = cluster.nodes[slot].door
    assert door is not None
    place = door.getsockname()
    door.close()
    cut = Cut(socket.AF_INET, socket.SOCK_DGRAM)
    cut.setblocking(False)
    cut.bind(place)
    first = ipaddress.ip_address(cluster.place[0])
    cut.places = frozenset((str(first + other), PORT) for other in other_half)
    cluster.nodes[slot].door = cut


class Deaf(socket.socket):
    """Sends nothing and hears nothing."""

    def recvfrom(self, *arguments: object) -> tuple[bytes, object]:
        raise BlockingIOError

    def sendto(self, *arguments: object) -> int:
        raise OSError("unplugged")


def deaf(door: socket.socket | None) -> socket.socket:
    assert door is not None
    door.close()
    return Deaf(socket.AF_INET, socket.SOCK_DGRAM)


def beat(cluster: Cluster, slot: int) -> dict[str, object]:
    """What the slot sent last."""
    node = cluster.nodes[slot]
    known = json.loads((cluster.roots[slot] / "var/lib/clusterctl/birth.json").read_text())
    return {"id": known["cluster_id"], "slot": slot, "own": node.own[0], "theirs": node.theirs}
