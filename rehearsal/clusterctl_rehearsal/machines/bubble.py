"""The bwrap command of an unprivileged machine. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from clusterctl_rehearsal.machines.driver import MachineSpec
from clusterctl_rehearsal.machines.names import LOGIN_USER, LOGIN_USER_ID
from clusterctl_rehearsal.machines.processes import FIRST_PROCESS

# Settings of the whole host, which a machine started by root could otherwise write.
_HOSTS_PROC = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
OVERLAID_FOLDERS = ("etc", "usr")


@dataclass(frozen=True, kw_only=True)
class BubbleLaunch:
    """What the supervisor of a process machine starts, kept as JSON in the machine's folder."""

    argv: tuple[str, ...]
    bridge_port: str
    mac: str
    address: str
    prefix_length: int
    gateway_ip: str


@dataclass(frozen=True, kw_only=True)
class HostRoot:
    """What the top level of a machine's root file system consists of.

    `folders` are the machine's own (two of them overlays over the host's), `links` are as on
    the host (/bin -> usr/bin), `read_only` are those of /bin, /lib … that are folders on the host.
    """

    folders: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    read_only: tuple[str, ...]


def to_json(subject: BubbleLaunch) -> str:
    """The launch as text."""
    return json.dumps(asdict(subject))


def from_json(text: str) -> BubbleLaunch:
    """The launch in a text made by `to_json`."""
    values = json.loads(text)
    return BubbleLaunch(**{**values, "argv": tuple(values["argv"])})


def bwrap_argv(spec: MachineSpec, *, disk: str, host: HostRoot, python: str, python_folder: str) -> tuple[str, ...]:
    """The bwrap command of one machine, with processes, host name, users and files of its own.

    `disk` holds the machine's own top-level folders. `python` runs its first process;
    `python_folder` is shown if it is not below /usr. The caller's own folders are not shown.
    """
    home = f"/home/{LOGIN_USER}"
    return (
        "bwrap",
        *("--unshare-user", "--uid", str(LOGIN_USER_ID), "--gid", str(LOGIN_USER_ID)),
        *("--unshare-pid", "--as-pid-1", "--unshare-uts", "--unshare-ipc", "--hostname", spec.node),
        *(word for name in host.folders for word in ("--bind", f"{disk}/{name}", f"/{name}")),
        *(word for name, goal in host.links for word in ("--symlink", goal, f"/{name}")),
        *(word for name in host.read_only for word in ("--ro-bind", f"/{name}", f"/{name}")),
        *("--dev", "/dev", "--proc", "/proc", "--ro-bind", "/sys", "/sys"),
        *(word for name in _HOSTS_PROC for word in ("--ro-bind-try", name, name)),
        *("--tmpfs", "/run", "--tmpfs", "/tmp"),
        *binds("--bind", spec.shares),
        *binds("--ro-bind", spec.read_only_shares),
        *(() if python_folder.startswith("/usr") else ("--ro-bind", python_folder, python_folder)),
        *("--clearenv", "--setenv", "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        *("--setenv", "HOME", home, "--setenv", "USER", LOGIN_USER, "--chdir", home),
        *("--", python, "-I", "-S", FIRST_PROCESS, f"{spec.cluster}/{spec.node}"),
    )


def binds(option: str, shares: Mapping[str, str]) -> tuple[str, ...]:
    """One bind per shared folder."""
    return tuple(word for host, inside in shares.items() for word in (option, host, inside))
