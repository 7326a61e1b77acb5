"""The file that `~/.ssh/config` includes: the nodes of all known clusters, rewritten after each change of a cluster."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError
from clusterctl_infra.outputs import InventoryUnreadable, read_inventory
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.home import Home
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.openssh_config import ssh_config_text

HEAD = "# Written by clusterctl after each change of a cluster; what is added here by hand is lost."
PRIVATE = 0o600


def install(home: Home, ssh_dir: Path) -> bool:
    """Writes the file and has the person's configuration include it; returns False if it already did.

    Raises ClusterctlError naming what cannot be read or written.
    """
    config = (ssh_dir / "config").resolve()  # a link to somebody's dotfiles stays a link
    include = include_line(home)
    try:
        make_private_folder(home.path)
        _write(home)
        make_private_folder(config.parent)
        before = config.read_text(encoding="utf-8") if config.exists() else ""
        if include in before.splitlines():
            return False
        mode = stat.S_IMODE(config.stat().st_mode) if config.exists() else PRIVATE
        # As the first line: after a `Host` line it would apply to that host alone (ssh_config(5)).
        put_in_place(config, f"{include}\n\n{before}" if before else f"{include}\n", mode=mode, keeps_owner=True)
    except UnicodeDecodeError as e:
        raise ClusterctlError(f"{config} is not UTF-8; write this as its first line: {include}") from e
    except OSError as e:
        raise ClusterctlError(f"{e.filename or config}: {e.strerror}", hint="clusterctl ssh-config") from e
    return True


def refresh(home: Home) -> None:
    """Rewrites the file where it was installed; errors are ignored: they must not make a change of a cluster fail."""
    with contextlib.suppress(OSError, ValueError, LookupError, ClusterctlError):
        if _file(home).exists():
            _write(home)


def include_line(home: Home) -> str:
    """The line in `~/.ssh/config` that includes the file."""
    return f'Include "{_file(home).absolute()}"'


def all_text(home: Home) -> str:
    """The file's text. ssh takes the first block of a name, so clusters on AWS come before rehearsed ones."""
    blocks = []
    for cluster in sorted(home.cluster_names, key=lambda name: ("@" in name, name)):
        try:
            inventory = read_inventory(home.inventory_file(cluster))
        except (InventoryUnreadable, OSError):
            blocks.append(f"# {cluster}: its inventory cannot be read; clusterctl nodes --cluster {cluster} says why")
            continue
        known_hosts = write_known_hosts(inventory, home)
        blocks.append(ssh_config_text(inventory, key_file=login_key_file(inventory, home), known_hosts=known_hosts))
    return "\n\n".join([HEAD, *blocks]) + "\n"


def _file(home: Home) -> Path:
    return home.path / "ssh_config"


def _write(home: Home) -> None:
    put_in_place(_file(home), all_text(home), mode=PRIVATE, keeps_owner=True)
