"""mpirun's way to the other nodes of a job, in the place of ssh: what it wants started there becomes an order.

mpirun calls the agent as `agent HOST COMMAND…` (plm_rsh of Open MPI 4, plm_ssh of PRRTE). The agent writes the order
down; the supervisor of mpirun's node reads it and tells the coordinator, and the supervisor of HOST runs the command as
the login user, among what belongs to the job. orted and prted go to the background by themselves, as behind ssh.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, List, Mapping

from clusterctl.on_node.job.layout import Layout, write_json
from clusterctl.on_node.job.rank_end import own_bytes, parsed

SUFFIX = ".order"
MOST_NODES = 256
"""All orders are one line between two supervisors, of at most 1 MiB; one is about 1.5 KiB (Open MPI 4.1)."""
LONGEST_ORDER = 16 * 1024


def answer_mpi(words: List[str]) -> int:
    """The verb, as mpirun calls the agent; returns the exit code."""
    ranks = Layout().ranks(os.environ["CLUSTERCTL_JOB"], int(os.environ["CLUSTERCTL_ATTEMPT"]))
    return write_order(ranks, words)


def write_order(folder: Path, words: list[str]) -> int:
    """Writes down what mpirun wants started on another node; returns the agent's exit code."""
    host, command = host_and_command(words)
    write_json(folder / ("%d%s" % (os.getpid(), SUFFIX)), {"host": host, "command": command})
    return 0


def host_and_command(words: list[str]) -> tuple[str, str]:
    """The host, and a line for a shell, in what ssh would be given: switches come before them. Raises ValueError."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest.pop(0)
    if len(rest) < 2:
        raise ValueError("mpirun asked for nothing: %r" % (words,))
    return rest[0], " ".join(rest[1:])


def orders_of(spec: Mapping[str, Any], folder: Path, uid: int) -> list[dict[str, Any]]:
    """The orders for nodes of the job that were written down by its user: `id`, `slot`, `command`."""
    slots = {str(member[key]): int(member["slot"]) for member in spec["members"] for key in ("name", "address")}
    found = []
    for path in sorted(folder.glob("*" + SUFFIX))[: 2 * MOST_NODES]:
        try:
            order = parsed(own_bytes(path, uid))
            slot, command = slots[str(order["host"])], str(order["command"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # no order of mpirun's
        if len(command) <= LONGEST_ORDER:
            found.append({"id": path.name, "slot": slot, "command": command})
    return found
