"""The GPUs of a node, as `nvidia-smi -q -x` reports them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from clusterctl.probes.gpu_xml import Gpu, bus_key, gpu_blocks, is_lost, read_gpu, text_of
from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

NO_PROGRAM = "@@no-nvidia-smi"
ONE_GPU = "@@gpu"
SIMULATED = "SIMULATED"
"""This word is in everything that a rehearsed node's nvidia-smi prints."""

# If the query about all GPUs fails because one does not answer, each GPU is asked alone. The list of supported clocks
# is nine tenths of the output (r555 on an L4: 45 of 51 KB, 2024-07) and nobody reads it.
COMMAND = f"""
command -v nvidia-smi >/dev/null || {{ echo {NO_PROGRAM}; exit 0; }}
trim() {{ sed '/<supported_clocks>/,/<\\/supported_clocks>/d'; }}
if all=$(nvidia-smi -q -x 2>&1); then printf '%s\\n' "$all" | trim; exit 0; fi
case $all in
*"device handle"*|*"is lost"*) ;;
*) printf '%s\\n' "$all" | trim; exit 0;;
esac
for gpu in $(ls /proc/driver/nvidia/gpus 2>/dev/null || seq 0 15); do
  printf '\\n{ONE_GPU} %s\\n' "$gpu"
  nvidia-smi -q -x -i "$gpu" 2>&1 | trim
done
"""

NO_DEVICES = "No devices were found"
# What nvidia-smi says instead of its answer when the driver is the trouble (NVIDIA's own texts, checked 2026-11).
DRIVER_BROKEN = (
    "couldn't communicate with the NVIDIA driver",
    "Driver/library version mismatch",
    "Failed to initialize NVML",
)
LOST = ("Unable to determine the device handle", "GPU is lost")


@dataclass(frozen=True, kw_only=True)
class LostGpu:
    """A GPU that is known to have been there and does not answer."""

    index: int
    bus_id: str | None
    message: str


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """All GPUs of a node, in nvidia-smi's order."""

    driver_version: str | None = None
    cuda_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    lost: tuple[LostGpu, ...] = ()
    trouble: str | None = None
    """Why there is no GPU to be seen: no driver, a broken one."""
    is_simulated: bool = False


def parse_gpus(text: str) -> GpuReading:
    """The GPUs in nvidia-smi's XML, whole or one by one. Raises ProbeUnreadable when nothing in it is known."""
    is_simulated = SIMULATED in text
    for message in DRIVER_BROKEN:
        if message in text and ONE_GPU not in text:
            return GpuReading(trouble=first_words(text).partition(". ")[0], is_simulated=is_simulated)
    if NO_PROGRAM in text:
        return GpuReading(trouble="no nvidia-smi: no NVIDIA driver is installed")
    if ONE_GPU in text:
        found = _one_by_one(text)
    elif blocks := gpu_blocks(text):
        found = [_read(block, index) for index, block in enumerate(blocks)]
    elif NO_DEVICES in text:
        return GpuReading(trouble=NO_DEVICES, is_simulated=is_simulated)
    else:
        raise ProbeUnreadable(f"nvidia-smi said: {first_words(text)}")
    return GpuReading(
        driver_version=text_of(text, "driver_version"),
        cuda_version=text_of(text, "cuda_version"),
        gpus=tuple(gpu for gpu in found if isinstance(gpu, Gpu)),
        lost=tuple(gpu for gpu in found if isinstance(gpu, LostGpu)),
        is_simulated=is_simulated,
    )


def _read(block: Element, index: int) -> Gpu | LostGpu:
    if is_lost(block):
        return LostGpu(index=index, bus_id=bus_key(block.get("id", "")), message="GPU is lost")
    return read_gpu(block, index)


def _one_by_one(text: str) -> list[Gpu | LostGpu]:
    found: list[Gpu | LostGpu] = []
    for index, part in enumerate(re.split(rf"^{ONE_GPU} ", text, flags=re.MULTILINE)[1:]):
        name, _, answer = part.partition("\n")
        blocks = gpu_blocks(answer)
        if blocks:
            found.append(_read(blocks[0], index))
        elif any(words in answer for words in LOST):
            found.append(LostGpu(index=index, bus_id=bus_key(answer) or bus_key(name), message=_why_lost(answer)))
    return found


def _why_lost(answer: str) -> str:
    """`Unknown Error`: what nvidia-smi says after the GPU's address."""
    match = re.search(r"[0-9a-f]{2}\.[0-9a-f]: *([^.(\n]+)", answer, re.IGNORECASE)
    return first_words(answer) if match is None else match[1].strip()


GPU = Probe(
    name="gpu",
    meaning="GPUs: use, memory, temperature, power, clocks, throttling, ECC, remapped rows",
    command=COMMAND,
    limit_s=25,
    parse=parse_gpus,
)
