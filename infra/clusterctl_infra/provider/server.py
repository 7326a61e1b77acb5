"""The plugin executable `pulumi-resource-clusterctl`: the engine's calls, handed to our resource kinds."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import grpc
from google.protobuf import empty_pb2

from clusterctl_infra.errors import UsageError
from clusterctl_infra.home_path import home_path
from clusterctl_infra.names import IDENTITY_TYPE, INVENTORY_TYPE, MEMBERSHIP_TYPE
from clusterctl_infra.private_home import secure_home
from clusterctl_infra.provider.grpc_skeleton import EngineLog, Plugin, refuse, run_as_process
from clusterctl_infra.provider.identity_resource import IdentityResource
from clusterctl_infra.provider.inventory_resource import InventoryResource
from clusterctl_infra.provider.local_home import LocalHome
from clusterctl_infra.provider.membership_resource import MembershipResource
from clusterctl_infra.provider.messages import provider_pb2
from clusterctl_infra.provider.property_values import from_struct, reveal, to_struct
from clusterctl_infra.provider.resource import OwnResource, Place, ResourceRefused
from clusterctl_infra.version import VERSION


def main() -> NoReturn:
    """Serves the engine until it is gone."""
    run_as_process(_make_plugin)


class ClusterctlPlugin(Plugin):
    """Identity, Membership and Inventory over gRPC."""

    def __init__(self, *, log: EngineLog, kinds: Mapping[str, OwnResource]) -> None:
        super().__init__(version=VERSION, log=log)
        self._kinds = kinds

    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        kind = self._kind(request.urn, context)
        with _refusals_as_messages(request.urn, context):
            failures = kind.check(reveal(from_struct(request.news)))
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[provider_pb2.CheckFailure(property=row.property, reason=row.reason) for row in failures],
        )

    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        kind = self._kind(request.urn, context)
        with _refusals_as_messages(request.urn, context):
            difference = kind.difference(
                reveal(from_struct(request.olds)),
                reveal(from_struct(request.old_inputs)),
                reveal(from_struct(request.news)),
            )
        is_changed = bool(difference.changed)
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if is_changed else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=difference.changed,
            replaces=difference.replaced,
        )

    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        kind = self._kind(request.urn, context)
        with _refusals_as_messages(request.urn, context):
            id, outputs = kind.create(
                reveal(from_struct(request.properties)), _place(request.urn, preview=request.preview)
            )
        return provider_pb2.CreateResponse(id=id, properties=to_struct(outputs))

    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        kind = self._kind(request.urn, context)
        with _refusals_as_messages(request.urn, context):
            outputs = kind.update(
                reveal(from_struct(request.olds)),
                reveal(from_struct(request.news)),
                _place(request.urn, preview=request.preview),
            )
        return provider_pb2.UpdateResponse(properties=to_struct(outputs))

    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """Returns the state unchanged, because nothing else knows our resources; Diff notices a lost file."""
        if not request.properties.fields:
            refuse(context, f"{request.id}: a cluster's own resources live in its stack only, they cannot be imported")
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        kind = self._kind(request.urn, context)
        with _refusals_as_messages(request.urn, context):
            kind.delete(reveal(from_struct(request.properties)), _place(request.urn))
        return empty_pb2.Empty()

    def _kind(self, urn: str, context: grpc.ServicerContext) -> OwnResource:
        token = urn.split("::")[2].rpartition("$")[2]
        if token not in self._kinds:
            refuse(context, f"clusterctl has no resource {token}; it has {', '.join(sorted(self._kinds))}")
        return self._kinds[token]


def _make_plugin(log: EngineLog) -> Plugin:
    try:
        changed = secure_home(os.environ)
    except UsageError as e:
        raise SystemExit(f"clusterctl: {e.message}; next: {e.hint}") from e
    if changed is not None:
        print(changed, file=sys.stderr)
    home = LocalHome(root=home_path(os.environ))
    kinds: dict[str, OwnResource] = {
        IDENTITY_TYPE: IdentityResource(home=home, environ=os.environ, now=_now),
        MEMBERSHIP_TYPE: MembershipResource(home=home, now=_now),
        INVENTORY_TYPE: InventoryResource(home=home, environ=os.environ, working_dir=Path.cwd()),
    }
    return ClusterctlPlugin(log=log, kinds=kinds)


@contextlib.contextmanager
def _refusals_as_messages(urn: str, context: grpc.ServicerContext) -> Iterator[None]:
    """Turns a refusal, or a state or an input that cannot be read, into a sentence for the person.

    Otherwise the engine would show the person a traceback as an error of its own.
    """
    try:
        yield
    except (ResourceRefused, OSError) as e:
        refuse(context, str(e))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as e:
        refuse(context, f"{urn}: its state or its inputs cannot be read: {type(e).__name__}: {e}")


def _place(urn: str, *, preview: bool = False) -> Place:
    """The place in a URN such as `urn:pulumi:<stack>::<project>::<types>::<name>`."""
    return Place(stack_name=urn.split("::")[0].removeprefix("urn:pulumi:"), preview=preview)


def _now() -> datetime:
    return datetime.now(UTC)
