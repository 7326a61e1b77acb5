"""The region: creates, changes and ends resources as AWS would."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable
from datetime import datetime

from clusterctl_infra.catalog.reader import Catalog

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.capacity import CAPACITY_RESERVATION
from clusterctl_rehearsal.region.existing import add_existing, is_existing
from clusterctl_rehearsal.region.instances import Instances
from clusterctl_rehearsal.region.placement import place
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.settings import Settings
from clusterctl_rehearsal.region.shares import Shares
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.strictness import check_fabric
from clusterctl_rehearsal.region.types.launch import NOT_A_NEW_VERSION
from clusterctl_rehearsal.region.types.network import INSTANCE, SECURITY_GROUP
from clusterctl_rehearsal.region.types.row import Request, ResourceType
from clusterctl_rehearsal.region.types.table import TYPES, resource_type
from clusterctl_rehearsal.region.types.tags import check_tags

POLL_S = 0.2
BLOCK_MARGIN_S = 1800.0
Progress = Callable[[str], None]


class Region:
    """All resources and the one lock around them; settings are read for each request."""

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        settings: Callable[[], Settings],
        instances: Instances,
        shares: Shares,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.settings = settings
        self.instances = instances
        self.shares = shares
        self.clock = clock
        self._pause = pause
        self.lock: threading.RLock = instances.lock

    def create(
        self,
        token: str,
        inputs: Properties,
        *,
        region: str,
        request: str,
        machines: str,
        progress: Progress,
        waits: bool = True,
    ) -> Record:
        """Makes a resource and returns it: an instance once its machine has been started, a file system once it is
        available (without `waits`, at once).

        A repeated `request` (client token) gives what the first one made. Raises AwsError, StandInRefusal.
        """
        row = resource_type(token)
        with self.lock:
            made = next((old for old in self.store.live(token) if request and old.request == request), None)
            if made is None:
                asked = self._request(row, row.new_id({**row.defaults, **inputs}, region), inputs, region)
                self._check(row, asked)
                made = self.store.put(self._new(row, asked, request=request, machines=machines))
        if token == INSTANCE:
            return self.instances.start(made, progress)
        return self._available(row, made, progress) if row.is_file_system and waits else made

    def update(self, token: str, id: str, inputs: Properties) -> Record:
        """The changed resource. Raises AwsError, StandInRefusal."""
        row = resource_type(token)
        with self.lock:
            old = self._live(row, id)
            asked = dataclasses.replace(self._request(row, id, inputs, old.region), old=old)
            self._check(row, asked)
            if token == INSTANCE:
                return self.store.put(self.instances.changed(old, asked))
            kept = {key: value for key, value in old.outputs.items() if key not in old.inputs}
            outputs = {**kept, **asked.inputs, **_tags(row, asked.inputs)}
            record = dataclasses.replace(old, inputs=asked.inputs, outputs=outputs, refs=_refs(row, asked.inputs))
            return self.store.put(_versioned(record, old) if "versions" in old.facts else record)

    def read(self, token: str, id: str) -> Properties | None:
        """The resource's outputs; None when it is gone, as a terminated instance is for the provider."""
        row = resource_type(token)
        with self.lock:
            record = self.store.get(row.token, id)
            if record is None or not record.is_live:
                return None
            return self.instances.outputs(record) if token == INSTANCE else record.outputs

    def inputs(self, token: str, id: str) -> Properties:
        """The resource's present inputs; empty when it is gone."""
        with self.lock:
            record = self.store.get(resource_type(token).token, id)
            return {} if record is None or not record.is_live else record.inputs

    def delete(self, token: str, id: str) -> None:
        """Ends the resource; returns once an instance's machine is gone. Raises AwsError."""
        row = TYPES[token]
        with self.lock:
            record = self._live(row, id)
            if token != INSTANCE:
                self._check_unused(row, record)
                if "mainRouteTableId" in record.outputs:
                    self.instances.end_network(record)
                if token == SECURITY_GROUP:
                    self.instances.leave_network(record)
                self._forget(record)
                return
        self.instances.terminate(record)

    def add_existing(self) -> None:
        """Adds the resources that the account has before any cluster, from the settings."""
        with self.lock:
            add_existing(self.store, self.settings().existing, now=self.clock())

    def expire(self) -> None:
        """Ends reservations whose end date has passed, and activates those whose start has come.

        Their instances run on, as on AWS; but those of a capacity block end half an hour before the block
        (EC2 User Guide, "Monitor Capacity Blocks"; 2026-11).
        """
        now = self.clock()
        for row in list(self.store.live(CAPACITY_RESERVATION)):
            if row.facts.get("is_block") and now >= _end_of(row) - BLOCK_MARGIN_S:
                for instance in self._in_reservation(row.id):
                    self.instances.terminate(instance)
        with self.lock:
            for row in list(self.store.live(CAPACITY_RESERVATION)):
                if now >= _end_of(row):
                    is_shown = is_existing(row) or row.facts.get("is_block")
                    self.store.put(row.changed(state="expired")) if is_shown else self.store.forget(row)
                elif row.state == "scheduled" and now >= row.facts["starts_at"]:
                    self.store.put(row.changed(state="active"))

    def _in_reservation(self, id: str) -> list[Record]:
        return [row for row in self.store.live(INSTANCE) if row.facts.get("reservation") == id]

    def _new(self, row: ResourceType, asked: Request, *, request: str, machines: str) -> Record:
        if row.token == INSTANCE:
            placed = place(asked, token=request, machines=machines)
            if asked.settings.strict:
                check_fabric(self.store, placed)
            return placed
        made = _new_record(row, asked, request)
        if not row.is_file_system:
            return made
        self.shares.make(made.id)
        return made.changed(available_at=asked.now + asked.settings.storage_s)

    def _available(self, row: ResourceType, made: Record, progress: Progress) -> Record:
        """Waits until a new file system is available, and returns it. Raises AwsError if it is deleted meanwhile."""
        while self.clock() < float(made.facts["available_at"]):
            progress(f"{made.id} is being created (simulated; on AWS it takes minutes)")
            self._pause(POLL_S)
            self._live(row, made.id)
        return made

    def _request(self, row: ResourceType, id: str, inputs: Properties, region: str) -> Request:
        return Request(
            id=id,
            region=region,
            inputs={**row.defaults, **{key: value for key, value in inputs.items() if value is not None}},
            store=self.store,
            settings=self.settings(),
            catalog=self.catalog,
            now=self.clock(),
        )

    def _check(self, row: ResourceType, request: Request) -> None:
        for key, token in row.needs.items():
            for wanted in _ids(request.inputs.get(key)):
                found = self.store.get(token, wanted)
                if found is None or not found.is_live:
                    raise _not_found(TYPES[token], wanted)
        if row.unique is not None:
            self._check_unique(row, request)
        if row.taggable:
            check_tags(row.service, request.inputs.get("tags") or {})
        row.check(request)

    def _check_unique(self, row: ResourceType, request: Request) -> None:
        assert row.unique is not None
        keys, code, sentence = row.unique
        wanted = [request.inputs.get(key) for key in keys]
        for other in self.store.live(row.token):
            same_place = other.region == request.region and other.id != (request.old.id if request.old else None)
            if same_place and [other.inputs.get(key) for key in keys] == wanted:
                raise AwsError(code, sentence.format(**{"id": request.id, **request.inputs}))

    def _check_unused(self, row: ResourceType, record: Record) -> None:
        for other in (resource for token in row.blocked_by for resource in self.store.live(token)):
            part_of = TYPES[other.token].part_of
            is_part = part_of is not None and other.inputs.get(part_of) == record.id
            if record.id in other.refs and not is_part:
                code, sentence = row.blocked
                raise AwsError(code, sentence.format(kind=row.kind, id=record.id))

    def _forget(self, record: Record) -> None:
        for part in (kind for kind in TYPES.values() if kind.part_of is not None):
            for other in list(self.store.live(part.token)):
                if other.inputs.get(part.part_of or "") == record.id:
                    self.store.forget(other)
        self.store.forget(record)
        if TYPES[record.token].is_file_system:
            self.shares.remove(record.id)

    def _live(self, row: ResourceType, id: str) -> Record:
        record = self.store.get(row.token, id)
        if record is None or not record.is_live:
            raise _not_found(row, id)
        return record


def _end_of(row: Record) -> float:
    date = row.inputs.get("endDate")
    return datetime.fromisoformat(date).timestamp() if date else math.inf


def _new_record(row: ResourceType, request: Request, client_token: str) -> Record:
    inputs = request.inputs
    outputs = {**row.outputs(request), **inputs, **_tags(row, inputs), "region": request.region}
    facts = {"versions": {"1": inputs}} if "latestVersion" in outputs else {}
    return Record(
        id=request.id,
        token=row.token,
        region=request.region,
        inputs=inputs,
        outputs=outputs,
        refs=_refs(row, inputs),
        facts=facts,
        created_at=request.now,
        request=client_token,
    )


def _versioned(record: Record, old: Record) -> Record:
    keys = {*record.inputs, *old.inputs} - set(NOT_A_NEW_VERSION)
    latest = int(old.outputs["latestVersion"])
    versions = dict(old.facts["versions"])
    if any(record.inputs.get(key) != old.inputs.get(key) for key in keys):
        latest += 1
        versions[str(latest)] = record.inputs
    default = record.inputs.get("defaultVersion") or old.outputs["defaultVersion"]
    if record.inputs.get("updateDefaultVersion"):
        default = latest
    outputs = {**record.outputs, "latestVersion": latest, "defaultVersion": default}
    return dataclasses.replace(record, outputs=outputs).changed(versions=versions)


def _tags(row: ResourceType, inputs: Properties) -> Properties:
    return {"tagsAll": inputs.get("tags") or {}} if row.taggable else {}


def _refs(row: ResourceType, inputs: Properties) -> tuple[str, ...]:
    return tuple(id for key in row.needs for id in _ids(inputs.get(key)))


def _ids(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [] if value in (None, "") else [str(value)]


def _not_found(row: ResourceType, id: str) -> AwsError:
    return AwsError(
        row.not_found, f"The {row.kind} ID '{id}' does not exist", status=404 if row.service == "IAM" else 400
    )
