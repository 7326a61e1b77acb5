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
MOST_KEYS = 5
"""sshd hangs up after six tries by default, and the first may go to `none` (MaxAuthTries, sshd_config(5))."""


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
    agent = list(paramiko.Agent().get_keys())
    known = {key.get_base64() for key in agent}
    files = [ssh_dir / name for name in OWN_KEYS if (ssh_dir / name).is_file()]
    found = [*agent, *(_parsed(file) for file in files if _public_half(file) not in known)]
    if not found:
        raise NodeFailure("key", f"no SSH key: the agent has none, and {ssh_dir} has none of {', '.join(OWN_KEYS)}")
    keys = keys_to_try(found, inventory.ssh.public_keys)
    described = (
        f"your {len(keys)} SSH keys" if len(keys) == len(found) else f"{len(keys)} of your {len(found)} SSH keys"
    )
    return LoginKeys(keys=tuple(keys), described=described)


def keys_to_try(keys: Sequence[paramiko.PKey], declared: Sequence[str]) -> list[paramiko.PKey]:
    """The keys whose public halves the cluster was told of, then others, each group in its old order; not too many."""
    told = {line.split()[1] for line in declared if len(line.split()) > 1}
    return sorted(keys, key=lambda key: key.get_base64() not in told)[:MOST_KEYS]


def _public_half(path: Path) -> str | None:
    """The key in the `.pub` beside a private key, in base64; None where there is none."""
    try:
        words = path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return None
    return words[1] if len(words) > 1 else None


def _parsed(path: Path) -> paramiko.PKey:
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError as e:
        raise NodeFailure("key", f"{path} is not there: was the cluster made on another computer?") from e
    except paramiko.PasswordRequiredException as e:
        raise NodeFailure("key", f"{path} has a passphrase: add it to your agent with ssh-add {path}") from e
    except (OSError, ValueError, paramiko.SSHException) as e:
        raise NodeFailure("key", f"{path} cannot be read as a private key ({e})") from e
