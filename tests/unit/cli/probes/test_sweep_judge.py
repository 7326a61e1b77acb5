"""What a sweep calls wrong, and the words for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any  # readings of every type

import pytest
from clusterctl.probes.clock import ClockReading
from clusterctl.probes.disk import FileSystem
from clusterctl.probes.efa import EfaReading
from clusterctl.probes.gpu import GpuReading, LostGpu
from clusterctl.probes.gpu_xml import Gpu
from clusterctl.probes.kernel_log import KernelReading, XidEvent
from clusterctl.probes.nvlink import Links
from clusterctl.probes.readings import NodeAnswer, Readings
from clusterctl.probes.report import SweepReport, judged
from clusterctl.probes.spot import SpotReading
from clusterctl.probes.sweep import PROBES
from clusterctl.probes.versions import VersionsReading
from clusterctl.probes.view import summary, sweep_json, sweep_text, verdict
from clusterctl.ssh.failures import NodeFailure
from clusterctl_infra.outputs import Inventory

MakeInventory = Callable[..., Inventory]
BUSY = Gpu(
    index=0,
    bus_id="0000:53:00",
    name="NVIDIA H100 80GB HBM3",
    utilization_percent=97,
    memory_used_mib=72654,
    memory_total_mib=81559,
    temperature_c=61,
    power_w=688,
    sm_mhz=1980,
    sm_max_mhz=1980,
    is_ecc_on=True,
    ecc_uncorrected=0,
    fabric_state="Completed",
)
EIGHT = tuple(replace(BUSY, index=index, bus_id=f"0000:{0x53 + index:02x}:00") for index in range(8))
WELL = Readings(gpu=GpuReading(driver_version="550.127", gpus=EIGHT), kernel=KernelReading())


def with_gpu(index: int, **changed: Any) -> Readings:
    """A node that is well but for one GPU."""
    gpus = tuple(replace(gpu, **changed) if gpu.index == index else gpu for gpu in EIGHT)
    return replace(WELL, gpu=GpuReading(driver_version="550.127", gpus=gpus))


def with_lost(index: int, *xids: XidEvent) -> Readings:
    lost = LostGpu(index=index, bus_id=EIGHT[index].bus_id, message="Unknown Error")
    gpus = tuple(gpu for gpu in EIGHT if gpu.index != index)
    return replace(WELL, gpu=GpuReading(gpus=gpus, lost=(lost,)), kernel=KernelReading(xids=xids))


def swept(
    inventory: Inventory, last: Readings, failure: NodeFailure | None = None, *, well: Readings = WELL
) -> SweepReport:
    """Three nodes that are well, and `last`."""
    readings = [*[well] * (len(inventory.nodes) - 1), last]
    return judged(
        inventory,
        [
            NodeAnswer(
                node=node,
                readings=each,
                failure=failure if each is last else None,
                asked_at_s=1000.0,
                answered_at_s=1001.0,
            )
            for node, each in zip(inventory.nodes, readings, strict=True)
        ],
    )


XID_79 = XidEvent(code=79, bus_id="0000:56:00", count=1, message="GPU has fallen off the bus.")
XID_48 = XidEvent(code=48, bus_id="0000:55:00", count=2, message="")
XID_31 = XidEvent(code=31, bus_id="0000:55:00", count=1, message="pid=1628, name=python3, channel 0x0000001e, intr")
XID_94 = XidEvent(code=94, bus_id="0000:55:00", count=1, message="pid=1628, name=python3, Contained: SM (0x1)")
XID_13 = XidEvent(code=13, bus_id="0000:55:00", count=1, message="pid='<unknown>', name=<unknown>, Ch 8")
OTHER_DRIVER = GpuReading(driver_version="535.1", gpus=EIGHT)
DISK = FileSystem(mount="/shared", size_gib=100, free_gib=2, used_percent=98)
ALMOST_FULL_DISK = FileSystem(mount="/scratch", size_gib=1000, free_gib=90, used_percent=91)
OFF_BY_4_S = ClockReading(shown_s=1004.5, service_offset_s=None, is_synchronised=None)
NEWER_MODULE = VersionsReading(kernel="6.8", module="570.1", cuda=None, nccl=None, efa_installer=None)


@pytest.mark.parametrize(
    ("readings", "words", "is_wrong"),
    [
        (WELL, "ok", False),
        (
            with_gpu(5, temperature_c=83, sm_mhz=1155, slowdowns=("thermal slowdown",)),
            "gpu 5: thermal slowdown (83 °C; median 61 °C)",
            True,
        ),
        (
            with_lost(3, XID_79),
            "gpu 3: fallen off the bus (Xid 79): clusterctl replace --node 3 --cluster train",
            True,
        ),
        (with_lost(3), "gpu 3: does not answer (Unknown Error): clusterctl replace --node 3 --cluster train", True),
        (
            replace(WELL, gpu=GpuReading(driver_version="550.127", gpus=EIGHT[:7])),
            "only 7 GPUs (the type has 8): clusterctl replace --node 3 --cluster train",
            True,
        ),
        (replace(WELL, gpu=GpuReading(trouble="No devices were found")), "No devices were found", True),
        (with_gpu(1, temperature_c=75), "gpu 1: hot (75 °C; median 61 °C)", False),
        (with_gpu(1, temperature_c=86), "gpu 1: hot (86 °C; median 61 °C)", False),
        (with_gpu(1, utilization_percent=12), "gpu 1: low utilization (12 %; median 97 %)", False),
        (with_gpu(1, sm_mhz=1410), "gpu 1: clocks low (1410 MHz; median 1980 MHz)", True),
        (with_gpu(0, is_power_capped=True), "ok", False),
        (
            with_gpu(2, is_remap_pending=True),
            "gpu 2: a memory row needs a reset to be remapped: clusterctl ssh --cluster train --node 3",
            True,
        ),
        (
            with_gpu(2, is_remap_failed=True),
            "gpu 2: a memory row could not be remapped: clusterctl replace --node 3 --cluster train",
            True,
        ),
        (
            with_gpu(2, is_repair_pending=True),
            "gpu 2: a repair waits for a reset: clusterctl ssh --cluster train --node 3",
            True,
        ),
        (
            with_gpu(2, is_unrepairable=True),
            "gpu 2: memory that cannot be repaired: clusterctl replace --node 3 --cluster train",
            True,
        ),
        (
            with_gpu(2, ecc_uncorrected=4),
            "gpu 2: uncorrectable ECC errors (4 since the driver was loaded)",
            True,
        ),
        (with_gpu(2, recovery_action="GPU Reset"), "gpu 2: the driver asks for a recovery (GPU Reset)", True),
        (with_gpu(2, fabric_state="In Progress"), "gpu 2: the NVSwitch fabric is not up (In Progress)", True),
        (
            with_gpu(2, fabric_status="Unknown Error 5"),
            "gpu 2: the NVSwitch fabric did not accept the GPU (Unknown Error 5)",
            True,
        ),
        (with_gpu(2, fabric_health="Unhealthy"), "gpu 2: the NVSwitch fabric is not healthy (Unhealthy)", True),
        (with_gpu(2, fabric_status="Success", fabric_health="Healthy"), "ok", False),
        (with_gpu(2, is_ecc_on=False), "gpu 2: ECC is off", False),
        (with_gpu(2, mig_devices=7), "gpu 2: MIG is on (7 instances)", False),
        (
            replace(WELL, gpu=GpuReading(gpus=EIGHT[:7], lost=(LostGpu(index=7, bus_id=None, message="GPU is lost"),))),
            "gpu 7: fallen off the bus (GPU is lost): clusterctl replace --node 3 --cluster train",
            True,
        ),
        (replace(WELL, nvlink={4: Links(up=17, down=1)}), "gpu 4: NVLinks down (1 of 18)", True),
        (
            replace(WELL, kernel=KernelReading(xids=(XID_48,))),
            "gpu 2: Xid 48 (2 times; double bit ECC error): clusterctl ssh --cluster train --node 3 sudo nvidia-smi",
            True,
        ),
        (
            replace(WELL, kernel=KernelReading(xids=(XID_31,))),
            "gpu 2: Xid 31 (GPU memory page fault; program python3)",
            False,
        ),
        (
            replace(WELL, kernel=KernelReading(xids=(XID_94,))),
            "gpu 2: Xid 94 (contained ECC error; program python3 was hit: start it again)",
            False,
        ),
        (replace(WELL, kernel=KernelReading(xids=(XID_13,))), "gpu 2: Xid 13 (graphics engine exception)", False),
        (replace(WELL, kernel=KernelReading(killed=("python3",))), "killed for lack of memory (python3)", False),
        (replace(WELL, spot=SpotReading(notice=None, time=None)), "ok", False),
        (
            replace(WELL, spot=SpotReading(notice="interruption", time="2026-11-21T12:02:00Z")),
            "AWS takes it back (spot; at 2026-11-21T12:02:00Z)",
            False,
        ),
        (
            replace(WELL, spot=SpotReading(notice="rebalance", time="2026-11-21T12:00:00Z")),
            "AWS may take it back soon (spot; it said so at 2026-11-21T12:00:00Z)",
            False,
        ),
        (replace(WELL, gpu=OTHER_DRIVER), "another driver (535.1; most nodes have 550.127)", True),
        (replace(WELL, versions=NEWER_MODULE), "the driver was upgraded but not loaded (loaded 570.1", True),
        (replace(WELL, disk=(DISK,)), "/shared is full (98 %, 2 GiB left)", True),
        (replace(WELL, disk=(ALMOST_FULL_DISK,)), "/scratch is almost full (91 %, 90 GiB left)", False),
        (replace(WELL, clock=OFF_BY_4_S), "the clock is off (by +3.5 s at least)", True),
        (replace(WELL, troubles={"disk": "no answer in 8 s"}), "no reading of disk (no answer in 8 s)", False),
        (Readings(troubles={"gpu": "no answer in 25 s"}), "no reading of gpu (no answer in 25 s)", True),
    ],
)
def test_a_nodes_verdict_says_what_is_wrong_and_whether_it_is_a_fault(
    readings: Readings, words: str, is_wrong: bool, make_inventory: MakeInventory
) -> None:
    report = swept(make_inventory(size=4), readings)
    node = report.nodes[3]
    assert verdict(node, report.inventory).startswith(words)
    assert node.is_wrong is is_wrong


def test_a_finding_on_several_gpus_is_told_once(make_inventory: MakeInventory) -> None:
    gpus = tuple(replace(gpu, is_ecc_on=gpu.index not in (0, 1, 2, 5)) for gpu in EIGHT)
    report = swept(make_inventory(size=4), replace(WELL, gpu=GpuReading(driver_version="550.127", gpus=gpus)))
    assert verdict(report.nodes[3], report.inventory) == "gpu 0-2,5: ECC is off"


def test_fewer_efa_devices_than_the_others_is_a_fault(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=3)
    counts = (32, 32, 31)
    answers = [
        NodeAnswer(
            node=node,
            readings=Readings(efa=EfaReading(devices=count, active=count, counters={})),
            failure=None,
            asked_at_s=0,
            answered_at_s=1,
        )
        for node, count in zip(inventory.nodes, counts, strict=True)
    ]
    report = judged(inventory, answers)
    assert [verdict(node, report.inventory) for node in report.nodes] == [
        "ok",
        "ok",
        "only 31 EFA devices (other nodes have 32)",
    ]


@pytest.mark.parametrize(
    ("shown_s", "words", "own_s"),
    [
        ((1000.5, 1000.5, 1000.5), ["ok", "ok", "ok"], 0),
        ((1000.5, 1000.5, 1009.0), ["ok", "ok", "the clock is off (by +8.0 s at least)"], 0),
        ((1000.5, 1000.5, 992.0), ["ok", "ok", "the clock is off (by -8.0 s at least)"], 0),
        ((1031.0, 1031.0, 1031.0), ["ok", "ok", "ok"], 30),
    ],
)
def test_clocks_are_judged_against_the_cluster(
    shown_s: tuple[float, ...], words: list[str], own_s: float, make_inventory: MakeInventory
) -> None:
    inventory = make_inventory(size=3)
    answers = [
        NodeAnswer(
            node=node,
            readings=Readings(clock=ClockReading(shown_s=shown, service_offset_s=None, is_synchronised=None)),
            failure=None,
            asked_at_s=1000.0,
            answered_at_s=1001.0,
        )
        for node, shown in zip(inventory.nodes, shown_s, strict=True)
    ]
    report = judged(inventory, answers)
    assert [verdict(node, report.inventory) for node in report.nodes] == words
    assert report.own_offset_s == own_s
    text = sweep_text(report, probes=["clock"], is_chosen=True)
    assert ("this computer's clock is 30.0 s behind the nodes' clocks" in text) is bool(own_s)


def test_a_node_that_was_not_reached_is_wrong_and_says_why(make_inventory: MakeInventory) -> None:
    report = swept(make_inventory(size=4), Readings(), NodeFailure("refused", "10.0.8.3:22 refused the connection"))
    assert verdict(report.nodes[3], report.inventory) == "10.0.8.3:22 refused the connection"
    assert summary(report) == "1 of 4 nodes has a fault"


def test_the_table_is_as_the_person_knows_it_and_a_rehearsal_is_labelled(make_inventory: MakeInventory) -> None:
    hot = with_gpu(5, temperature_c=83, sm_mhz=1155, slowdowns=("thermal slowdown",))
    report = swept(make_inventory(size=4, rehearsal=True), hot)
    lines = sweep_text(report, probes=list(PROBES), is_chosen=False).splitlines()
    assert "simulated GPUs" in lines[0]
    assert " ".join(lines[1].split()) == "node gpus util mem temp power clocks ecc xid driver verdict"
    assert " ".join(lines[2].split()) == "train-0 8 97 % 71/80 GiB 61 °C 688 W 1980 0 – 550.127 ok"
    assert "83 °C" in lines[5]
    assert "1155 ↓" in lines[5]


def test_a_cluster_without_gpus_has_columns_of_its_own(make_inventory: MakeInventory) -> None:
    inventory = make_inventory(size=2, gpus_per_node=0, gpu_name=None)
    answers = [
        NodeAnswer(node=node, readings=Readings(), failure=None, asked_at_s=0, answered_at_s=1)
        for node in inventory.nodes
    ]
    header = sweep_text(judged(inventory, answers), probes=list(PROBES), is_chosen=False).splitlines()[1]
    assert "gpus" not in header
    assert "load" in header


def test_json_has_every_reading_and_finding(make_inventory: MakeInventory) -> None:
    data: Any = sweep_json(swept(make_inventory(size=4), with_gpu(2, is_ecc_on=False)))
    assert data["wrong"] == []
    assert data["nodes"][3]["readings"]["gpu"]["gpus"][2]["is_ecc_on"] is False
    assert data["nodes"][3]["findings"] == [
        {"level": "remark", "kind": "ECC is off", "detail": None, "gpu": 2, "next": None}
    ]
    assert data["medians"]["temperature_c"] == 61


def idle(reading: GpuReading | None) -> GpuReading | None:
    assert reading is not None
    gpus = (replace(gpu, utilization_percent=0, temperature_c=41, power_w=72, sm_mhz=345) for gpu in reading.gpus)
    return replace(reading, gpus=tuple(gpus))


def test_one_node_that_works_among_idle_ones_is_not_hot(make_inventory: MakeInventory) -> None:
    at_rest = replace(WELL, gpu=idle(WELL.gpu))
    report = swept(make_inventory(), WELL, well=at_rest)
    assert [verdict(node, report.inventory) for node in report.nodes] == ["ok"] * 4


def test_among_those_that_work_a_hot_one_is_found_though_others_are_idle(make_inventory: MakeInventory) -> None:
    at_rest = replace(WELL, gpu=idle(WELL.gpu))
    report = swept(make_inventory(), with_gpu(1, temperature_c=75), well=at_rest)
    assert verdict(report.nodes[3], report.inventory) == "gpu 1: hot (75 °C; median 61 °C)"


def test_a_limit_that_is_absolute_holds_for_the_only_one_that_works(make_inventory: MakeInventory) -> None:
    at_rest = replace(WELL, gpu=idle(WELL.gpu))
    assert at_rest.gpu is not None
    gpus = (replace(BUSY, temperature_c=86), *at_rest.gpu.gpus[1:])
    report = swept(make_inventory(), replace(WELL, gpu=replace(at_rest.gpu, gpus=gpus)), well=at_rest)
    assert verdict(report.nodes[3], report.inventory) == "gpu 0: hot (86 °C)"
