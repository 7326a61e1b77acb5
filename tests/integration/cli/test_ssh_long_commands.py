"""Commands that outlive several keepalives: they cost nothing while they are silent, and nobody waits for another."""

from __future__ import annotations

import time

from clusterctl.home import Home
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.remote_command import usable_keys

from tests.integration.cli.conftest import LoopbackCluster

SECONDS = 6
KEEPALIVE_S = 1.5


def test_answers_to_keepalives_do_not_keep_the_loop_busy(loopback_cluster: LoopbackCluster) -> None:
    inventory = loopback_cluster.inventory
    heard: dict[int, list[bytes]] = {node.slot: [] for node in inventory.nodes}
    used_s = time.process_time()
    results = run_on_nodes(
        inventory,
        inventory.nodes,
        f"for i in {' '.join(map(str, range(SECONDS)))}; do echo $i; sleep 1; done",
        keys=usable_keys(inventory, Home(path=loopback_cluster.home)),
        deadlines=Deadlines(silence_s=3 * KEEPALIVE_S),
        sinks=NodeSinks(stdout=lambda node, chunk: heard[node.slot].append(chunk), stderr=lambda node, chunk: None),
    )
    assert [result.failure for result in results.values()] == [None] * len(results)
    expected = [f"{n}\n".encode() for n in range(SECONDS)]
    assert {slot: b"".join(chunks) for slot, chunks in heard.items()} == dict.fromkeys(heard, b"".join(expected))
    assert time.process_time() - used_s < SECONDS / 4
