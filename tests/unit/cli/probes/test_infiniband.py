"""InfiniBand: the command on a tree as the kernel has it, and what is judged of the readings."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from clusterctl.probes.infiniband import InfinibandPort, InfinibandReading, near, parse_infiniband
from clusterctl.probes.infiniband_findings import infiniband_findings, usual_infiniband
from clusterctl.probes.probe import ProbeUnreadable
from clusterctl.probes.readings import Readings

PORT = InfinibandPort(
    name="mlx5_0:1",
    state="ACTIVE",
    physical="LinkUp",
    rate_gbps=400.0,
    rate="400 Gb/sec (4X NDR)",
    lid=26,
    sm_lid=1,
    partitions=("0xffff",),
    near_gpus=(0,),
)
WELL = InfinibandReading(ports=(PORT, replace(PORT, name="mlx5_1:1")), has_peermem=True, gpus=2)


def found(odd: InfinibandReading) -> list[tuple[str, str, str | None]]:
    usual = usual_infiniband([Readings(infiniband=each) for each in (WELL, WELL, WELL, odd)])
    findings = infiniband_findings(odd, usual, cluster="lab@hosts", slot=3)
    return [(each.level, each.kind, each.detail) for each in findings]


def test_a_node_like_the_others_has_no_finding() -> None:
    assert found(WELL) == []
    assert found(InfinibandReading(ports=WELL.ports, has_peermem=False, gpus=0)) == []


@pytest.mark.parametrize(
    ("odd", "finding"),
    [
        (replace(WELL, ports=WELL.ports[:1]), ("fault", "only 1 InfiniBand port", "other nodes have 2")),
        (
            replace(WELL, ports=(PORT, replace(PORT, name="mlx5_1:1", state="DOWN", physical="Polling"))),
            ("fault", "InfiniBand not active", "mlx5_1:1 DOWN, Polling; 1 port ACTIVE, on most nodes 2"),
        ),
        (
            replace(WELL, ports=(PORT, replace(PORT, name="mlx5_1:1", rate_gbps=200.0, rate="200 Gb/sec (4X HDR)"))),
            ("fault", "InfiniBand slow", "mlx5_1:1 200 Gb/sec (4X HDR); most have 400 Gb/sec"),
        ),
        (
            replace(WELL, ports=tuple(replace(port, partitions=("0x8001",)) for port in WELL.ports)),
            ("fault", "other InfiniBand partitions", "0x8001; most nodes have 0xffff"),
        ),
    ],
)
def test_what_differs_from_most_nodes_is_a_fault(odd: InfinibandReading, finding: tuple[str, str, str]) -> None:
    assert found(odd) == [finding]


UNCABLED = replace(PORT, name="mlx5_1:1", state="DOWN", physical="Polling")
ONE_CABLE = replace(WELL, ports=(PORT, UNCABLED))
NO_CABLE = replace(WELL, ports=(replace(UNCABLED, name="mlx5_0:1"), UNCABLED))
UNMANAGED = replace(WELL, ports=(PORT, replace(PORT, name="mlx5_1:1", state="INIT")))


@pytest.mark.parametrize(
    ("odd", "others", "level"),
    [
        (ONE_CABLE, [ONE_CABLE, ONE_CABLE], "remark"),
        (ONE_CABLE, [WELL, ONE_CABLE, ONE_CABLE], "remark"),
        (ONE_CABLE, [NO_CABLE, NO_CABLE], "remark"),
        (ONE_CABLE, [], "remark"),
        (ONE_CABLE, [WELL], "fault"),
        (NO_CABLE, [ONE_CABLE, ONE_CABLE], "fault"),
        (NO_CABLE, [NO_CABLE], "remark"),
        (UNMANAGED, [UNMANAGED, UNMANAGED], "fault"),
    ],
)
def test_a_port_without_a_cable_is_a_fault_where_most_nodes_have_more_that_are_active(
    odd: InfinibandReading, others: list[InfinibandReading], level: str
) -> None:
    """Adapters with two ports and one cable are usual; a port with a link needs a subnet manager everywhere."""
    usual = usual_infiniband([Readings(infiniband=each) for each in (*others, odd)])
    assert [each.level for each in infiniband_findings(odd, usual, cluster="lab@hosts", slot=0)] == [level]


def test_adapters_that_do_not_reach_the_gpus_memory_are_a_remark_with_what_helps() -> None:
    odd = replace(WELL, has_peermem=False)
    usual = usual_infiniband([Readings(infiniband=WELL)])
    (finding,) = infiniband_findings(odd, usual, cluster="lab@hosts", slot=3)
    assert (finding.level, finding.kind) == ("remark", "nvidia_peermem is not loaded")
    assert finding.next == "clusterctl ssh --cluster lab@hosts --node 3 sudo modprobe nvidia_peermem"


def test_the_nearest_gpu_shares_the_most_bridges_and_none_is_near_without_one() -> None:
    switch = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
    adapter = f"{switch}/0000:17:01.0/0000:18:00.0"
    gpus = [f"{switch}/0000:17:02.0/0000:19:00.0", "/sys/devices/pci0000:15/0000:15:01.0/0000:20:00.0"]
    assert near(adapter, gpus) == (0,)
    assert near(adapter, gpus[1:]) == (0,)
    assert near(adapter, ["/sys/devices/pci0000:15/0000:15:05.0/0000:30:00.0"]) == ()
    assert near(adapter, []) == ()


@pytest.mark.parametrize(
    "text", ["sh: cat: not found", "port|mlx5_0:1|4: ACTIVE", "port|a:1|ACTIVE|5: LinkUp|400 Gb|0x1|0x1||/sys"]
)
def test_what_is_no_port_is_unreadable(text: str) -> None:
    with pytest.raises(ProbeUnreadable, match=f"^InfiniBand: {re.escape(text)}"):
        parse_infiniband(text)
