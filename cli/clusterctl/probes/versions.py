"""The versions of what must be alike on all nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.probes.probe import Probe, ProbeUnreadable, first_words

COMMAND = """
echo "kernel $(uname -r)"
[ -r /proc/driver/nvidia/version ] && echo "module $(head -n 1 /proc/driver/nvidia/version)"
if [ -r /usr/local/cuda/version.json ]; then tr -d '\\n' </usr/local/cuda/version.json | sed 's/^/cuda /'; echo
elif [ -d /usr/local/cuda ]; then echo "cuda $(readlink -f /usr/local/cuda)"; fi
for library in $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n 's/^.*libnccl\\.so\\.2 .*=> //p'); do
  echo "nccl $(readlink -f "$library")"
done
[ -r /opt/amazon/efa_installed_packages ] && echo "efa $(head -n 1 /opt/amazon/efa_installed_packages)"
true
"""


@dataclass(frozen=True, kw_only=True)
class VersionsReading:
    """The versions on a node; None: not installed in its usual place (a container or a virtual environment may have its
    own).
    """

    kernel: str
    module: str | None
    """The loaded NVIDIA kernel module; after a half-done driver upgrade it is older than the library."""
    cuda: str | None
    """From version.json; without one, as in NVIDIA's own images, from the folder's name: `13.0`."""
    nccl: str | None
    efa_installer: str | None


def parse_versions(text: str) -> VersionsReading:
    """Reads the lines, each `name value`. Raises ProbeUnreadable without a kernel."""
    kernel = _found(r"^kernel (\S+)", text)
    if kernel is None:
        raise ProbeUnreadable(f"versions: {first_words(text)}")
    return VersionsReading(
        kernel=kernel,
        module=_found(r"^module .*?Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", text),
        cuda=_found(r'^cuda .*?"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([^"]+)"', text)
        or _found(r"^cuda /\S*cuda-(\d+\.\d+)$", text),
        nccl=_found(r"^nccl \S*libnccl\.so\.(\d+\.\d+\.\d+)", text),
        efa_installer=_found(r"^efa .*?version:\s*(\S+)", text),
    )


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
    return None if match is None else match[1]


VERSIONS = Probe(
    name="versions",
    meaning="kernel, driver module, CUDA, NCCL, EFA installer",
    command=COMMAND,
    limit_s=8,
    parse=parse_versions,
)
