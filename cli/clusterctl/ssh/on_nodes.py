"""`clusterctl ssh` with a command: on one node as ssh would, on several with names before the lines, or spooled."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.ssh.broker.place import is_off
from clusterctl.ssh.command import Command
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import look_at, not_reached
from clusterctl.ssh.fanout.sinks import NodeSinks
from clusterctl.ssh.new_links import Links, NewLinks
from clusterctl.ssh.remote_command import RemoteCommand, usable_keys
from clusterctl.ssh.request import Shown, SshRequest, is_for_one, log_in, remote_command, with_node_named_first
from clusterctl.ssh.results import NodeResult, failure_summary
from clusterctl.ssh.target import PersonsNode
from clusterctl.system.caller import Caller

if TYPE_CHECKING:
    from clusterctl.ssh.fanout.link_pool import LinkPool

READ_S = 10.0

_Run = Callable[[RemoteCommand, Output, Links], dict[int, NodeResult]]


def carry_out(request: SshRequest, output: Output, caller: Caller, *, keep: Callable[[LinkPool, Path], None]) -> int:
    """Carries out the request and returns the exit code; never returns from a login. Raises ClusterctlError.

    `keep` gets the connections that are left, and the folder in which the next command looks for them.
    """
    request = with_node_named_first(request, caller)
    if request.is_login:
        log_in(request, caller, output)
    remote = remote_command(request, caller)
    folder = caller.home.warm_dir
    is_kept = not (request.is_cold or is_off(caller.environ) or _uses_persons_config(remote))
    return run_and_show(request, remote, output, NewLinks(lambda pool: keep(pool, folder)) if is_kept else NewLinks())


def run_and_show(request: SshRequest, remote: RemoteCommand, output: Output, links: Links) -> int:
    """Runs the command, shows all its output, and returns the exit code. Raises ClusterctlError."""
    show = run_on_one if is_for_one(request, remote) else run_on_several
    return show(remote, output, links, shown=request.shown)


def _uses_persons_config(remote: RemoteCommand) -> bool:
    """Whether a node is reached by the person's ssh configuration; connections to such nodes are not kept."""
    return any(isinstance(node, PersonsNode) for node in remote.nodes)


def run_on_one(remote: RemoteCommand, output: Output, links: Links, *, shown: Shown) -> int:
    """The command's own exit code; its output is shown as it is, or as JSON. Raises NotReached."""
    (node,) = remote.nodes
    if shown is Shown.JSON:
        result = _run_shown(shown)(remote, output, links)[node.slot]
    else:
        sinks = NodeSinks(
            stdout=lambda _, chunk: output.data_bytes(chunk), stderr=lambda _, chunk: output.note_bytes(chunk)
        )
        result = links.run(remote, sinks=sinks)[node.slot]
    if result.failure is not None:
        raise not_reached(result.failure, remote.inventory, node)
    return result.exit_code or 0


def run_on_several(remote: RemoteCommand, output: Output, links: Links, *, shown: Shown) -> int:
    """0 when the command ended with 0 on every node; else 4, and a summary is shown."""
    results = _run_shown(shown)(remote, output, links).values()
    summary = failure_summary(results)
    if summary is None:
        return 0
    output.note(summary)
    next_line = look_at((result.failure for result in results), remote.inventory)
    if next_line is not None and shown is not Shown.JSON:
        output.note(next_line)
    return SomeNodesFailed.exit_code


def read_file(inventory: Inventory, node: InventoryNode, path: str, *, home: Home, deadlines: Deadlines) -> str:
    """The text of a file on one node. Raises NotReached, ClusterctlError when it cannot be read there."""
    remote = RemoteCommand(
        inventory=inventory,
        nodes=(node,),
        command=Command(line=f"cat {shlex.quote(path)}", timeout_s=READ_S),
        keys=usable_keys(inventory, home),
        deadlines=deadlines,
    )
    result = NewLinks().run(remote)[node.slot]
    if result.failure is not None:
        raise not_reached(result.failure, inventory, node)
    if not result.is_ok:
        reason = result.stderr.decode(errors="replace").strip() or f"exit {result.exit_code}"
        raise ClusterctlError(f"{node.name}: {reason}", hint=f"clusterctl status --cluster {inventory.cluster}")
    return result.stdout.decode(errors="replace")


def _run_shown(shown: Shown) -> _Run:
    if shown in (Shown.LIVE, Shown.NUMBERED):
        return partial(_run_prefixed, has_names=shown is Shown.LIVE)
    spooled_run = importlib.import_module("clusterctl.ssh.spooled_run")
    run: _Run = spooled_run.run_json if shown is Shown.JSON else spooled_run.run_gathered
    return run


def _run_prefixed(remote: RemoteCommand, output: Output, links: Links, *, has_names: bool) -> dict[int, NodeResult]:
    labels = {node.slot: node.name if has_names else f"Node {node.slot}" for node in remote.nodes}
    stdout = {slot: LinePrefixer(name, output.data_bytes) for slot, name in labels.items()}
    stderr = {slot: LinePrefixer(name, output.note_bytes) for slot, name in labels.items()}

    def finish(result: NodeResult) -> None:
        stdout[result.slot].finish()
        stderr[result.slot].finish()
        if result.failure is not None and result.failure.kind != "stopped":
            output.note(f"[{labels[result.slot]}] {result.failure.message_under(result.name)}")

    sinks = NodeSinks(
        stdout=lambda node, chunk: stdout[node.slot].feed(chunk),
        stderr=lambda node, chunk: stderr[node.slot].feed(chunk),
    )
    return links.run(remote, sinks=sinks, on_result=finish)


LONGEST_HELD_BYTES = 64 * 1024
"""A line longer than this is shown in pieces rather than held."""


class LinePrefixer:
    """Turns one stream's chunks into prefixed lines for `sink`; used by one thread at a time."""

    def __init__(self, name: str, sink: Callable[[bytes], None]) -> None:
        self._prefix = f"[{name}] ".encode()
        self._sink = sink
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Passes on the lines that `chunk` completes, in one call."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST_HELD_BYTES:
            whole.append(self._rest)
            self._rest = b""
        if whole:
            self._sink(b"".join(self._prefix + line + b"\n" for line in whole))

    def finish(self) -> None:
        """Passes on a last line that has no newline."""
        if self._rest:
            self._sink(self._prefix + self._rest + b"\n")
            self._rest = b""
