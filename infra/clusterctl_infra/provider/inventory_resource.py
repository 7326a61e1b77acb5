"""The Inventory resource: the file by which the command line knows a cluster, and the login key."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # property values

from clusterctl_infra.names import STACK_DIR_VARIABLE, STACK_NAME_VARIABLE
from clusterctl_infra.provider.inventory_file import inventory_for_here, rehearsal_proxy_command
from clusterctl_infra.provider.local_home import LocalHome, write_private
from clusterctl_infra.provider.property_values import UNKNOWN, Unknown, has_unknown
from clusterctl_infra.provider.resource import CheckFailure, Difference, Place, Properties, ResourceRefused

_REQUIRED = ("name", "cluster", "cluster_id", "run", "rehearsal", "ssh", "nodes")


@dataclass(frozen=True, kw_only=True)
class InventoryResource:
    """Writes and removes the files; the next `up` writes a lost file again."""

    home: LocalHome
    environ: Mapping[str, str]
    working_dir: Path

    def check(self, inputs: Properties) -> list[CheckFailure]:
        """Whether there is an inventory with a usable cluster name."""
        inventory = inputs.get("inventory")
        if isinstance(inventory, Unknown):
            return []
        if not isinstance(inventory, Mapping):
            return [CheckFailure(property="inventory", reason="inventory is missing")]
        missing = [key for key in _REQUIRED if key not in inventory]
        if missing:
            return [CheckFailure(property="inventory", reason=f"inventory lacks {', '.join(missing)}")]
        cluster = inventory["cluster"]
        if isinstance(cluster, str) and (not cluster or "/" in cluster or cluster.startswith(".")):
            return [CheckFailure(property="inventory", reason=f"cluster {cluster!r} cannot be a file's name")]
        return []

    def difference(self, state: Properties, old_inputs: Properties, inputs: Properties) -> Difference:
        """Why the files have to be written again: changed inputs, or files that are missing here. Another cluster name
        is another resource.
        """
        inventory = inputs["inventory"]
        if isinstance(inventory, Unknown):
            return Difference(changed=("inventory",))
        if inventory["cluster"] != state["cluster"]:
            return Difference(changed=("inventory",), replaced=("inventory",))
        changed = [key for key in ("inventory", "login_key") if inputs.get(key) != old_inputs.get(key)]
        if not changed and not self._is_written(inputs):
            changed = ["inventory"]
        return Difference(changed=tuple(changed))

    def create(self, inputs: Properties, place: Place) -> tuple[str, dict[str, Any]]:
        """Writes the files; the id is the cluster's name."""
        inventory = inputs["inventory"]
        if isinstance(inventory, Unknown):
            return "", {"cluster": UNKNOWN, "cluster_id": UNKNOWN}
        return str(inventory["cluster"]), self.update({}, inputs, place)

    def update(self, state: Properties, inputs: Properties, place: Place) -> dict[str, Any]:
        """Writes the files again; instance ids already known stay in."""
        inventory = inputs["inventory"]
        if isinstance(inventory, Unknown):
            return {**state}
        if not place.preview and not has_unknown(inputs):
            self._write(inventory, inputs.get("login_key"), place)
        # A rehearsal lives in one home alone. Its path is an output: an input would differ from computer to computer.
        home = {"home": str(self.home.root)} if inventory["rehearsal"] else {}
        return {"cluster": inventory["cluster"], "cluster_id": inventory["cluster_id"], **home}

    def delete(self, state: Properties, place: Place) -> None:
        """Removes the files, unless they are another cluster's by now."""
        cluster = str(state["cluster"])
        with self.home.inventory_lock(cluster):
            present = self.home.read_inventory(cluster)
            if present is not None and present.get("cluster_id") != state["cluster_id"]:
                return
            self.home.inventory_file(cluster).unlink(missing_ok=True)
            shutil.rmtree(self.home.key_dir(cluster), ignore_errors=True)

    def _is_written(self, inputs: Properties) -> bool:
        inventory = inputs["inventory"]
        present = self.home.read_inventory(inventory["cluster"])
        if present is None or present.get("cluster_id") != inventory["cluster_id"]:
            return False
        return not inputs.get("login_key") or (self.home.key_dir(inventory["cluster"]) / "id_ed25519").exists()

    def _write(self, inventory: Mapping[str, Any], login_key: str | None, place: Place) -> None:
        cluster = str(inventory["cluster"])
        with self.home.inventory_lock(cluster):
            local = inventory_for_here(
                inventory,
                previous=self.home.read_inventory(cluster),
                stack_dir=self.environ.get(STACK_DIR_VARIABLE) or str(self.working_dir),
                stack_name=self.environ.get(STACK_NAME_VARIABLE) or place.stack_name,
                proxy_command=self._proxy_command(inventory),
            )
            self.home.write_inventory(cluster, local)
        if login_key:
            write_private(self.home.key_dir(cluster) / "id_ed25519", login_key)

    def _proxy_command(self, inventory: Mapping[str, Any]) -> tuple[str, ...] | None:
        if not inventory["rehearsal"]:
            return None
        command = rehearsal_proxy_command(str(inventory["name"]), home=self.home.root)
        if command is None:
            raise ResourceRefused("this is a rehearsal, but the package clusterctl_rehearsal is not installed")
        return command
