#!/usr/bin/python3 -IS
"""`/usr/bin/cloud-init` of the base image: a boot's later stages are run by the process that has cloud-init's modules.

Run inside the machine, by path: standard library only, nothing of this package. systemd starts cloud-init four times
at a boot. The first stage leaves a process behind that has loaded cloud-init (`cloud_init_start`); this program hands
its standard streams to it and ends with the stage's exit code. Any other cloud-init command runs right here, and so
does a stage that systemd did not start: that process runs one stage at a time, and a script of one stage that started
another would wait for ever.
"""

from __future__ import annotations

import os
import struct
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket  # `socket` takes half as long as all the rest

SOCKET = "/run/cloud-init/modules.socket"
STAGES = (["init"], ["modules", "--mode=config"], ["modules", "--mode=final"])
PROGRAM = "/usr/lib/clusterctl/cloud-init"


def main(arguments: list[str]) -> int:
    """The exit code of a stage that another process ran; becomes cloud-init itself if there is no such process."""
    if arguments in STAGES and os.getppid() == 1:
        code = code_of_stage(arguments)
        if code is not None:
            return code
    os.execv(PROGRAM, [PROGRAM, *arguments])


def code_of_stage(arguments: list[str]) -> int | None:
    """The exit code; None if no process with the modules took the stage, 1 if that process ended while it ran it."""
    process = socket(AF_UNIX, SOCK_STREAM)
    try:
        process.connect(SOCKET)
        process.sendmsg(["\0".join(arguments).encode()], [(SOL_SOCKET, SCM_RIGHTS, struct.pack("3i", 0, 1, 2))])
        answer = process.recv(1)
    except OSError:  # also a reset connection: nobody has read what was sent
        return None
    return answer[0] if answer else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
