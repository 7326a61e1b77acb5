"""Copies folders to nodes and back by rsync, with the same SSH settings as every other connection."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from clusterctl_infra.errors import ClusterctlError, SomeNodesFailed, UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.copying.place import refuse_one_name_twice, remote_place
from clusterctl.copying.rsync import Rsyncs, SilentNode, SyncFailed
from clusterctl.copying.silence import shell_argv
from clusterctl.home import Home
from clusterctl.output import Output
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.failure_hints import not_reached
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import identities_for_ssh
from clusterctl.ssh.keys.openssh_files import login_key_file, write_known_hosts
from clusterctl.ssh.remote_command import usable_keys
from clusterctl.ssh.single.system_ssh import login_argv
from clusterctl.ssh.target import target_of
from clusterctl.text.next_commands import on_slot

AT_A_TIME = 8
ASK_S = 10.0
HINT = "clusterctl sync --help"
CP_HINT = "clusterctl cp --help"
UNPRIVILEGED = ("--no-owner", "--no-group", "--no-D", "--chmod=ug-s")
"""Without these, an rsync that runs as root here would make whatever a node sends: setuid programs, files of any owner,
devices (rsync(1), --archive)."""


@dataclass(frozen=True, kw_only=True)
class TreeSync:
    """One rsync: the folder `target` is made like the folder `source`; one of them is on the node."""

    node: InventoryNode
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class RsyncWay:
    """The options of a command that apply to all its nodes."""

    is_up: bool
    """Whether folders go from this computer to nodes."""
    is_deleting: bool = False
    is_preserving: bool = False
    """Whether files that come from nodes keep owners and setuid bits, and devices are made, as far as this user may."""
    excluded: Sequence[str] = ()
    silence_s: float = 60.0
    """rsync gives up when nothing at all has moved for this long."""
    connect_timeout_s: float = 15.0


def tree_syncs(source: str, target: str, inventory: Inventory) -> tuple[bool, tuple[TreeSync, ...]]:
    """(whether folders go to nodes, the rsync of each node). Raises UsageError, NothingMatched."""
    to, at = remote_place(target, inventory), remote_place(source, inventory)
    if to is None and at is None:
        raise UsageError("neither side is a node: write one as 2:/path, train-2:/path or all:/path", hint=HINT)
    if to is not None and at is not None:
        raise UsageError(
            "sync copies between this computer and nodes; from node to node, use cp, file by file", hint=HINT
        )
    if to is not None:
        if not Path(source).exists():
            raise UsageError(f"{source}: there is no such folder here", hint=HINT)
        return True, tuple(TreeSync(node=node, source=source, target=to.path or ".") for node in to.nodes)
    assert at is not None
    alone = len(at.nodes) == 1
    return False, tuple(
        # Joined as text: `./a:b` must not become `a:b`, which rsync takes for a host.
        TreeSync(node=node, source=at.path or ".", target=target if alone else posixpath.join(target, node.name, ""))
        for node in at.nodes
    )


def folder_copies(words: Sequence[str], inventory: Inventory) -> tuple[bool, tuple[TreeSync, ...]]:
    """What `cp -r SOURCE… TARGET` asks for, in the form of `tree_syncs`. Raises UsageError, NothingMatched.

    Each folder goes into the target under its own name, whether or not the target exists, so that the same command
    always does the same.
    """
    if len(words) < 2:
        raise UsageError("a source and a target are needed", hint=CP_HINT)
    *sources, target = words
    wholes = [source.rstrip("/") for source in sources]
    places = [remote_place(word, inventory) is not None for word in words]
    if places[-1] and any(places[:-1]):
        raise UsageError(
            "cp -r copies between this computer and nodes; from node to node, cp copies files only", hint=CP_HINT
        )
    if not places[-1] and not all(places[:-1]):
        raise UsageError("neither side is a node: write one as 2:/path, train-2:/path or all:/path", hint=CP_HINT)
    refuse_one_name_twice(wholes, [remote_place(whole, inventory) for whole in wholes])
    syncs: list[TreeSync] = []
    for source, whole in zip(sources, wholes, strict=True):
        if posixpath.basename(whole.rpartition(":")[2]) in ("", ".", "..", "~"):
            raise UsageError(f"{source} is no folder with a name of its own: write its path", hint=CP_HINT)
        is_folder = len(sources) > 1 or (places[-1] and Path(whole).is_dir())
        there = f"{target.rstrip('/')}/" if is_folder and not target.endswith(":") else target
        syncs += tree_syncs(whole, there, inventory)[1]
    return places[-1], tuple(syncs)


def refuse_emptied_home(syncs: Sequence[TreeSync], user: str) -> None:
    """Raises UsageError if `--delete` would remove from a login user's home all that is not in the source."""
    home = "/root" if user == "root" else f"/home/{user}"
    for sync in syncs:
        copies_contents = posixpath.basename(sync.source) in {"", ".", ".."}
        there = "/" + posixpath.normpath(posixpath.join(home, sync.target)).lstrip("/")
        if copies_contents and posixpath.commonpath([home, there]) == there:
            message = f"--delete would empty {user}'s home on {sync.node.name}, with the keys that let you in"
            raise UsageError(f"{message}: name a folder below it", hint=HINT)


def rsync_argv(way: RsyncWay, sync: TreeSync, ssh: Sequence[str]) -> list[str]:
    """The argv of rsync; `ssh` is the argv of a login, with USER@HOST as its last word."""
    *shell, place = ssh
    user, _, host = place.rpartition("@")
    place = f"{user}@[{host}]" if ":" in host else place  # rsync takes an IPv6 address only in brackets
    if not way.is_up:
        shell = shell_argv(shell, connect_s=way.connect_timeout_s, silence_s=way.silence_s)
    argv = ["rsync", "--archive", "--partial-dir=.clusterctl-partial", "--mkpath", "--stats", "--human-readable"]
    if not way.is_up and not way.is_preserving:
        argv += UNPRIVILEGED
    argv += [f"--timeout={max(1, round(way.silence_s))}", *(["--delete-delay"] if way.is_deleting else [])]
    argv += [f"--exclude={pattern}" for pattern in way.excluded]
    argv += ["-e", shlex.join(shell), "--"]
    # The shell on the node does not see the path: rsync passes it as an argument from 3.2.4 on (NEWS, 2022-04-15).
    if way.is_up:
        return [*argv, sync.source, f"{place}:{sync.target}"]
    return [*argv, f"{place}:{sync.source}", sync.target]


def sync_all(syncs: Sequence[TreeSync], inventory: Inventory, way: RsyncWay, *, home: Home, output: Output) -> int:
    """Runs all rsyncs and returns 0, or 4 if some of several failed. Raises the error of one that is the only one."""
    known_hosts, key_file = write_known_hosts(inventory, home), login_key_file(inventory, home)
    own = identities_for_ssh(inventory, home, Path.home() / ".ssh")
    unfit = _unfit(syncs, inventory, way, home)
    rsyncs = Rsyncs()

    def run(sync: TreeSync) -> tuple[TreeSync, ClusterctlError | None, str]:
        if (error := unfit.get(sync.node.slot)) is not None:
            return sync, error, ""
        ssh = login_argv(
            target_of(inventory, sync.node),
            key_file=key_file,
            own=own,
            known_hosts=known_hosts,
            connect_timeout_s=way.connect_timeout_s,
        )
        try:
            return sync, None, _run(rsyncs, rsync_argv(way, sync, ssh), sync, way)
        except SyncFailed as e:
            return sync, ClusterctlError(f"{sync.node.name}: {e}"), ""

    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        waiting = [pool.submit(run, sync) for sync in syncs]
        try:
            return _reported(as_completed(waiting), len(syncs), output)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            rsyncs.end()
            raise


def _reported(ended: Iterable[Future[tuple[TreeSync, ClusterctlError | None, str]]], count: int, output: Output) -> int:
    """Prints how each rsync ended, as it ends; returns and raises what `sync_all` does."""
    failed = 0
    for number, done in enumerate(ended, 1):
        sync, error, text = done.result()
        if error is not None and count == 1:
            raise error
        failed += error is not None
        output.note(f"[{sync.node.name}] {text if error is None else _row(error, sync)}")
        output.live(f"{number} of {count}")
    return SomeNodesFailed.exit_code if failed else 0


def _unfit(syncs: Sequence[TreeSync], inventory: Inventory, way: RsyncWay, home: Home) -> Mapping[int, ClusterctlError]:
    """Slot → why rsync cannot run there: the node was not reached, or has no rsync.

    Asked beforehand, since rsync's own messages would not say it clearly.
    """
    results = run_on_nodes(
        inventory,
        tuple({sync.node.slot: sync.node for sync in syncs}.values()),
        "command -v rsync >/dev/null",
        keys=usable_keys(inventory, home),
        deadlines=Deadlines.within(way.connect_timeout_s),
        timeout_s=ASK_S,
    )
    unfit: dict[int, ClusterctlError] = {}
    for sync in syncs:
        result = results[sync.node.slot]
        if result.failure is not None:
            unfit[sync.node.slot] = not_reached(result.failure, inventory, sync.node)
        elif not result.is_ok:
            hint = on_slot(inventory.cluster, sync.node.slot, ["sudo", "apt-get", "install", "-y", "rsync"])
            unfit[sync.node.slot] = ClusterctlError(f"{sync.node.name}: rsync is not installed there", hint=hint)
    return unfit


def _row(error: ClusterctlError, sync: TreeSync) -> str:
    """The error for a line that begins with the node's name."""
    message = error.message.removeprefix(f"{sync.node.name}: ")
    return message if error.hint is None else f"{message}; next: {error.hint}"


def _run(rsyncs: Rsyncs, argv: Sequence[str], sync: TreeSync, way: RsyncWay) -> str:
    """Runs one rsync and returns a summary of what it did. Raises SyncFailed."""
    try:
        if not way.is_up:
            Path(sync.target).parent.mkdir(parents=True, exist_ok=True)
        return summary(rsyncs.run(argv))
    except OSError as e:
        raise SyncFailed(f"{e.filename}: {e.strerror}") from e
    except SilentNode as e:
        raise SyncFailed(f"nothing moved for {way.silence_s:g} s; run the same command again: it resumes") from e


def summary(stats: str) -> str:
    """`12 files, 3.45M bytes changed`, from what `rsync --stats` prints."""
    figures = {}
    for line in stats.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            figures[name.strip()] = value.strip().split(" ")[0]
    files = figures.get("Number of regular files transferred", "?")
    size = figures.get("Total transferred file size", "?")
    return f"{files} {'file' if files == '1' else 'files'}, {size} bytes changed"
