"""The probe's command on a /sys as Linux has it: devices as links into the PCI tree, one file for each value."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clusterctl.probes.infiniband import INFINIBAND, InfinibandReading

SWITCH = "devices/pci0000:15/0000:15:01.0/0000:16:00.0"
ADAPTER, GPU = f"{SWITCH}/0000:17:01.0/0000:18:00.0", f"{SWITCH}/0000:17:02.0/0000:19:00.0"


def read(root: Path) -> InfinibandReading:
    """What the command says of the tree below `root`, as `sweep` reads it."""
    command = INFINIBAND.command.replace("/sys/", f"{root}/sys/")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=20, check=True)
    assert done.stderr == ""
    return INFINIBAND.parse(done.stdout)


def port(root: Path, name: str, device: str, **values: str) -> None:
    """A port of an adapter; what is not named is as on a port that is well."""
    place = root / "sys" / device
    folder = place / "infiniband" / name / "ports" / "1"
    (folder / "pkeys").mkdir(parents=True)
    usual = {
        "link_layer": "InfiniBand",
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "400 Gb/sec (4X NDR)",
        "lid": "0x1a",
        "sm_lid": "0x1",
    }
    for file, value in {**usual, **values}.items():
        (folder / file).write_text(f"{value}\n")
    for index, key in enumerate(("0xffff", "0x8001", "0x0000", "0x0000")):
        (folder / "pkeys" / str(index)).write_text(f"{key}\n")
    (place / "infiniband" / name / "device").symlink_to(place)
    classes = root / "sys/class/infiniband"
    classes.mkdir(parents=True, exist_ok=True)
    (classes / name).symlink_to(place / "infiniband" / name)


def gpu(root: Path, device: str) -> None:
    (root / "sys" / device).mkdir(parents=True, exist_ok=True)
    drivers = root / "sys/bus/pci/drivers/nvidia"
    drivers.mkdir(parents=True, exist_ok=True)
    (drivers / Path(device).name).symlink_to(root / "sys" / device)
    (drivers / "module").mkdir(exist_ok=True)


def test_ports_partitions_and_near_gpus_are_read_from_the_tree(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0", ADAPTER)
    port(tmp_path, "mlx5_1", "devices/pci0000:97/0000:97:01.0/0000:98:00.0", state="1: DOWN", phys_state="2: Polling")
    port(tmp_path, "mlx5_2", "devices/pci0000:97/0000:97:02.0/0000:99:00.0", link_layer="Ethernet")
    gpu(tmp_path, GPU)
    gpu(tmp_path, "devices/pci0000:97/0000:97:05.0/0000:9b:00.0")
    (tmp_path / "sys/module/nvidia_peermem").mkdir(parents=True)
    found = read(tmp_path)
    assert [(each.name, each.state, each.physical) for each in found.ports] == [
        ("mlx5_0:1", "ACTIVE", "LinkUp"),
        ("mlx5_1:1", "DOWN", "Polling"),
    ]
    assert (found.ports[0].rate_gbps, found.ports[0].lid, found.ports[0].sm_lid) == (400.0, 26, 1)
    assert [each.partitions for each in found.ports] == [("0x8001", "0xffff")] * 2
    assert [each.near_gpus for each in found.ports] == [(0,), ()]
    assert (found.has_peermem, found.gpus) == (True, 2)


def test_a_machine_without_infiniband_has_none(tmp_path: Path) -> None:
    assert read(tmp_path) == InfinibandReading(ports=(), has_peermem=False, gpus=0)
