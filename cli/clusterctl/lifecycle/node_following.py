"""Follows what one node says of its boot, in steps on an event loop, and gives it the membership once it is ready."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from clusterctl_infra.outputs import Inventory, InventoryUnreadable, read_inventory
from clusterctl_infra.strict_json import NotAsExpected

from clusterctl.home import home_directory
from clusterctl.lifecycle.membership import apply_membership
from clusterctl.lifecycle.script_delivery import deliver_scripts
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.fanout.conversation import Conversation
from clusterctl.ssh.fanout.event_loop import Task, Waiting
from clusterctl.ssh.keys.login_keys import LoginKeys, load_login_keys
from clusterctl.ssh.target import target_of
from clusterctl.ssh.way_in import uses_session_manager
from clusterctl.status.node_report import NodeReport, parse_report

FOLLOW = "clusterctl-node status --follow"
FIRST_RETRY_S = 0.2
LONGEST_RETRY_S = 1.0
RETRY_GROWTH = 1.3
"""Each try costs a process here and one there, while machines want the processor to boot."""
REHEARSED_WAIT_S = 5.0
"""How long the proxy command of a rehearsed node waits for the node's sshd, in one process."""
LONGEST_RETRY_BY_SESSION_MANAGER_S = 10.0
"""There each try starts two programs here and a session in the account, which AWS counts (StartSession quota)."""


class Followed(Protocol):
    """A node as `follow` sees it; all of its methods are called on the event loop's thread."""

    slot: int

    @property
    def is_final(self) -> bool:
        """Whether nothing more is expected of the node."""

    @property
    def scripts(self) -> bytes | None:
        """The texts of the scripts that the node reports to wait for; None: it does not wait for any."""

    @property
    def membership(self) -> bytes | None:
        """The membership for the node, once it is ready; None: it is not, or the membership is not known yet."""

    def reported(self, report: NodeReport) -> None:
        """Notes what the node reported."""

    def troubled(self, why: str, *, failure: NodeFailure | None = None) -> None:
        """Notes that an attempt to reach the node failed."""

    def delivered(self, refusal: str | None) -> None:
        """Notes that the node has its scripts, or why it did not take them."""

    def applied(self, refusal: str | None) -> None:
        """Notes that the node has the membership, or why it did not take it."""


@dataclass(frozen=True, kw_only=True)
class WayIn:
    """How the nodes are reached, by the inventory as it is now."""

    inventory: Inventory
    deadlines: Deadlines
    longest_retry_s: float


class WaysIn:
    """Reads the inventory and the login keys when they have changed, once for all nodes; used by one thread."""

    def __init__(self, inventory_file: Path) -> None:
        self._file = inventory_file
        self._version: tuple[int, int, int] | None = None
        self._way: WayIn | None = None
        self._keys: LoginKeys | None = None

    def now(self) -> WayIn:
        """The way in. Raises OSError, InventoryUnreadable."""
        found = os.stat(self._file)
        version = found.st_ino, found.st_mtime_ns, found.st_size
        if self._way is None or version != self._version:
            self._way = way_by(read_inventory(self._file))
            self._version, self._keys = version, None
        return self._way

    def keys(self, inventory: Inventory) -> LoginKeys:
        """The keys for this inventory. Raises NodeFailure when there are none; the next try looks again."""
        if self._keys is None:
            self._keys = load_login_keys(inventory, home_directory(os.environ), ssh_dir=Path.home() / ".ssh")
        return self._keys

    def forget_keys(self) -> None:
        """Has the next try read the keys again."""
        self._keys = None


def follow(node: Followed, ways: WaysIn) -> Task:
    """Connects again and again until the node is final: it is ready and has the membership, or has failed."""
    pause_s, longest_s = FIRST_RETRY_S, LONGEST_RETRY_S
    while not node.is_final:
        try:
            way = ways.now()
        except (OSError, InventoryUnreadable):
            pass  # the engine has not written it yet
        else:
            longest_s = way.longest_retry_s
            yield from _try(node, way, ways)
        yield Waiting(until=time.monotonic() + pause_s)
        pause_s = min(pause_s * RETRY_GROWTH, longest_s)


def _try(node: Followed, way: WayIn, ways: WaysIn) -> Generator[Waiting, bool, None]:
    inventory = way.inventory
    row = next((row for row in inventory.nodes if row.slot == node.slot), None)
    if row is None:
        return
    try:
        keys = ways.keys(inventory)
        talk = yield from Conversation.opened(target_of(inventory, row), keys, way.deadlines)
        try:
            yield from _talk(node, talk)
        except Exception:
            yield from talk.end()
            raise
        except BaseException:  # the loop ends, and no task may wait for long
            talk.cut()
            raise
        yield from talk.end()
    except NotAsExpected as e:
        node.troubled(f"its agent's status cannot be read: {e}")
    except NodeFailure as failure:
        if failure.kind == "auth":  # a person may add a key to the SSH agent meanwhile
            ways.forget_keys()
        node.troubled(failure.message_under(row.name), failure=failure)
    except OSError as e:  # for example, no file descriptor is left
        node.troubled(e.strerror or str(e))


def _talk(node: Followed, talk: Conversation) -> Generator[Waiting, bool, None]:
    def hear(line: str) -> None:
        if (report := parse_report(line)) is not None:
            node.reported(report)

    def is_enough() -> bool:
        return node.is_final or node.scripts is not None or node.membership is not None

    yield from talk.hear_lines(FOLLOW, hear, is_enough=is_enough)
    while (texts := node.scripts) is not None and not node.is_final:
        refusal = yield from deliver_scripts(talk, texts)
        node.delivered(refusal)
        if refusal is not None:
            return
        yield from talk.hear_lines(FOLLOW, hear, is_enough=is_enough)
    content = node.membership
    if content is not None and not node.is_final:
        node.applied((yield from apply_membership(talk, content)))


def way_by(inventory: Inventory) -> WayIn:
    """The way in by this inventory; in a rehearsal `connect.py` itself waits for a node that boots (SECONDS)."""
    command, usual = inventory.ssh.proxy_command, Deadlines()
    if not inventory.rehearsal or command is None:
        longest_s = LONGEST_RETRY_BY_SESSION_MANAGER_S if uses_session_manager(command) else LONGEST_RETRY_S
        return WayIn(inventory=inventory, deadlines=usual, longest_retry_s=longest_s)
    ssh = replace(inventory.ssh, proxy_command=(*command, f"{REHEARSED_WAIT_S:g}"))
    deadlines = replace(usual, total_s=usual.total_s + REHEARSED_WAIT_S, greeting_s=usual.greeting_s + REHEARSED_WAIT_S)
    return WayIn(inventory=replace(inventory, ssh=ssh), deadlines=deadlines, longest_retry_s=LONGEST_RETRY_S)
