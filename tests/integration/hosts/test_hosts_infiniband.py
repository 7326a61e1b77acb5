"""Hosts with simulated InfiniBand: the order of their ranks, and what pairs of them measure."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.hosts.foreign import Foreign, address
from tests.integration.hosts.simulated_infiniband import IBNETDISCOVER, carries, give, plug_in, unplug
from tests.unit.cli.hosts.fabrics import adapter_guid, printed


def ranks(net: Foreign) -> list[int]:
    """The rank of each slot, as `clusterctl nodes` has it."""
    rows = json.loads(net.ok("nodes", "--json"))["nodes"]
    return [row["rank"] for row in sorted(rows, key=lambda row: int(row["slot"]))]


def test_hosts_of_one_infiniband_switch_have_neighbouring_ranks_and_pairs_are_measured(
    net: Foreign, tmp_path: Path
) -> None:
    """The adapters and the programs are simulated; the first and the third host hang below one switch."""
    numbers = (1, 2, 4)
    fabric = printed({1: [adapter_guid(1), adapter_guid(4)], 2: [adapter_guid(2)]}, {1: [10], 2: [10]})
    stack = str(
        net.write_stack(
            tmp_path / "lab",
            hosts="".join(f"  - {address(number)}\n" for number in numbers),
            more="ranks: topology\nfabric: infiniband\n",
        )
    )
    try:
        for number in numbers:
            plug_in(net, number, adapter_guid(number))
        up = net.clusterctl("up", stack, "--yes")
        assert up.returncode == 0, up.stderr
        assert (
            "ranks       as they were: no host has ibnetdiscover, which is in the package infiniband-diags" in up.stderr
        )
        give(net, 2, "/usr/sbin/ibnetdiscover", IBNETDISCOVER)
        up = net.clusterctl("up", stack, "--yes", "--reorder-ranks")
        assert up.returncode == 0, up.stderr
        assert "as they were: ibnetdiscover on lab-1: cat: /root/simulated-fabric: No such file" in up.stderr
        assert ranks(net) == [0, 1, 2]
        give(net, 2, "/root/simulated-fabric", fabric)
        assert "ranks" not in net.clusterctl("up", stack, "--yes").stderr, "it is ordered once"
        up = net.clusterctl("up", stack, "--yes", "--reorder-ranks")
        assert "ranks       by InfiniBand switch (2 groups of neighbours): 2 nodes changed rank" in up.stderr
        assert ranks(net) == [0, 2, 1]
        output = net.ok("ssh", "--node", "all", "echo $CLUSTERCTL_SLOT $NODE_RANK $NCCL_IB_HCA")
        assert sorted(output.splitlines()) == [
            f"[lab-{slot}] {slot} {rank} =mlx5_0:1" for slot, rank in enumerate((0, 2, 1))
        ]
        hostfile = net.ok("ssh", "--node", "1", "--", "cut", "-d ", "-f1", "/etc/clusterctl/hostfile")
        assert hostfile.split() == ["lab-0", "lab-2", "lab-1"]

        done = net.clusterctl("check", "--bandwidth", "infiniband")
        assert done.returncode == 4
        assert "lab-1: not measured: there is no ib_write_bw: install the package perftest" in done.stdout
        for number, gbps in zip(numbers, (394.0, 394.0, 196.0), strict=True):
            carries(net, number, gbps)
        done = net.clusterctl("check", "--bandwidth", "infiniband")
        assert done.returncode == 4
        assert done.stdout.count("slow: below") == 2
        assert (
            "lab-2: all of its pairs, and only they, are slow or failed; next: clusterctl sweep --cluster lab@hosts"
            in done.stdout
        )
        assert "3 pairs, 3 links, 3 rounds of ib_write_bw: 2 links slow or failed" in done.stdout
        carries(net, 4, 0)
        report = json.loads(net.clusterctl("check", "--bandwidth", "infiniband", "--json").stdout)
        verdicts = {row["verdict"] for row in report["links"] if "lab-2" in (row["from"], row["to"])}
        assert verdicts == {"failed: " + "; there: ".join(["Unable to Connect the HCA's through the link"] * 2)}
        carries(net, 4, 391.0)
        output = net.ok("check", "--bandwidth", "infiniband", "--rounds", "1")
        assert output.endswith("1 pair, 1 link, 1 round of ib_write_bw: ok\n")
        net.ok("down", stack, "--yes")
    finally:
        for number in numbers:
            unplug(net, number)
