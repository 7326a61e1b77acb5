"""A simulated apt-get for machines, which reach no package source."""

from __future__ import annotations

from importlib.resources import files

from clusterctl_rehearsal.machines.driver import MachineFile

PROGRAM = "/usr/local/bin/apt-get"


def package_files() -> dict[str, MachineFile]:
    """A program that a node's agent finds before the real one."""
    text = files("clusterctl_rehearsal.packages").joinpath("apt_get.sh").read_bytes()
    return {PROGRAM: MachineFile(content=text, mode=0o755)}
