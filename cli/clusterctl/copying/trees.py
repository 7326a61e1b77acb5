"""Folders to nodes and back by rsync, over the same settings as every other connection."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed, UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.copying.place import remote_place
from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.process import PACKAGES
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.system_ssh import login_argv
from clusterctl.ssh.target import target_of
from clusterctl.views.quantities import count

AT_A_TIME = 8
SILENT_S = 60
"""rsync gives up when nothing at all has moved for so long."""
NOT_FOUND = 127
HINT = "clusterctl sync --help"


@dataclass(frozen=True, kw_only=True)
class TreeSync:
    """One node's folder made like another."""

    node: InventoryNode
    source: str
    target: str


def tree_syncs(source: str, target: str, inventory: Inventory) -> tuple[bool, tuple[TreeSync, ...]]:
    """Whether it goes up, and what to do for each node. Raises UsageError, NothingMatched."""
    to, come = remote_place(target, inventory), remote_place(source, inventory)
    if (to is None) == (come is None):
        raise UsageError("one side must be a node: 2:/path, train-2:/path or all:/path", hint=HINT)
    if to is not None:
        return True, tuple(TreeSync(node=node, source=source, target=to.path or ".") for node in to.nodes)
    assert come is not None
    alone = len(come.nodes) == 1
    return False, tuple(
        TreeSync(node=node, source=come.path or ".", target=target if alone else str(Path(target) / node.name) + "/")
        for node in come.nodes
    )


def rsync_argv(
    sync: TreeSync, ssh: Sequence[str], *, is_up: bool, is_deleting: bool, excluded: Sequence[str]
) -> list[str]:
    """The argv of rsync; `ssh` is that of a login, its last word the place."""
    *shell, place = ssh
    argv = ["rsync", "--archive", "--partial-dir=.clusterctl-partial", "--mkpath", f"--timeout={SILENT_S}", "--stats"]
    argv += ["--human-readable", *(["--delete-delay"] if is_deleting else [])]
    argv += [f"--exclude={pattern}" for pattern in excluded]
    argv += ["-e", shlex.join(shell), "--"]
    # The shell on the node does not see the path: rsync passes it as an argument from 3.2.4 on (NEWS, 2022-04-15).
    return [*argv, sync.source, f"{place}:{sync.target}"] if is_up else [*argv, f"{place}:{sync.source}", sync.target]


def sync_all(
    syncs: Sequence[TreeSync],
    inventory: Inventory,
    *,
    home: Home,
    output: Output,
    is_up: bool,
    is_deleting: bool,
    excluded: Sequence[str],
    connect_timeout_s: float,
) -> int:
    """0, or 4 when some of several failed. Raises the failure of a single one."""
    known_hosts, key_file = write_known_hosts(inventory, home), login_key_file(inventory, home)

    def run(sync: TreeSync) -> tuple[TreeSync, str | None, str]:
        try:
            ssh = login_argv(
                target_of(inventory, sync.node),
                key_file=key_file,
                known_hosts=known_hosts,
                connect_timeout_s=connect_timeout_s,
            )
        except NodeFailure as failure:
            return sync, failure.message, ""
        return sync, *_run(rsync_argv(sync, ssh, is_up=is_up, is_deleting=is_deleting, excluded=excluded), sync, is_up)

    ended = failed = 0
    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        for done in as_completed([pool.submit(run, sync) for sync in syncs]):
            sync, trouble, told = done.result()
            ended += 1
            if trouble is not None and len(syncs) == 1:
                raise ClusterctlError(f"{sync.node.name}: {trouble}")
            failed += trouble is not None
            output.note(f"[{sync.node.name}] {trouble or told}")
            output.live(f"{ended} of {count(len(syncs), 'node')}")
    return SomeNodesFailed.exit_code if failed else 0


def _run(argv: Sequence[str], sync: TreeSync, is_up: bool) -> tuple[str | None, str]:
    """What went wrong, and what was done. rsync ends by itself when nothing moves (`--timeout`)."""
    if not is_up:
        Path(sync.target).parent.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except FileNotFoundError as e:
        hint = f"sudo apt-get install {PACKAGES['rsync']}"
        raise ClusterctlError("rsync is not installed on this computer", hint=hint) from e
    if done.returncode == 0:
        return None, summary(done.stdout)
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("rsync error:")]
    if done.returncode == NOT_FOUND or any(
        "rsync: command not found" in line or "rsync: not found" in line for line in lines
    ):
        return (
            f"rsync is not installed there; next: clusterctl ssh --node {sync.node.slot} sudo apt-get install -y rsync",
            "",
        )
    return lines[-1] if lines else f"rsync ended with {done.returncode}", ""


def summary(stats: str) -> str:
    """`12 files, 3.45M bytes changed`, from what `rsync --stats` tells."""
    told = {}
    for line in stats.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            told[name.strip()] = value.strip().split(" ")[0]
    files = told.get("Number of regular files transferred", "?")
    return f"{files} files, {told.get('Total transferred file size', '?')} bytes changed"
