"""The files that our provider keeps for the person at this computer: inventory, keys, ledger."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON before it is checked

from clusterctl_infra.file_lock import lock_within
from clusterctl_infra.private_home import PRIVATE_FILE, make_private_folder
from clusterctl_infra.put_in_place import put_in_place

LOCK_NAME = ".lock"
"""The lock file of all inventories."""
LOCK_S = 60.0
"""The lock's holder only writes one file, so a longer wait is an error."""


@dataclass(frozen=True, kw_only=True)
class LocalHome:
    """Paths under one CLUSTERCTL_HOME, and safe writing there; every file is for its owner only."""

    root: Path

    def inventory_file(self, cluster: str) -> Path:
        return self.root / "inventory" / f"{cluster}.json"

    def key_dir(self, cluster: str) -> Path:
        return self.root / "keys" / cluster

    def ledger_file(self, cluster_id: str) -> Path:
        return self.root / "ledger" / f"{cluster_id}.jsonl"

    def proof_file(self, nonce: str) -> Path:
        return self.root / "rehearsal" / "proof" / nonce

    def read_inventory(self, cluster: str) -> dict[str, Any] | None:
        """The inventory file as JSON; None when there is none, or it is not an object."""
        try:
            data = json.loads(self.inventory_file(cluster).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) else None

    def write_inventory(self, cluster: str, inventory: Mapping[str, Any]) -> None:
        """Puts the inventory in its file, whole or not at all."""
        text = json.dumps(inventory, indent=1, sort_keys=True) + "\n"
        write_private(self.inventory_file(cluster), text)

    def append_ledger(self, cluster_id: str, row: Mapping[str, Any]) -> None:
        """Adds one line to the cluster's ledger; lines already there are never touched."""
        file = self.ledger_file(cluster_id)
        make_private_folder(file.parent)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(row, sort_keys=True) + "\n")

    @contextlib.contextmanager
    def inventory_lock(self, cluster: str) -> Iterator[None]:
        """Holds the lock while the inventory file is read and rewritten: two resources and the command line do that.

        Holds nothing where the file system has no locks. Raises TimeoutError.
        """
        folder = self.inventory_file(cluster).parent
        make_private_folder(folder)
        # A file that is open for writing, as NFS cannot lock a folder.
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            try:
                lock_within(descriptor, LOCK_S)
            except TimeoutError as e:
                raise TimeoutError(f"{folder / LOCK_NAME}: {e}") from e
            yield
        finally:
            os.close(descriptor)


def write_private(file: Path, text: str) -> None:
    """Writes the file atomically, readable by its owner alone."""
    make_private_folder(file.parent)
    put_in_place(file, text)
