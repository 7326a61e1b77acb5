"""Clients that answer from a table of things, so that deleting can be watched without AWS."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from botocore.exceptions import ClientError
from clusterctl.cloud.resource import CloudResource, ResourceType

from tests.unit.cli.cloud.fake_clients import FakeClients

PATIENCE_S = 20.0


@dataclass
class FakeRegion:
    """Things by id; `holds`: a thing's id → the id of the thing that must go before it."""

    things: dict[str, CloudResource] = field(default_factory=dict)
    holds: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """AWS's code for what it never ends."""
    late: list[CloudResource] = field(default_factory=list)
    """What appears after the next look: a killed engine had asked for it."""
    ended: list[str] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)
    """AWS's code for a kind that it does not tell of."""

    def kind(self, name: str, *, is_data: bool = False, is_guard: bool = False) -> ResourceType:
        """A row of the table of kinds."""
        return ResourceType(
            name=name,
            types=(f"test:{name}",),
            find=lambda clients, cluster_id: self._find(name),
            delete=lambda clients, found: self._delete(found),
            bills=None,
            is_data=is_data,
            is_guard=is_guard,
        )

    def _find(self, name: str) -> Iterable[CloudResource]:
        if name in self.silent:
            raise ClientError({"Error": {"Code": self.silent[name], "Message": "no"}}, "Describe")
        rows = [resource for resource in self.things.values() if resource.kind == name]
        arrived = [resource for resource in self.late if resource.kind == name]
        self.late = [resource for resource in self.late if resource.kind != name]
        self.things.update({resource.id: resource for resource in arrived})
        return rows

    def _delete(self, found: CloudResource) -> None:
        if found.id in self.refused:
            raise ClientError({"Error": {"Code": self.refused[found.id], "Message": "no"}}, "Delete")
        if self.holds.get(found.id) in self.things:
            raise ClientError({"Error": {"Code": "DependencyViolation", "Message": "in use"}}, "Delete")
        if found.id not in self.things:
            raise ClientError({"Error": {"Code": "InvalidThing.NotFound", "Message": "gone"}}, "Delete")
        del self.things[found.id]
        self.ended.append(found.id)


class NoClients(FakeClients):
    """Clients that nobody may use."""

    def __init__(self, region: str = "us-west-2") -> None:
        super().__init__(region=region)


class Waiting(NoClients):
    """Clients of a person whose credentials come from a program that does not answer."""

    def __init__(self, region: str, over: threading.Event) -> None:
        super().__init__(region)
        self.over = over

    def warm_up(self) -> None:
        self.over.wait(PATIENCE_S)


def thing(id: str, kind: str = "instance", **more: object) -> CloudResource:
    """One thing of a cluster."""
    return CloudResource(kind=kind, id=id, **more)  # type: ignore[arg-type]
