"""One node as a Fabric connection, which accepts the declared host key alone and uses the cluster's keys and way in."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # Fabric and Invoke have no types of their own

import fabric
import paramiko
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import not_reached
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.remote_command import keys_of
from clusterctl.ssh.single.transport import NodeConnection
from clusterctl.ssh.target import Target, port_of, target_of
from clusterctl.system.caller import Caller


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """A cluster's inventory, and what is needed to reach its nodes."""

    inventory: Inventory
    deadlines: Deadlines

    def keys(self, nodes: tuple[InventoryNode, ...]) -> LoginKeys:
        """The private keys for these nodes, by the rules of `clusterctl ssh`. Raises NotReached when there are none."""
        return keys_of(program(), replace(self.inventory, nodes=nodes))


def program() -> Caller:
    """This Python program as the caller, whose stdin is never passed to commands on nodes."""
    return Caller(environ=os.environ, folder=Path(), stdin=None)


class SlotConnection(fabric.Connection):  # type: ignore[misc]  # Fabric has no types
    """A Fabric connection to the node in one slot.

    It reads neither `~/.ssh/config` nor Fabric's own configuration files. Two connections are equal if they are to the
    same slot of the same cluster, whatever addresses the nodes have.
    """

    # Declared here, because Invoke takes an attribute that the class lacks for a setting of its configuration.
    cluster: ClusterAccess = None  # type: ignore[assignment]
    node: InventoryNode = None  # type: ignore[assignment]
    transport: paramiko.Transport | None = None
    _open_connection: NodeConnection | None = None
    _sftp_client: paramiko.SFTPClient | None = None

    def __init__(self, cluster: ClusterAccess, node: InventoryNode) -> None:
        inventory = cluster.inventory
        target: Target | None = None
        with contextlib.suppress(NodeFailure):  # no address yet: `open` says so
            target = target_of(inventory, node)
        super().__init__(
            host=node.private_ip if target is None else target.host,
            user=inventory.ssh.user if target is None else target.user,
            port=port_of(inventory, node) if target is None else target.port,
            config=fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig()),
            forward_agent=False,
        )
        self.cluster = cluster
        self.node = node
        if target is not None and target.proxy_argv is not None:
            self.gateway = shlex.join(target.proxy_argv)
        # `open` does not use this client, but a program might, and then it must refuse unknown hosts.
        self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        if target is not None:
            _declare_host_key(self.client, target)

    def open(self) -> None:
        """Connects, unless it is connected. Raises NotReached, as for another host key or a node that is silent."""
        if self.is_connected:
            return
        self.close()
        try:
            self._open_connection = NodeConnection.open(
                self.cluster.inventory, self.node, self.cluster.deadlines, keys=self.cluster.keys((self.node,))
            )
        except NodeFailure as e:
            raise not_reached(e, self.cluster.inventory, self.node) from e
        self.transport = self._open_connection.transport

    def close(self) -> None:
        """Ends the connection; safe to call twice."""
        super().close()
        if self._sftp_client is not None:
            self._sftp_client.close()
        if self._open_connection is not None:
            self._open_connection.close()
        self._sftp_client = self._open_connection = self.transport = None

    def sftp(self) -> paramiko.SFTPClient:
        """The SFTP client for the node's files; each connection has a single SFTP session. Raises NotReached."""
        self.open()
        assert self._open_connection is not None
        if self._sftp_client is None:
            try:
                self._sftp_client = self._open_connection.open_sftp()
            except NodeFailure as e:
                raise not_reached(e, self.cluster.inventory, self.node) from e
        return self._sftp_client

    @property
    def slot_of_cluster(self) -> tuple[str, str, int]:
        """(cluster, its id, slot), by which connections are compared."""
        return self.cluster.inventory.cluster, self.cluster.inventory.cluster_id, self.node.slot

    def __repr__(self) -> str:
        return f"<SlotConnection {self.node.name} {self.user}@{self.host}:{self.port}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotConnection) and self.slot_of_cluster == other.slot_of_cluster

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, SlotConnection):
            return NotImplemented
        return self.slot_of_cluster < other.slot_of_cluster

    def __hash__(self) -> int:
        return hash(self.slot_of_cluster)


def _declare_host_key(client: paramiko.SSHClient, target: Target) -> None:
    """Makes the client accept this host key; one that paramiko cannot read stays unknown, so the host is refused."""
    name = target.host if target.port == paramiko.config.SSH_PORT else f"[{target.host}]:{target.port}"
    with contextlib.suppress(binascii.Error, paramiko.SSHException, paramiko.pkey.UnknownKeyType, ValueError):
        key = paramiko.PKey.from_type_string(target.host_key_type, base64.b64decode(target.host_key))
        client.get_host_keys().add(name, target.host_key_type, key)
