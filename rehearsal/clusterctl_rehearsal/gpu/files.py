"""The simulated GPUs of a machine: a program called nvidia-smi, the data it shows, and a program that changes it."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files

from clusterctl_infra.catalog.instance import InstanceType

from clusterctl_rehearsal.machines.driver import MachineFile

PROGRAM = "/usr/bin/nvidia-smi"
SIMULATOR = "/usr/bin/simulate-gpus"
DATA = "/etc/clusterctl-rehearsal/gpus.json"
DRIVER_VERSION, CUDA_VERSION = "550.127.05", "12.4"

# API name → (product name, total memory in MiB as the driver shows it, power limit in W, highest SM and memory clock
# in MHz): NVIDIA's data sheets and nvidia-smi outputs in public reports, checked 2026-11.
_PRODUCTS = {
    "A10G": ("NVIDIA A10G", 23028, 300, 1710, 6251),
    "A100": ("NVIDIA A100-SXM4-40GB", 40960, 400, 1410, 1215),
    "A100-80": ("NVIDIA A100-SXM4-80GB", 81920, 400, 1410, 1593),
    "H100": ("NVIDIA H100 80GB HBM3", 81559, 700, 1980, 2619),
    "H200": ("NVIDIA H200", 143771, 700, 1980, 3201),
    "B200": ("NVIDIA B200", 183359, 1000, 1965, 3996),
    "B300": ("NVIDIA B300 SXM6 AC", 275040, 1100, 1920, 3996),
    "L4": ("NVIDIA L4", 23034, 72, 2040, 6251),
    "L40S": ("NVIDIA L40S", 46068, 350, 2520, 9001),
    "T4": ("Tesla T4", 15360, 70, 1590, 5001),
    "V100": ("Tesla V100-SXM2-16GB", 16384, 300, 1530, 877),
}
# NVLinks of each GPU and GB/s of each in the 8-GPU types: nvidia-smi nvlink -s in public reports, checked 2026-11.
_NVLINKS = {
    "A100": (12, "25"),
    "H100": (18, "26.562"),
    "H200": (18, "26.562"),
    "B200": (18, "53.125"),
    "B300": (18, "53.125"),
    "V100": (6, "25.781"),
}
_FEWEST_LINKED_GPUS = 4


def machine_files(kind: InstanceType, seed: str) -> dict[str, MachineFile]:
    """The files that a machine of the type gets; none without GPUs. `seed`, an instance id, makes serials differ."""
    if kind.gpu_count == 0:
        return {}
    sources = files("clusterctl_rehearsal.gpu")
    return {
        PROGRAM: MachineFile(content=sources.joinpath("nvidia_smi.py").read_bytes(), mode=0o755),
        SIMULATOR: MachineFile(content=sources.joinpath("simulate_gpus.py").read_bytes(), mode=0o755),
        DATA: MachineFile(content=json.dumps(gpu_data(kind, seed), indent=1).encode()),
    }


def gpu_data(kind: InstanceType, seed: str) -> dict[str, object]:
    """The data that the program shows: idle GPUs; `simulate-gpus` changes it."""
    name, memory_mib, limit_w, sm_mhz, memory_mhz = _product(kind)
    nvlinks, link_gb_per_s = _links(kind)
    digests = [hashlib.sha256(f"{seed}/{index}".encode()).hexdigest() for index in range(kind.gpu_count)]
    return {
        "driver_version": DRIVER_VERSION,
        "cuda_version": CUDA_VERSION,
        "gpus": [
            {
                "index": index,
                "name": name,
                "uuid": f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}",
                "serial": str(int(digest[:11], 16))[:13],
                "bus_id": f"00000000:{0x53 + 0x11 * (index // 2) + index % 2:02X}:00.0",
                "memory_total_mib": memory_mib,
                "memory_used_mib": 1,
                "utilization_percent": 0,
                "temperature_c": 28 + int(digest[0], 16) % 6,
                "power_w": round(limit_w * 0.1 + int(digest[1], 16) % 5, 2),
                "power_limit_w": limit_w,
                "sm_mhz": sm_mhz,
                "sm_max_mhz": sm_mhz,
                "memory_mhz": memory_mhz,
                "pstate": "P0",
                "ecc_uncorrected": 0,
                "ecc_corrected": 0,
                "remapped_pending": "No",
                "remapped_failure": "No",
                "throttle_reasons": "0x0000000000000001",
                "slowdowns": [],
                "nvlinks": nvlinks,
                "nvlinks_down": 0,
                "nvlink_gb_per_s": link_gb_per_s,
                "lost": False,
            }
            for index, digest in enumerate(digests)
        ],
    }


def _product(kind: InstanceType) -> tuple[str, int, int, int, int]:
    api_name = kind.gpu_api_name or "GPU"
    large = f"{api_name}-80" if kind.gpu_memory_mib > 60000 else api_name
    known = _PRODUCTS.get(large) or _PRODUCTS.get(api_name)
    return known or (f"NVIDIA {kind.gpu_name or api_name}", kind.gpu_memory_mib, 300, 1800, 5000)


def _links(kind: InstanceType) -> tuple[int, str]:
    """NVLinks of each GPU, and GB/s of each link."""
    count, gb_per_s = _NVLINKS.get(kind.gpu_api_name or "", (0, "0"))
    return (0 if kind.gpu_count < _FEWEST_LINKED_GPUS else count), gb_per_s
