#!/usr/bin/python3
"""cloud-init in the base image: the package's own program, which loads its modules once at a boot.

Run inside the machine, by path: standard library and cloud-init's packages, nothing of this package. A boot starts
cloud-init four times, and the package's own script costs about 0.45 s of processor time each time: more than half
of that goes into loading the same modules, a quarter into reading YAML by Python code. So

- the first stage forks before it begins. The child keeps the modules and forks again for each later stage, which gets
  streams, environment, folder, priority and control group of the process that systemd started for it. (cloud-init
  itself runs all stages in one process since 24.3.)
- libyaml, which comes with python3-yaml, reads YAML; what it refuses, python3-yaml's own reader reads again;
- Python collects garbage less often, and does not tear its modules down at exit.
"""

# ruff: noqa: E402
import atexit
import gc
import os
import sys

gc.set_threshold(50_000)
code: object = None
"""cloud-init's exit code, once it has exited normally."""


def end() -> None:
    """Exit without tearing the modules down."""
    if isinstance(code, int):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


atexit.register(end)  # before the modules register theirs: the first that is registered is the last that is called

import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from cloudinit.cmd.main import main as cloud_init  # type: ignore[import-not-found]

NAME = "/usr/bin/cloud-init"
SOCKET = Path("/run/cloud-init/modules.socket")
FIRST_STAGE = ["init", "--local"]
LAST_STAGE = ["modules", "--mode=final"]
MESSAGE_BYTES = 1000
STREAMS = (0, 1, 2)
READ_BY_LIBYAML = ("SafeLoader", "_CustomSafeLoader")
"""Names of loaders that change only which values the parsed YAML becomes."""


def main() -> None:
    """Run cloud-init as the command line says."""
    global code  # noqa: PLW0603
    sys.argv[0] = NAME
    if yaml.__with_libyaml__:
        yaml.load = reader_by_libyaml(yaml.load)
    if sys.argv[1:] == FIRST_STAGE and os.getppid() == 1 and not SOCKET.exists():
        keep_modules()
    try:
        sys.exit(cloud_init())
    except SystemExit as ended:
        code = ended.code or 0
        raise


def reader_by_libyaml(plain: Any) -> Any:
    """A `yaml.load` that lets libyaml read what it can."""
    loaders = {}

    def load(stream: Any, Loader: Any) -> Any:  # noqa: N803
        if Loader.__name__ in READ_BY_LIBYAML and isinstance(stream, (str, bytes)):
            if Loader not in loaders:
                begin = {"__init__": yaml.CSafeLoader.__init__}
                loaders[Loader] = type(Loader.__name__, (yaml.cyaml.CParser, Loader), begin)  # type: ignore[attr-defined]
            with suppress(yaml.YAMLError):
                return plain(stream, loaders[Loader])
        return plain(stream, Loader)

    return load


def keep_modules() -> None:
    """Fork. For each stage that root asks for, up to the last, the child forks a process in which this returns."""
    SOCKET.parent.mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    umask = os.umask(0o077)
    listener.bind(str(SOCKET))
    os.umask(umask)
    listener.listen()
    gc.freeze()  # what is loaded by now is no garbage, and to look through it would copy it
    if os.fork() != 0:
        listener.close()
        return
    set_streams([os.open(os.devnull, os.O_RDWR) for _ in STREAMS])
    is_last = False
    while not is_last:
        connection, _ = listener.accept()
        message, streams, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, len(STREAMS))
        arguments = message.decode().split("\0")
        stage = os.fork()
        if stage == 0:
            listener.close()
            become_like(caller_of(connection), streams)
            sys.argv[1:] = arguments
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(stage, 0)
        is_last = arguments == LAST_STAGE
        if is_last:
            SOCKET.unlink(missing_ok=True)
        with suppress(OSError):  # the caller was ended meanwhile
            connection.send(bytes([os.waitstatus_to_exitcode(status) % 256]))
        connection.close()
    os._exit(0)


def caller_of(connection: socket.socket) -> int:
    """The number of the process that asked (unix(7): SO_PEERCRED)."""
    credentials = struct.Struct("3i")
    process_id: int = credentials.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    )[0]
    return process_id


def become_like(caller: int, streams: list[int]) -> None:
    """Make this process what systemd made of the caller."""
    about = Path(f"/proc/{caller}")
    for line in (about / "cgroup").read_text().splitlines():
        _, tree, path = line.split(":", 2)
        enter_cgroup(tree, path)
    environment = (about / "environ").read_bytes().split(b"\0")
    os.environb.clear()
    os.environb.update(dict(entry.split(b"=", 1) for entry in environment if b"=" in entry))
    os.chdir(about / "cwd")
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, caller))
    os.setsid()
    set_streams(streams)


def enter_cgroup(tree: str, path: str) -> None:
    """Enter the control group in the tree of version 2 (its name is empty) or in systemd's own of version 1."""
    trees = Path("/sys/fs/cgroup")
    if tree == "name=systemd":
        trees /= "systemd"
    elif tree != "":
        return  # systemd puts no unit into these
    elif (trees / "unified").is_dir():
        trees /= "unified"
    with suppress(OSError):  # a stage in the wrong group is better than none
        (trees / path.lstrip("/") / "cgroup.procs").write_text("0")


def set_streams(streams: list[int]) -> None:
    """Make these the standard streams."""
    for number, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, number)
        if stream not in STREAMS:
            os.close(stream)


if __name__ == "__main__":
    main()
