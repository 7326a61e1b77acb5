"""The private keys a person logs in with: the cluster's own, else the person's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko
from clusterctl_infra.outputs import Inventory

from clusterctl.home import Home
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.openssh_files import login_key_file

OWN_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


@dataclass(frozen=True, kw_only=True)
class LoginKeys:
    """Parsed once, shared by all connections; `described` says where they come from."""

    keys: Sequence[paramiko.PKey]
    described: str


def load_login_keys(inventory: Inventory, home: Home, *, ssh_dir: Path) -> LoginKeys:
    """The keys to try, in this order. Raises NodeFailure naming the file that is missing or unreadable."""
    path = login_key_file(inventory, home)
    if path is not None:
        return LoginKeys(keys=(_parsed(path),), described=str(path))
    keys: list[paramiko.PKey] = list(paramiko.Agent().get_keys())
    keys += [_parsed(ssh_dir / name) for name in OWN_KEYS if (ssh_dir / name).is_file()]
    if not keys:
        raise NodeFailure("key", f"no SSH key: the agent has none, and {ssh_dir} has none of {', '.join(OWN_KEYS)}")
    return LoginKeys(keys=tuple(keys), described=f"your {len(keys)} SSH keys")


def _parsed(path: Path) -> paramiko.PKey:
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError as e:
        raise NodeFailure("key", f"{path} is not there: was the cluster made on another computer?") from e
    except paramiko.PasswordRequiredException as e:
        raise NodeFailure("key", f"{path} has a passphrase: add it to your agent with ssh-add {path}") from e
    except (OSError, ValueError, paramiko.SSHException) as e:
        raise NodeFailure("key", f"{path} cannot be read as a private key ({e})") from e
