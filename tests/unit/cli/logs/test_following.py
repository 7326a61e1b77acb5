"""Which nodes count as silent while logs are followed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from clusterctl.logs.following import MOST_ITEMS, Following, Notice
from clusterctl.logs.request import LogRequest
from clusterctl.logs.source import Source
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl_infra.outputs import Inventory, InventoryNode

TIMEOUT_S = 30.0
BEGINS_S = 0.2
"""Long enough for a started thread to wait for room, and for one that found room to go on."""
GONE = NodeFailure("lost", "train-0 is gone", phase="command")


class Clock:
    """Gives the time; calls `meanwhile` first, once."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.meanwhile: Callable[[], object] | None = None

    def __call__(self) -> float:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return self.now_s


def request_of(inventory: Inventory) -> LogRequest:
    return LogRequest(
        inventory=inventory,
        nodes=inventory.nodes[:2],
        sources={"kernel": Source(journal=("-k",))},
        since_s=None,
        grep=None,
        is_followed=True,
        timeout_s=TIMEOUT_S,
        keys=LoginKeys(keys=(), described=""),
        deadlines=Deadlines(),
    )


def filled(request: LogRequest, clock: Clock) -> tuple[Following, InventoryNode, InventoryNode, threading.Thread]:
    """A full queue, a node that is read, one that is lost, and a thread that waits for room once it is started."""
    following = Following(request, now=clock)
    node, other = request.nodes
    following.begin(node)
    for _ in range(MOST_ITEMS):
        following.lost(other, GONE, 0)
    return following, node, other, threading.Thread(target=following.lost, args=(other, GONE, 0), daemon=True)


def test_a_node_that_is_lost_while_nobody_listens_is_not_waited_for(make_inventory: Callable[..., Inventory]) -> None:
    clock = Clock()
    following, node, _, full = filled(request_of(make_inventory()), clock)
    clock.meanwhile = lambda: following.lost(node, GONE, 9)  # the ninth try: no new notice
    full.start()
    full.join(BEGINS_S)
    while full.is_alive():
        following.next(0.1)
        full.join(BEGINS_S)
    while following.next(0.0) is not None:
        pass
    clock.now_s += TIMEOUT_S + 1
    assert following.next(0.0) is None


def test_the_time_in_which_nobody_listened_is_no_silence_of_the_nodes(make_inventory: Callable[..., Inventory]) -> None:
    clock = Clock()
    following, _, _, full = filled(request_of(make_inventory()), clock)
    full.start()
    full.join(BEGINS_S)
    clock.now_s += TIMEOUT_S + 1
    while full.is_alive():
        following.next(0.1)
        full.join(BEGINS_S)
    while (item := following.next(0.0)) is not None:
        assert isinstance(item, Notice)
        assert "trying again" in item.text
    clock.now_s += TIMEOUT_S + 1
    item = following.next(0.0)
    assert isinstance(item, Notice)
    assert "has said nothing for 30 s" in item.text
    assert following.next(0.0) is None, "a silent node is reported once"
