"""The system's own `ssh`, given all that it must know and nothing else: for logins, terminals, forwards and rsync."""

from __future__ import annotations

import shlex
from pathlib import Path

from clusterctl.ssh.host_key import signature_algorithms
from clusterctl.ssh.keys.identity_files import Identities
from clusterctl.ssh.shared_session_argv import opening_s
from clusterctl.ssh.target import Target

ALIVE_INTERVAL_S = 15
ALIVE_COUNT = 3


def login_argv(
    target: Target,
    *,
    key_file: Path | None,
    known_hosts: Path,
    own: Identities | None = None,
    command: str | None = None,
    is_terminal_wanted: bool = False,
    connect_timeout_s: float = 10,
    silence_s: float = ALIVE_INTERVAL_S * ALIVE_COUNT,
    forward: str | None = None,
) -> list[str]:
    """The argv of `ssh`: no configuration file is read, only the declared host key is accepted.

    `forward`, in the form of ssh's -L: opens that port and no shell; a line comes on stdout once it is open.
    If `key_file`, the cluster's own, is given, only that is tried; else the agent's keys, and the files of `own` or the
    usual ones.
    """
    settings = [
        f"UserKnownHostsFile={quoted_path(known_hosts)}",
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
        f"HostKeyAlias={target.name}",
        f"HostKeyAlgorithms={','.join(signature_algorithms(target.host_key_type))}",
        "UpdateHostKeys=no",
        f"ServerAliveInterval={max(1, round(silence_s / ALIVE_COUNT))}",
        f"ServerAliveCountMax={ALIVE_COUNT}",
        f"ConnectTimeout={max(1, round(connect_timeout_s + opening_s(target.proxy_argv)))}",
    ]
    if key_file is not None:
        settings += [f"IdentityFile={quoted_path(key_file)}", "IdentitiesOnly=yes"]
    settings += _identity_settings(own) if own is not None else []
    if target.proxy_argv is not None:
        settings.append(f"ProxyCommand={proxy_line(target.proxy_argv)}")
    argv = ["ssh", "-F", "none"]
    for setting in settings:
        argv += ["-o", setting]
    argv += ["-p", str(target.port)]
    if forward is not None:
        # ssh runs the LocalCommand once the port listens (ssh.c, ssh_session2, 2026-11-23).
        opened = ["-o", "PermitLocalCommand=yes", "-o", "LocalCommand=echo open"]
        argv += ["-N", "-o", "ExitOnForwardFailure=yes", *opened, "-L", forward]
    if is_terminal_wanted:
        argv.append("-t")
    argv.append(f"{target.user}@{target.host}")
    return argv if command is None else [*argv, "--", command]


def _identity_settings(own: Identities) -> list[str]:
    settings = [f"IdentityFile={quoted_path(file)}" for file in own.files]
    if own.agent is not None:
        settings.append(f'IdentityAgent="{own.agent}"')  # ssh itself expands what the person has written
    return [*settings, "IdentitiesOnly=yes"] if own.is_only else settings


def proxy_line(argv: tuple[str, ...]) -> str:
    """The proxy command as ssh wants it: a line for a shell in which `%` is doubled."""
    return shlex.join(argv).replace("%", "%%")


def quoted_path(path: Path) -> str:
    """A path that ssh's own parser takes as one word, its `%` expansions kept out."""
    text = str(path).replace("%", "%%")
    return f'"{text}"' if " " in text else text
