"""The files that OpenSSH needs: the declared host keys under the nodes' own names, and the login key."""

from __future__ import annotations

from pathlib import Path

from clusterctl_infra.outputs import Inventory
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.home import Home


def known_hosts_text(inventory: Inventory) -> str:
    """One line per node: `train-2 ssh-ed25519 AAAA…`; found by `HostKeyAlias`, so address and port do not matter."""
    lines = [f"{node.name} {' '.join(node.host_public_key.split()[:2])}\n" for node in inventory.nodes]
    return "".join(lines)


def write_known_hosts(inventory: Inventory, home: Home) -> Path:
    """The file `keys/<cluster>/known_hosts`, written anew if its content differs."""
    path = home.keys_dir / inventory.cluster / "known_hosts"
    text = known_hosts_text(inventory)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return path
    make_private_folder(path.parent)
    put_in_place(path, text, mode=0o644, keeps_owner=True)
    return path


def login_key_file(inventory: Inventory, home: Home) -> Path | None:
    """The cluster's own private key on this computer; None when people use theirs."""
    return None if inventory.ssh.key_file is None else home.keys_dir / inventory.ssh.key_file
