"""mpirun's way to the other nodes of a job, in the place of ssh: what it wants started there becomes an order.

mpirun calls the agent as `agent HOST COMMAND…` (plm_rsh of Open MPI 4, plm_ssh of PRRTE). The agent writes the order
down; the supervisor of mpirun's node reads it and tells the coordinator, and the supervisor of HOST runs the command as
the login user, among what belongs to the job. orted and prted go to the background by themselves, as behind ssh.
"""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path
from socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket
from typing import IO, Any, Callable, Mapping

from clusterctl.on_node.job.layout import write_json
from clusterctl.on_node.job.rank_end import own_bytes, parsed

OUTPUT_VARIABLE = "CLUSTERCTL_JOB_OUTPUT"
"""Names the socket to which ranks' parents write: mpirun would carry all output to its own node."""
SUFFIX = ".order"
MOST_NODES = 256
"""All orders are one line between two supervisors, of at most 1 MiB; one is about 1.5 KiB (Open MPI 4.1)."""
LONGEST_ORDER = 16 * 1024


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


def receive_output(path: Path, uid: int, follow: Callable[[IO[bytes]], None]) -> None:
    """Listens where ranks' parents of this node write what their ranks say; in a thread that ends with the process.

    Every user of the node can connect: only processes of `uid` and of root are listened to.
    """
    door = socket(AF_UNIX, SOCK_STREAM)
    door.bind(str(path))
    path.chmod(0o666)  # in a folder that is root's: nobody can have put another file there
    door.listen(1024)

    def admit() -> None:
        while True:
            connection, _ = door.accept()
            with connection:
                if _peer_uid(connection) not in (0, uid):
                    continue
                follow(connection.makefile("rb"))

    threading.Thread(target=admit, daemon=True).start()


def _peer_uid(connection: socket) -> int:
    """The user at the other end, as the kernel says (unix(7), SO_PEERCRED: pid, uid, gid)."""
    credentials = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def rank_output(environment: Mapping[str, str], otherwise: IO[bytes]) -> IO[bytes]:
    """Where a rank's parent writes what its rank says. Raises OSError."""
    if OUTPUT_VARIABLE not in environment:
        return otherwise
    with socket(AF_UNIX, SOCK_STREAM) as connection:
        connection.connect(environment[OUTPUT_VARIABLE])
        return connection.makefile("wb")  # which keeps the connection open
