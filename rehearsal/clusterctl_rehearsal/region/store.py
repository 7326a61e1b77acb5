"""All resources of the region, in memory and on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from clusterctl_infra.private_home import make_private_folder

from clusterctl_rehearsal.put_in_place import put_in_place
from clusterctl_rehearsal.region.journal import BILL_FILE, Journal
from clusterctl_rehearsal.region.record import Record, record_from_json, record_to_json


class Store:
    """One file per resource, each replaced whole, so that SIGKILL at any point leaves a readable store.

    The caller serialises writers; readers get copies of lists.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self.journal = Journal(folder.parent / BILL_FILE)
        self._by_token: dict[str, dict[str, Record]] = {}
        make_private_folder(folder)
        found = [record for path in folder.glob("*.json") if (record := _read(path)) is not None]
        for record in sorted(found, key=lambda record: record.created_at):
            self._by_token.setdefault(record.token, {})[record.id] = record

    def get(self, token: str, id: str) -> Record | None:
        """The record of a resource, which may have ended; None if there is no record."""
        return self._by_token.get(token, {}).get(id)

    def put(self, record: Record) -> Record:
        """Stores the record, and returns it."""
        self.journal.follow(self.get(record.token, record.id), record, at=self._clock())
        put_in_place(self._path(record), json.dumps(record_to_json(record)))
        self._by_token.setdefault(record.token, {})[record.id] = record
        return record

    def forget(self, record: Record) -> None:
        """Removes the record."""
        self.journal.follow(self.get(record.token, record.id), None, at=self._clock())
        self._path(record).unlink(missing_ok=True)
        self._by_token.get(record.token, {}).pop(record.id, None)

    def all(self, token: str | None = None) -> list[Record]:
        """Every record of a type (or of all), oldest first within a type."""
        if token is not None:
            return list(self._by_token.get(token, {}).values())
        return [record for rows in list(self._by_token.values()) for record in list(rows.values())]

    def live(self, token: str | None = None) -> Iterator[Record]:
        """Every resource of a type (or of all) that exists."""
        return (row for row in self.all(token) if row.is_live)

    def find(self, id: str) -> Record | None:
        """The live resource with that id, of any type."""
        return next((rows[id] for rows in list(self._by_token.values()) if id in rows and rows[id].is_live), None)

    def _path(self, record: Record) -> Path:
        kind = record.token.rpartition(":")[2]
        return self._folder / f"{kind}.{quote(record.id, safe='')}.json"


def _read(path: Path) -> Record | None:
    """The record in a file; None if another process removes the file meanwhile."""
    try:
        return record_from_json(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
