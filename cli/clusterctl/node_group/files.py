"""Files to and from a group's nodes: Fabric's arguments and results, and the copying of `clusterctl cp`."""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any  # Any: Fabric has no types of its own

from clusterctl_infra.errors import UsageError
from fabric.transfer import Result

from clusterctl.copying.copies import carry_out, copy_error
from clusterctl.copying.place import Download, Transfer, Upload
from clusterctl.node_group.connection import SlotConnection
from clusterctl.output import Output

Outcome = tuple[SlotConnection, Any]
"""A connection, and Fabric's Result of the copy or the exception in its place."""
TO_EACH = "{host}/"
"""Fabric's place for files from several nodes: a folder for each."""
CHUNK = 1024 * 1024
"""Bytes or characters, whichever the file object has."""


def put_on_all(
    connections: Sequence[SlotConnection], local: str | os.PathLike[str] | IO[Any], remote: str | None
) -> list[Outcome]:
    """A file, or what a file object has, on every node. Raises UsageError, ValueError before anything is sent."""
    with _as_file(local, remote) as source:
        uploads = [
            Upload(
                source=source,
                node=connection.node,
                remote=remote or ".",
                is_into_folder=not remote or remote.endswith("/"),
            )
            for connection in connections
        ]
        here = os.path.abspath(source) if isinstance(local, str | os.PathLike) else local

        def result(connection: SlotConnection, path: str) -> Result:
            return Result(local=here, orig_local=local, remote=path, orig_remote=remote, connection=connection)

        return _copied(connections, uploads, result)


def get_from_all(connections: Sequence[SlotConnection], remote: str, local: str | None) -> list[Outcome]:
    """A file of every node, here. Raises UsageError, ValueError before anything is fetched."""
    if not remote or not posixpath.basename(remote):
        raise ValueError(f"get({remote!r}): a file on the nodes is needed")
    if local is not None and not isinstance(local, str | os.PathLike):
        raise UsageError("get(local=…) on a group of nodes: a file object would take the files of all nodes as one")
    places = [_interpolated(os.fspath(local or "{basename}"), remote, connection) for connection in connections]
    if len(set(places)) < len(places):
        told = f"get(local={str(local)!r}) on {len(places)} nodes names one place for several of them"
        raise UsageError(f"{told}: write {{name}} or {{host}} where their files are to differ")
    for place in places:
        Path(os.path.dirname(place) or ".").mkdir(parents=True, exist_ok=True)
    downloads = [
        Download(node=connection.node, remote=remote, local=Path(place), is_into_folder=place.endswith(os.sep))
        for connection, place in zip(connections, places, strict=True)
    ]

    def result(connection: SlotConnection, path: str) -> Result:
        here = os.path.abspath(path)
        return Result(local=here, orig_local=local, remote=remote, orig_remote=remote, connection=connection)

    return _copied(connections, downloads, result)


def _interpolated(local: str, remote: str, connection: SlotConnection) -> str:
    """Fabric's place holders, and the node's name and slot."""
    return local.format(
        host=connection.host,
        user=connection.user,
        port=connection.port,
        dirname=posixpath.dirname(remote),
        basename=posixpath.basename(remote),
        name=connection.node.name,
        slot=connection.node.slot,
    )


@contextlib.contextmanager
def _as_file(local: str | os.PathLike[str] | IO[Any], remote: str | None) -> Iterator[Path]:
    """The file to send; what a file object has, from its beginning, is written into one for as long as this takes."""
    if isinstance(local, str | os.PathLike):
        if not os.fspath(local):
            raise ValueError("put(''): a file is needed")
        yield Path(local)
        return
    own_name = os.path.basename(str(getattr(local, "name", "") or ""))
    name = own_name or posixpath.basename(remote or "")
    if not remote or not name:
        raise ValueError("put() of a file object needs the path of a file on the nodes")
    with tempfile.TemporaryDirectory(prefix="clusterctl-put-") as folder:
        path = Path(folder, name)
        _written(local, path)
        yield path


def _written(source: IO[Any], path: Path) -> None:
    """Writes all that a file object has to the file `path`, and leaves the object where it was."""
    pointer = source.tell()
    try:
        source.seek(0)
        with path.open("wb") as file:
            while chunk := source.read(CHUNK):
                file.write(chunk.encode() if isinstance(chunk, str) else chunk)
    finally:
        source.seek(pointer)


def _copied(
    connections: Sequence[SlotConnection], todo: Sequence[Transfer], result: Callable[[SlotConnection, str], Result]
) -> list[Outcome]:
    """Every copy's end; `result` makes Fabric's of where a file is now. Only the caller is told of the ends."""
    cluster = connections[0].cluster
    ends = carry_out(
        todo,
        cluster.inventory,
        keys=cluster.keys(tuple(connection.node for connection in connections)),
        deadlines=cluster.deadlines,
        output=Output(stdout=io.BytesIO(), stderr=io.BytesIO()),
    )
    by_slot = {end.transfer.node.slot: end for end in ends}
    outcomes: list[Outcome] = []
    for connection in connections:
        end = by_slot[connection.node.slot]
        arrival = end.arrival
        outcomes.append(
            (connection, copy_error(end, cluster.inventory) if arrival is None else result(connection, arrival.path))
        )
    return outcomes
