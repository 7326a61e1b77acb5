"""Which logs are read on the nodes, and the command that reads them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.logs.source import Source
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.keys.login_keys import LoginKeys

LAST_LINES = 10
"""How many last lines are shown first when following begins without --since, as with tail."""


@dataclass(frozen=True, kw_only=True)
class LogRequest:
    """Which lines of which nodes, and how to reach them."""

    inventory: Inventory
    nodes: tuple[InventoryNode, ...]
    sources: Mapping[str, Source]
    since_s: float | None
    """Unix time by this computer's clock."""
    grep: str | None
    is_followed: bool
    timeout_s: float
    """How long a node's logs may take before the node is given up.

    A source that gives nothing for half of that is named. While following, no node is given up, and one whose reader
    says nothing for all of that is named.
    """
    keys: LoginKeys
    deadlines: Deadlines


def reader_command(request: LogRequest, places: Mapping[str, str]) -> str:
    """The line that runs the reader on a node, as root if sudo allows it, since only root may read some logs.

    `places`: source → where to go on. Python is isolated (-I), or it would load a `json.py` that lies in the user's
    home or on the PYTHONPATH. The program comes through a pipe, because sudo writes a command's arguments into the
    node's journal, and so into `clusterctl logs system`.
    """
    asked = {
        "sources": {
            name: {"files": source.files} if source.files else {"journal": source.journal}
            for name, source in request.sources.items()
        },
        "follow": request.is_followed,
        "since_s": request.since_s,
        "tail": LAST_LINES if request.is_followed and request.since_s is None and request.grep is None else 0,
        "grep": request.grep or "",
        "places": dict(places),
        # Half of it, so that the node's other sources can still be read and sent in the other half.
        "patience_s": request.timeout_s / 2,
    }
    reader = shlex.join(["python3", "-I", "-", json.dumps(asked)])
    as_root = f"if sudo -n true </dev/null 2>/dev/null; then exec sudo -n {reader}; else exec {reader}; fi"
    script = f"printf %s {shlex.quote(reader_program())} | {as_root}"
    return "exec sh -c " + shlex.quote(script)


def reader_program() -> str:
    """The reader as one program text for a node's Python: it first makes a module of `log_files`, which it imports."""
    folder = files("clusterctl.on_node")
    imported, reader = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("log_files.py", "log_reader.py"))
    module = "clusterctl.on_node.log_files"
    packages = [module, "clusterctl.on_node", "clusterctl"]
    return f"""import sys, types
sys.modules.update((name, types.ModuleType(name)) for name in {packages})
exec({imported!r}, vars(sys.modules[{module!r}]))
exec({reader!r})
"""
