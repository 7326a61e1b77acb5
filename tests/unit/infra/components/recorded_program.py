"""A Pulumi program run without an engine, and what it asked the engine for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any  # resource properties

import pulumi
from clusterctl_infra.catalog.reader import Catalog
from clusterctl_infra.components.cluster import Cluster, ClusterArgs
from clusterctl_infra.config.stack import StackSettings
from clusterctl_infra.ledger import Ledger
from pulumi.runtime import mocks
from pulumi.runtime.proto import resource_pb2

from tests.unit.infra.plan.plan_cases import a_config

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SEED = bytes(range(32)).hex()
ACCOUNT_ID = "123456789012"
IMAGE_ID = "ami-0123456789abcdef0"
ZONES = ("us-west-2-lax-1a", "us-west-2c", "us-west-2b", "us-west-2-wl1-las-wlz-1")
"""The first is a Local Zone, the last a Wavelength Zone."""
SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d"
INSTANCE = "aws:ec2/instance:Instance"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
ELASTIC_IP = "aws:ec2/eip:Eip"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
EFS = "aws:efs/fileSystem:FileSystem"
BUCKET_LOOKUP = "aws:s3/getBucket:getBucket"
CONTEXT = copy_context()
"""The context variables that Pulumi keeps from program to program."""


@dataclass(frozen=True, kw_only=True)
class Registered:
    """One resource that the program asked for."""

    type: str
    name: str
    urn: str
    inputs: Mapping[str, Any]
    request: resource_pb2.RegisterResourceRequest


@dataclass(kw_only=True)
class Recording:
    """All resources that a program asked for, in its order, and what it exported."""

    resources: list[Registered] = field(default_factory=list)
    invokes: list[str] = field(default_factory=list)
    exported: Any = None
    """What the program returned."""

    def of_type(self, token: str) -> list[Registered]:
        """The resources of that type, sorted by name."""
        return sorted((row for row in self.resources if row.type == token), key=lambda row: row.name)

    def one(self, token: str, name: str | None = None) -> Registered:
        """The only resource of that type (and name)."""
        (found,) = [row for row in self.of_type(token) if name is None or row.name == name]
        return found


class Region(mocks.Mocks):
    """Answers as AWS and our own provider would, from the request alone."""

    def __init__(self, recording: Recording, failing: str) -> None:
        self._recording = recording
        self._failing = failing

    def call(self, args: mocks.MockCallArgs) -> Any:
        self._recording.invokes.append(args.token)
        if args.token == self._failing:
            raise LookupError(f"{args.token} found nothing")
        if args.token == BUCKET_LOOKUP:
            return {**args.args, "bucketRegion": "eu-west-1"}
        answers: dict[str, dict[str, Any]] = {
            "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": ACCOUNT_ID, "id": ACCOUNT_ID},
            "aws:ssm/getParameter:getParameter": {"insecureValue": IMAGE_ID, "value": IMAGE_ID},
            "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": {"locations": list(ZONES)},
        }
        return answers[args.token]

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        id = f"{args.name}-id"
        more: dict[str, dict[str, Any]] = {
            "clusterctl:index:Identity": {
                "cluster_id": "0123456789ab",
                "started_at": NOW.isoformat(),
                "image_id": args.inputs.get("image_candidate"),
                "zone": args.inputs.get("zone_candidate"),
                "seed": SEED,
            },
            "clusterctl:index:Membership": {"generation": 1, "ledger": []},
            LAUNCH_TEMPLATE: {"latestVersion": 1},
            INSTANCE: {"publicIp": f"{args.name}-public", "primaryNetworkInterfaceId": f"{args.name}-eni"},
            ELASTIC_IP: {"publicIp": f"{args.name}-elastic"},
            "aws:ec2/placementGroup:PlacementGroup": {"arn": f"{args.name}-arn"},
            "aws:iam/role:Role": {"arn": f"{args.name}-role-arn"},
            "aws:sfn/stateMachine:StateMachine": {"arn": f"{args.name}-machine-arn"},
            LUSTRE: {"dnsName": f"{args.name}.fsx", "mountName": "abcdefgh"},
            EFS: {"dnsName": f"{args.name}.efs"},
        }
        return id, {**args.inputs, **more.get(args.typ, {})}


class Monitor(mocks.MockMonitor):
    """Keeps each request whole: parents, dependencies and options are in it."""

    def __init__(self, region: Region, recording: Recording) -> None:
        super().__init__(region)
        self._recording = recording

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (gRPC names it)
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # Pulumi's has no types
        if request.type != "pulumi:pulumi:Stack":
            inputs = pulumi.runtime.rpc.deserialize_properties(request.object)
            self._recording.resources.append(
                Registered(type=request.type, name=request.name, urn=answer.urn, inputs=inputs, request=request)
            )
        return answer


def record(program: Callable[[], Any], recording: Recording | None = None, *, failing: str = "") -> Recording:
    """Runs the program to its end; raises what it raises, after which `recording` holds what it had asked for.

    `failing`: a call of AWS that fails.
    """
    recording = Recording() if recording is None else recording
    region = Region(recording, failing)

    def run() -> pulumi.Output[None]:
        return pulumi.Output.from_input(program()).apply(lambda value: setattr(recording, "exported", value))

    def run_to_its_end() -> None:
        asyncio.set_event_loop(event_loop())
        pulumi.runtime.set_mocks(region, project="project", stack="dev", monitor=Monitor(region, recording))
        mocks.test(run)()  # type: ignore[no-untyped-call]  # Pulumi's has no types

    # In its own thread: Pulumi records the call stack of each resource, and a test's would be full of pytest.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(CONTEXT.run, run_to_its_end).result()
    return recording


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """The loop that programs run in. Pulumi expects the thread to have one; whoever used asyncio before left none."""
    return asyncio.new_event_loop()


def cluster_program(
    *,
    down: bool = False,
    run: int = 1,
    ledger: Ledger | None = None,
    unreserved: bool = False,
    account: str | None = None,
    catalog: Catalog | None = None,
    **changes: Any,
) -> Callable[[], Any]:
    """A stack with one cluster, which exports its inventory."""
    kept = Ledger() if ledger is None else ledger
    settings = StackSettings(overrides={}, ledger=kept, down=down, run=run, unreserved=unreserved, account=account)
    config = a_config(**changes)

    def program() -> Any:
        cluster = Cluster(
            config.name, ClusterArgs(config=config, settings=settings, catalog=catalog, clock=lambda: NOW)
        )
        return cluster.inventory

    return program


def graph(recording: Recording) -> list[dict[str, Any]]:
    """What must not change by accident: types, names, parents, dependencies and options, sorted."""
    return sorted((_row(row) for row in recording.resources), key=lambda row: str(row["urn"]))


def _row(registered: Registered) -> dict[str, Any]:
    request = registered.request
    options = {
        "delete_before_replace": request.deleteBeforeReplace,
        "protect": request.protect,
        "ignore_changes": list(request.ignoreChanges),
        "secret_outputs": list(request.additionalSecretOutputs),
        "version": request.version if request.type.startswith("clusterctl:") else "",
        "replacement_trigger": request.replacement_trigger.string_value,
    }
    return {
        "urn": registered.urn,
        "parent": short(request.parent),
        "provider": request.provider.split("::")[-2] if request.provider else "",
        "dependencies": sorted({short(urn) for urn in request.dependencies}),
        "options": {key: value for key, value in options.items() if value},
    }


def short(urn: str) -> str:
    """`Type name` of a URN."""
    parts = urn.split("::")
    return f"{parts[2].rpartition(':')[2]} {parts[3]}" if len(parts) > 3 else ""


def as_text(rows: list[dict[str, Any]]) -> str:
    """The golden file's text."""
    return json.dumps(rows, indent=1, sort_keys=True) + "\n"
