"""How the result of `check` is shown: which nodes are wrong, and which pairs of nodes fail."""

from __future__ import annotations

from clusterctl.probes.check import (
    IDLE_GPU_MIB,
    CheckedNode,
    check_json,
    check_lines,
    memory_findings,
    unchecked_network,
    without_network,
)
from clusterctl.probes.finding import Finding
from clusterctl.probes.gpu import GpuReading
from clusterctl.probes.gpu_xml import Gpu
from clusterctl.probes.network import NetworkReading, Unreached
from clusterctl.probes.probe import ProbeTrouble
from clusterctl.probes.readings import NodeAnswer, Readings, readings_of
from clusterctl.ssh.failures import NodeFailure
from clusterctl_infra.outputs import InventoryNode

from tests.unit.cli.conftest import MakeInventory

FAULT = Finding(level="fault", kind="does not reach train-1", detail="any port: no answer")


def checked(
    node: InventoryNode, *findings: Finding, unreached: tuple[Unreached, ...] = (), failure: NodeFailure | None = None
) -> CheckedNode:
    answer = NodeAnswer(node=node, readings=Readings(), failure=failure, asked_at_s=0.0, answered_at_s=1.0)
    network = NetworkReading(slot=node.slot, trouble="", busy=(), names=(), are_names_known=True, unreached=unreached)
    return CheckedNode(answer=answer, network=None if failure else network, findings=findings)


def test_sound_nodes_are_one_line_and_every_other_node_has_its_own(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=3)
    first, second, third = inventory.nodes
    looked = "names, clocks, TCP between all, disks, GPU memory (ports 28500,29400,29500,45000)"
    assert check_lines(inventory, [checked(first)]) == [f"1 node, {looked}: ok"]
    away = NodeFailure("refused", "10.0.8.2:22 refused the connection")
    lines = check_lines(inventory, [checked(first, FAULT), checked(second), checked(third, failure=away)])
    assert lines[0] == "train-0: does not reach train-1 (any port: no answer)"
    assert lines[1].startswith("train-2: 10.0.8.2:22 refused the connection")
    assert lines[2] == f"3 nodes, {looked}: 2 of them not ok"


def test_json_has_the_pairs_that_fail(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=2)
    first, second = inventory.nodes
    row = Unreached(slot=1, port=29500, why="no answer")
    found = check_json(inventory, [checked(first, FAULT, unreached=(row,)), checked(second)])
    assert found["pairs"] == [{"from": "train-0", "to": "train-1", "port": 29500, "why": "no answer"}]
    assert found["wrong"] == ["train-0"]


def test_gpu_memory_in_use_is_told_but_not_that_of_an_idle_driver() -> None:
    gpus = tuple(
        Gpu(index=index, bus_id=None, name="H100", memory_used_mib=used)
        for index, used in enumerate((IDLE_GPU_MIB, IDLE_GPU_MIB + 1, None))
    )
    assert [(each.gpu, each.level) for each in memory_findings(Readings(gpu=GpuReading(gpus=gpus)))] == [(1, "remark")]


def test_why_a_network_was_not_checked_is_taken_out_of_the_other_readings() -> None:
    trouble = ProbeTrouble(message="python3: not found")
    heard, others = without_network({"network": trouble, "disk": ProbeTrouble(message="df: not found")})
    assert heard == trouble
    assert readings_of(others).troubles == {"disk": "df: not found"}
    assert unchecked_network(trouble).detail == "python3: not found"
    assert unchecked_network(None).level == "fault"
