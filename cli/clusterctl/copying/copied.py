"""How one copy ended: well, or with which error."""

from __future__ import annotations

from dataclasses import dataclass

import paramiko
from clusterctl_infra.outputs import InventoryNode

from clusterctl.copying.files import CopyFailed
from clusterctl.copying.one_copy import Arrival
from clusterctl.copying.place import Transfer
from clusterctl.copying.remote_files import SILENT_S
from clusterctl.ssh.failures import NodeFailure

COPY_ERRORS = (NodeFailure, CopyFailed, OSError, EOFError, paramiko.SSHException)
"""Errors that a copy has to expect; any other exception is a bug."""
AGAIN = "run the same command again: it resumes"


@dataclass(frozen=True, kw_only=True)
class Copied:
    """One transfer's end: where the file is now, or why it failed."""

    transfer: Transfer
    arrival: Arrival | None = None
    failure: NodeFailure | str | None = None
    source_node: InventoryNode | None = None
    """If the node to copy from failed, that node."""

    @property
    def node(self) -> InventoryNode:
        """The node that this copy is about."""
        return self.transfer.node if self.source_node is None else self.source_node


def reason(error: BaseException, where: str) -> NodeFailure | str:
    """The words for one of `COPY_ERRORS`; a NodeFailure stays as it is.

    `where`: the file, for an error that names none.
    """
    if isinstance(error, NodeFailure):
        return error
    if isinstance(error, CopyFailed):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"no answer for {SILENT_S:g} s; {AGAIN}"
    if isinstance(error, EOFError | paramiko.SSHException):
        return f"the connection broke; {AGAIN}"
    if isinstance(error, OSError):
        return f"{error.filename or where}: {error.strerror or error}"
    raise error
