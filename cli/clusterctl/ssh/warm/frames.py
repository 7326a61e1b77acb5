"""What a command and the process that keeps connections say to each other, over a socket that only they can open.

First a line of JSON with the job, and the descriptor of the command's input if it has one; then frames back: a kind,
a slot, a length, the bytes. The command's closing its side is the wish to end the job.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

from clusterctl_infra.outputs import Inventory, inventory_from_json, inventory_to_json
from clusterctl_infra.version import VERSION

from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKey, LoginKeys, key_in_file
from clusterctl.ssh.results import NodeResult

STDOUT, STDERR, RESULT, ACCEPTED, REFUSED = b"o", b"e", b"r", b"a", b"x"
HEAD = struct.Struct(">cIQ")
MOST_JOB_BYTES = 64 * 1024 * 1024
SOCKET_NAME = "socket"


@dataclass(frozen=True, kw_only=True)
class WarmJob:
    """A fan-out as it is asked for; keys by where they lie, never themselves."""

    inventory: Inventory
    slots: tuple[int, ...]
    command: Command
    keys: LoginKeys
    deadlines: Deadlines
    fan_out: int | None
    is_failing_fast: bool
    has_input: bool


def code_stamp() -> str:
    """Which clusterctl this is: another one's process is not spoken to."""
    return f"{VERSION} {os.stat(__file__).st_mtime_ns} {Path(__file__).parent}"


def job_to_json(job: WarmJob) -> bytes:
    """The job as one line of JSON."""
    data = {
        "stamp": code_stamp(),
        "inventory": inventory_to_json(job.inventory),
        "slots": job.slots,
        "command": dataclasses.asdict(job.command),
        "keys": [
            {"path": None if key.path is None else str(key.path), "public": key.public.hex(), "agent": key.agent_socket}
            for key in job.keys.keys
        ],
        "described": job.keys.described,
        "deadlines": dataclasses.asdict(job.deadlines),
        "fan_out": job.fan_out,
        "is_failing_fast": job.is_failing_fast,
        "has_input": job.has_input,
    }
    return json.dumps(data).encode() + b"\n"


def job_from_json(line: bytes) -> WarmJob:
    """The job of a line. Raises ValueError for another clusterctl's, NodeFailure for a key that has gone."""
    data = json.loads(line)
    if data["stamp"] != code_stamp():
        raise ValueError("another clusterctl")
    return WarmJob(
        inventory=inventory_from_json(data["inventory"], source="the job"),
        slots=tuple(data["slots"]),
        command=Command(**data["command"]),
        keys=LoginKeys(keys=[_key(row) for row in data["keys"]], described=data["described"]),
        deadlines=Deadlines(**data["deadlines"]),
        fan_out=data["fan_out"],
        is_failing_fast=data["is_failing_fast"],
        has_input=data["has_input"],
    )


def _key(row: dict[str, Any]) -> LoginKey:
    if row["path"] is not None:
        return key_in_file(Path(row["path"]))
    return LoginKey(public=bytes.fromhex(row["public"]), agent_socket=row["agent"])


def result_to_json(result: NodeResult) -> bytes:
    """A result without its output, which has gone ahead."""
    failure = result.failure
    data = {
        "slot": result.slot,
        "name": result.name,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "failure": None if failure is None else [failure.kind, failure.message, failure.phase],
        "duration_s": result.duration_s,
    }
    return json.dumps(data).encode()


def result_from_json(data: bytes) -> NodeResult:
    """What `result_to_json` was given, without output."""
    row = json.loads(data)
    failed = row.pop("failure")
    failure = None if failed is None else NodeFailure(failed[0], failed[1], phase=failed[2])
    return NodeResult(**row, failure=failure, stdout=b"", stderr=b"")


def frame(kind: bytes, slot: int, data: bytes) -> bytes:
    """The bytes of one frame."""
    return HEAD.pack(kind, slot, len(data)) + data


def opened(folder: Path) -> str:
    """A path to the socket in `folder` that is never too long for a socket's name (108 bytes, unix(7)).

    Holds a descriptor of the folder for the rest of the process.
    """
    return f"/proc/self/fd/{os.open(folder, os.O_RDONLY | os.O_DIRECTORY)}/{SOCKET_NAME}"


def is_same_person(connection: socket.socket) -> bool:
    """The other side is a process of this user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return bool(user == os.getuid())
