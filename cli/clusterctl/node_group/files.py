"""Files to and from a group's nodes: with Fabric's arguments and results, copied as by `clusterctl cp`."""

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
"""(a connection, Fabric's Result of its copy or the exception in its place)."""
TO_EACH = "{host}/"
"""Where Fabric puts files from several nodes: each into a folder of its node."""
CHUNK = 1024 * 1024
"""How many bytes, or characters of a text, are read from a file object at a time."""


def put_on_all(
    connections: Sequence[SlotConnection], local: str | os.PathLike[str] | IO[Any], remote: str | None
) -> list[Outcome]:
    """Copies a file, or the content of a file object, to every node.

    Raises UsageError, ValueError before anything is sent.
    """
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
    """Copies a file from every node to this computer. Raises UsageError, ValueError before anything is fetched."""
    if not remote or not posixpath.basename(remote):
        raise ValueError(f"get({remote!r}): a file on the nodes is needed")
    if local is not None and not isinstance(local, str | os.PathLike):
        raise UsageError("get(local=…) on a group of nodes: a file object would take the files of all nodes as one")
    places = [_interpolated(os.fspath(local or "{basename}"), remote, connection) for connection in connections]
    if len(set(places)) < len(places):
        message = f"get(local={str(local)!r}) on {len(places)} nodes names one place for several of them"
        raise UsageError(f"{message}: write {{name}} or {{host}} where their files are to differ")
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
    """`local` with Fabric's placeholders filled in, and `{name}` and `{slot}` with the node's."""
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
    """The file to send. The content of a file object is written, from its beginning, to a file for the block's time."""
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
    """Makes all copies and returns how each ended; `result` makes Fabric's Result from the path of the arrived file.

    Nothing is printed.
    """
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
