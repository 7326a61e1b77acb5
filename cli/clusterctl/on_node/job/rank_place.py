"""Which rank a process is, whichever launcher started it. Pure."""

from __future__ import annotations

from typing import Mapping

MPI = (
    ("RANK", ("OMPI_COMM_WORLD_RANK", "PMI_RANK")),
    ("WORLD_SIZE", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")),
    ("LOCAL_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")),
    ("LOCAL_WORLD_SIZE", ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")),
)
"""torch's names, and those of Open MPI and of Hydra (MPICH, Intel) for the same."""


def rank_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE, as torchrun or mpirun tell them.

    Where neither has, the process is alone on its node: accelerate starts a single process without any of them.
    """
    if "RANK" in environment and "LOCAL_RANK" in environment:
        return {name: environment[name] for name, _ in MPI if name in environment}
    found = {}
    for name, sources in MPI:
        values = [environment[source] for source in sources if source in environment]
        if values:
            found[name] = values[0]
    if "RANK" in found:
        return {"LOCAL_RANK": "0", **found}
    return {"RANK": environment.get("CLUSTERCTL_FIRST_RANK", "0"), "LOCAL_RANK": "0"}
