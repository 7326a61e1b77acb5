"""How one copy ended, whatever it met on its way."""

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
"""What a copy may meet; all else is a bug."""
AGAIN = "run the same command again: it resumes"


@dataclass(frozen=True, kw_only=True)
class Copied:
    """One transfer's end: where the file is now, or why it failed."""

    transfer: Transfer
    arrival: Arrival | None = None
    failure: NodeFailure | str | None = None
    source_node: InventoryNode | None = None
    """The node that failed, when it is the one to copy from."""

    @property
    def node(self) -> InventoryNode:
        """The node that this copy is about."""
        return self.transfer.node if self.source_node is None else self.source_node


def reason(error: BaseException, where: str) -> NodeFailure | str:
    """One of COPY_ERRORS in words for a person; `where` is the file, for errors that do not name one."""
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
