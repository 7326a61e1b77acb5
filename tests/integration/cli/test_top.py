"""`clusterctl top` over real sshd: a sampler on every node, and none left afterwards."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.cli.conftest import LoopbackCluster
from tests.integration.cli.simulated_gpus import install_gpus
from tests.integration.rehearsed import wait_until


def processes_that_name(text: str) -> list[str]:
    """The command lines of living processes with this text in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended between the listing and the reading
        if text in line:
            found.append(line)
    return found


def test_one_frame_without_a_terminal_and_no_sampler_stays(loopback_cluster: LoopbackCluster) -> None:
    for slot in range(3):
        install_gpus(loopback_cluster, slot)
    loopback_cluster.stop(3)
    done = loopback_cluster.run("top", "--connect-timeout", "5s")
    lines = done.stdout.decode().splitlines()
    assert "3/4 heard · util 0 %" in lines[0]
    assert lines[2].split()[:10] == ["train-0", *["0"] * 9]
    assert "/s" in lines[2]
    assert "refuses connections" in lines[5]
    assert done.returncode == 4
    node_bin = str(loopback_cluster.folder / "node-0" / "bin")
    wait_until(lambda: not processes_that_name(node_bin), what="the sampler's nvidia-smi has ended", timeout_s=30)


def test_a_frame_as_json(loopback_cluster: LoopbackCluster) -> None:
    install_gpus(loopback_cluster, 1)
    done = loopback_cluster.run("top", "--node", "1", "--json")
    (node,) = json.loads(done.stdout)["nodes"]
    assert len(node["sample"]["gpus"]) == 8
    assert (node["node"], node["rank"], node["error_class"], node["message"]) == ("train-1", 1, None, None)
    assert done.returncode == 0
