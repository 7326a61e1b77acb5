"""What the words of `clusterctl cp` mean: files here, and files on nodes. Pure."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from clusterctl_infra.errors import UsageError
from clusterctl_infra.outputs import Inventory, InventoryNode

from clusterctl.text.next_commands import nodes_again
from clusterctl.text.node_set import own_names, parse_node_set

HINT = "clusterctl cp --help"


@dataclass(frozen=True, kw_only=True)
class RemotePlace:
    """A path on nodes: absolute, or from the login user's home."""

    nodes: tuple[InventoryNode, ...]
    path: str


@dataclass(frozen=True, kw_only=True)
class NodeFile:
    """A file on one node."""

    node: InventoryNode
    path: str


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One file to one node, from here or from another node. In a target that is a folder it keeps its own name."""

    source: Path | NodeFile
    node: InventoryNode
    remote: str
    is_into_folder: bool
    """The target must be a folder: it was written with a slash, or takes several files."""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.source.name if isinstance(self.source, Path) else posixpath.basename(self.source.path)


@dataclass(frozen=True, kw_only=True)
class Download:
    """One file from one node to here. In a target that is a folder it keeps its own name."""

    node: InventoryNode
    remote: str
    local: Path
    is_into_folder: bool


Transfer = Upload | Download


def transfers(words: Sequence[str], inventory: Inventory) -> tuple[Transfer, ...]:
    """The transfers that `SOURCE… TARGET` asks for. Raises UsageError, and NothingMatched for unknown nodes."""
    if len(words) < 2:
        raise UsageError("a source and a target are needed", hint=HINT)
    for word in words:
        _refuse_bytes(word)
    *sources, target = words
    to = remote_place(target, inventory)
    froms = [remote_place(source, inventory) for source in sources]
    refuse_one_name_twice(sources, froms)
    is_several = len(sources) > 1
    if to is not None:
        is_folder = is_several or to.path.endswith("/") or to.path == ""
        files = [
            Path(word) if at is None else _node_file(at, inventory) for word, at in zip(sources, froms, strict=True)
        ]
        return tuple(
            Upload(source=file, node=node, remote=to.path or ".", is_into_folder=is_folder)
            for file in files
            for node in to.nodes
        )
    if not all(froms):
        raise UsageError("neither side is a node: write one as 2:/path, train-2:/path or all:/path", hint=HINT)
    return tuple(
        _download(
            node, place.path, Path(target), is_folder=is_several or target.endswith("/"), alone=len(place.nodes) == 1
        )
        for place in froms
        if place is not None
        for node in place.nodes
    )


def has_node_logins(inventory: Inventory) -> bool:
    """Whether the nodes can log in to each other: those of a cluster can (docs/security.md), other machines may not."""
    return inventory.cluster_id != ""


def remote_place(word: str, inventory: Inventory) -> RemotePlace | None:
    """The place on nodes that `2:/path` names; None for a file here. `./a:b` is always here."""
    before, colon, path = word.partition(":")
    if not colon or "/" in before or not before:
        return None
    there = [node.slot for node in inventory.nodes]
    look, source = nodes_again(inventory), "before the colon,"
    try:
        slots = parse_node_set(
            before, cluster=inventory.name, slots=there, look=look, source=source, names=own_names(inventory)
        )
    except UsageError as e:
        raise UsageError(f"{e.message}; a file here would be ./{word}", hint=HINT) from e
    nodes = tuple(node for node in inventory.nodes if node.slot in slots)
    return RemotePlace(nodes=nodes, path=path.removeprefix("~/") if path != "~" else "")


def _refuse_bytes(word: str) -> None:
    """Raises UsageError for a name that is not UTF-8: SFTP and our messages are text."""
    try:
        word.encode()
    except UnicodeEncodeError as e:
        remedy = "give the file a name that is, or copy its folder by clusterctl sync"
        raise UsageError(f"{os.fsencode(word)!r} is no UTF-8: {remedy}", hint=HINT) from e


def refuse_one_name_twice(sources: Sequence[str], places: Sequence[RemotePlace | None]) -> None:
    """Raises UsageError for two sources that would be one file: all sources of a command go to one target.

    `places`: where the sources are on nodes; None for those that are here. What comes from several nodes goes into a
    folder for each of them.
    """
    named: dict[tuple[str, str], str] = {}
    for source, place in zip(sources, places, strict=True):
        name = posixpath.basename(source if place is None else place.path)
        for folder in [""] if place is None or len(place.nodes) == 1 else [node.name for node in place.nodes]:
            if (folder, name) in named:
                both = f"{named[folder, name]} and {source}"
                raise UsageError(f"{both} would be one file at the target: copy them one after the other", hint=HINT)
            named[folder, name] = source


def _node_file(place: RemotePlace, inventory: Inventory) -> NodeFile:
    if not has_node_logins(inventory):
        remedy = "copy the file to this computer first, then from here"
        raise UsageError(f"machines of --inventory may not let each other in: {remedy}", hint=HINT)
    if len(place.nodes) != 1:
        message = f"{place.path} of {len(place.nodes)} nodes would be one file there: name the one node to copy from"
        raise UsageError(message, hint=HINT)
    (node,) = place.nodes
    _refuse_folder(node, place.path)
    return NodeFile(node=node, path=place.path)


def _download(node: InventoryNode, path: str, target: Path, *, is_folder: bool, alone: bool) -> Download:
    _refuse_folder(node, path)
    # From several nodes, each file goes into its node's folder, since all have the same name.
    local = target if alone else target / node.name
    return Download(node=node, local=local, remote=path, is_into_folder=is_folder or not alone)


def _refuse_folder(node: InventoryNode, path: str) -> None:
    if not PurePosixPath(path).name or path.endswith("/"):
        raise UsageError(f"{node.name}:{path} names no file", hint=HINT)
