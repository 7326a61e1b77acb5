"""What `~/.ssh/config` says of a host, read as ssh would read it.

paramiko parses it, and takes 0.1 s to load: this module is loaded only when there is such a file and a host to look up.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import paramiko
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.host_and_port import HIGHEST_PORT
from clusterctl_infra.strict_json import shortened

from clusterctl.text.next_commands import edit


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """What the configuration says of one host; a field is None where it says nothing."""

    host: str
    user: str | None
    port: int | None
    proxy_argv: tuple[str, ...] | None
    identity_files: tuple[str, ...]
    identity_agent: str | None
    has_identities_only: bool


def read_ssh_config(path: Path) -> paramiko.SSHConfig:
    """The person's configuration. Raises ConfigError when it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            config = paramiko.SSHConfig()
            config.parse(file)
            return config
    except (OSError, paramiko.ConfigParseError) as e:
        raise ConfigError(f"{path}: {e}", hint=edit(path)) from e


def settings_of(name: str, config: paramiko.SSHConfig) -> HostSettings:
    """The settings for the host called `name`. Raises ConfigError for a block that cannot be understood."""
    try:
        found: Mapping[str, object] = dict(config.lookup(name))
    except (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, ImportError) as e:
        raise ConfigError(f"~/.ssh/config, host {name}: {e}", hint=f"ssh -G {shlex.quote(name)}") from e
    host, port, user = str(found.get("hostname", name)), found.get("port"), found.get("user")
    files, agent = found.get("identityfile", ()), found.get("identityagent")
    return HostSettings(
        host=host,
        user=None if user is None else str(user),
        port=None if port is None else _port(str(port), name),
        proxy_argv=_proxy_argv(found, host, str(port or 22)),
        identity_files=tuple(str(Path(file).expanduser()) for file in files) if isinstance(files, list) else (),
        identity_agent=None if agent is None else str(agent).strip('"'),
        has_identities_only=str(found.get("identitiesonly", "no")).lower() in ("yes", "true"),
    )


def _port(text: str, name: str) -> int:
    """The port's number; ssh takes the name of a service, too. Raises ConfigError."""
    try:
        port = int(text) if text.removeprefix("-").isdecimal() else socket.getservbyname(text, "tcp")
    except (OSError, ValueError):  # no such service; more digits than Python reads
        port = 0
    if not 1 <= port <= HIGHEST_PORT:
        problem = f"{shortened(text)} is no port, which is a number from 1 to {HIGHEST_PORT}"
        raise ConfigError(f"~/.ssh/config, host {name}: {problem}", hint=f"ssh -G {shlex.quote(name)}")
    return port


def _proxy_argv(found: Mapping[str, object], host: str, port: str) -> tuple[str, ...] | None:
    """The argv of the host's ProxyCommand; for ProxyJump, as ssh does it, an ssh to the last jump. None without either.

    That ssh itself reads the person's configuration to reach the last jump.
    """
    jump, command = found.get("proxyjump"), found.get("proxycommand")
    if isinstance(jump, str) and jump.lower() != "none":
        *before, last = jump.split(",")
        way = ("-J", ",".join(before)) if before else ()
        return ("ssh", *way, "-o", "BatchMode=yes", "-W", f"[{host}]:{port}", last)
    if isinstance(command, str) and command.lower() != "none":
        return ("sh", "-c", f"exec {command}")
    return None
