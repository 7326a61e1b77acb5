"""The systemd-nspawn command of a machine, and what its exit codes mean. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from clusterctl_rehearsal.machines.driver import MachineSpec
from clusterctl_rehearsal.machines.names import container_name, machine_namespace

REBOOT_EXIT_CODE = 133


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a supervisor needs to start its machine, kept as JSON in the machine's folder."""

    lower: str
    network_namespace: str
    argv: tuple[str, ...]


def launch(spec: MachineSpec, *, lower: str, disk: str) -> Launch:
    """The launch of a machine whose root is the overlay mounted on `disk`."""
    return Launch(
        lower=lower,
        network_namespace=machine_namespace(spec.cluster, spec.node),
        argv=nspawn_argv(spec, disk=disk),
    )


def to_json(subject: Launch) -> str:
    """The launch as text."""
    return json.dumps(asdict(subject))


def from_json(text: str) -> Launch:
    """The launch in a text made by `to_json`."""
    values = json.loads(text)
    return Launch(**{**values, "argv": tuple(values["argv"])})


def nspawn_argv(spec: MachineSpec, *, disk: str) -> tuple[str, ...]:
    """systemd-nspawn for one machine, to be run inside its network namespace and cgroup.

    Not `--network-namespace-path`: with it /sys/class/net/host0 is missing in the machine.
    CAP_NET_ADMIN is for the machine's own firewall; it reaches its own namespace only.
    """
    return (
        "systemd-nspawn",
        "--quiet",
        "--settings=no",
        f"--directory={disk}",
        f"--machine={container_name(spec.cluster, spec.node)}",
        f"--hostname={spec.node}",
        "--register=no",
        "--keep-unit",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--capability=CAP_NET_ADMIN",
        *binds("--bind", spec.shares),
        *binds("--bind-ro", spec.read_only_shares),
        "--boot",
    )


def binds(option: str, shares: Mapping[str, str]) -> tuple[str, ...]:
    """One option per shared folder; nspawn wants a colon in a path escaped."""
    return tuple(f"{option}={_escaped(host)}:{_escaped(inside)}" for host, inside in shares.items())


def how_it_ended(code: int) -> str:
    """A machine's end in words, from the exit code of nspawn (negative: the signal)."""
    if code == 0:
        return "powered off"
    if code < 0:
        return f"killed by signal {-code}"
    return f"ended with exit code {code}"


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:")
