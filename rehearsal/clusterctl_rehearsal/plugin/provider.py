"""The provider that answers the engine as `aws`: every call goes to the region."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any  # property values

import grpc
from clusterctl_infra.provider.grpc_skeleton import EngineLog, Plugin, refuse
from clusterctl_infra.provider.messages import provider_pb2
from clusterctl_infra.provider.property_values import UNKNOWN, from_struct, to_struct
from google.protobuf import empty_pb2

from clusterctl_rehearsal.plugin.difference import difference, refreshed
from clusterctl_rehearsal.plugin.errors import provider_error
from clusterctl_rehearsal.plugin.stack_settings import StackContext
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.client import RegionClient, RegionUnreachable
from clusterctl_rehearsal.region.record import ACCOUNT_ID
from clusterctl_rehearsal.region.settings import SettingsError
from clusterctl_rehearsal.region.types.launch import NOT_A_NEW_VERSION
from clusterctl_rehearsal.region.types.row import ResourceType
from clusterctl_rehearsal.region.types.table import resource_type


def _allowed_accounts(value: object) -> Sequence[str]:
    """The account ids in a provider's argument, which is a list or its JSON."""
    listed = json.loads(value) if isinstance(value, str) else value
    return [str(each) for each in listed] if isinstance(listed, list) else []


THROTTLED = ("RequestLimitExceeded", "Throttling")
MAX_WAIT_S = 20.0
ATTEMPTS = 25
"""The provider's `max_retries` default."""
_Diff = provider_pb2.DiffResponse


class RehearsalProvider(Plugin):
    """Answers the engine as `aws`. Secrets are left to the engine: it marks every output whose input was secret."""

    def __init__(
        self,
        *,
        log: EngineLog,
        client: RegionClient,
        context: StackContext,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(version=version("pulumi-aws"), log=log)
        self._pause = pause
        self._client = client
        self._stack = context
        self._region = ""

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=False)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        region = dict(request.variables).get("aws:config:region") or from_struct(request.args).get("region")
        self._region = str(region or self._stack.default_region or "")
        if not self._region:
            refuse(
                context, "Invalid provider configuration: missing region; next: pulumi config set aws:region us-west-2"
            )
        allowed = _allowed_accounts(from_struct(request.args).get("allowedAccountIds"))
        if allowed and ACCOUNT_ID not in allowed:  # terraform-provider-aws 6, internal/conns/config.go
            refuse(context, f"AWS account ID not allowed: {ACCOUNT_ID}")
        with _refusals(context):
            self._stack.prove()
            self._client.ask("settings", {"settings": self._stack.settings()})
        return provider_pb2.ConfigureResponse(acceptSecrets=False, supportsPreview=True)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Another region is another provider; its other settings change in place (pulumi-aws 7)."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        return provider_pb2.DiffResponse(
            changes=_Diff.DIFF_SOME if changed else _Diff.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key == "region"],
        )

    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        row = self._row(request.urn, context)
        inputs, olds = from_struct(request.news), from_struct(request.olds)
        if row.name is not None and inputs.get(row.name) is None and inputs.get(f"{row.name}Prefix") is None:
            logical = request.urn.rpartition("::")[2]
            inputs[row.name] = olds.get(row.name) or f"{logical}-{secrets.token_hex(4)[:7]}"
        for key, value in row.defaults.items():
            inputs.setdefault(key, value)
        inputs.setdefault("region", self._region)
        return provider_pb2.CheckResponse(inputs=to_struct(inputs))

    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        row = self._row(request.urn, context)
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        found = difference(row, old, new)
        return provider_pb2.DiffResponse(
            changes=_Diff.DIFF_SOME if found.changed else _Diff.DIFF_NONE,
            diffs=found.changed,
            replaces=[key.partition(".")[0] for key in found.replacing],
            deleteBeforeReplace=found.delete_first,
        )

    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        row, inputs = self._row(request.urn, context), from_struct(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=to_struct(inputs))
        asked = {
            "type": row.token,
            "inputs": inputs,
            "region": inputs.get("region") or self._region,
            "request": uuid.uuid4().hex,
            "machines": self._stack.machines,
        }
        answer = self._ask(context, "create", asked, row, "creating", row.create, request.urn)
        return provider_pb2.CreateResponse(
            id=answer["id"], properties=to_struct({**answer["outputs"], "id": answer["id"]})
        )

    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        row = self._row(request.urn, context)
        answer = self._ask(
            context, "read", {"type": row.token, "id": request.id}, row, "reading", row.create, request.urn
        )
        outputs = answer["outputs"]
        if outputs is None:
            return provider_pb2.ReadResponse(id="")
        known = from_struct(request.inputs)
        imported = {key: outputs[key] for key in outputs if key in row.replace}
        inputs = refreshed(known, answer["inputs"]) if known else imported
        return provider_pb2.ReadResponse(
            id=request.id, properties=to_struct({**outputs, "id": request.id}), inputs=to_struct(inputs)
        )

    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        row, new = self._row(request.urn, context), from_struct(request.news)
        if request.preview:
            old_inputs, old = from_struct(request.old_inputs), from_struct(request.olds)
            kept = {key: value for key, value in old.items() if key not in old_inputs}
            unknown = {key: UNKNOWN for key in row.computed_on_change if _is_new_version(row, old_inputs, new)}
            return provider_pb2.UpdateResponse(properties=to_struct({**kept, **new, **unknown}))
        asked = {"type": row.token, "id": request.id, "inputs": new}
        answer = self._ask(context, "update", asked, row, "updating", _modify(row), request.urn)
        return provider_pb2.UpdateResponse(properties=to_struct({**answer["outputs"], "id": request.id}))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        row = self._row(request.urn, context)
        asked = {"type": row.token, "id": request.id}
        try:
            self._ask_with_retries("delete", asked, request.urn)
        except AwsError as e:
            if e.code != row.not_found:  # a resource that is gone need not be deleted
                refuse(context, provider_error("deleting", row, row.delete, e))
        except (StandInRefusal, RegionUnreachable) as e:
            refuse(context, str(e))
        return empty_pb2.Empty()

    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        args = from_struct(request.args)
        with _refusals(context):
            asked = {"type": request.tok, "args": args, "region": args.get("region") or self._region}
            answer = self._client.ask("look-up", asked)
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(answer["outputs"]))  # `return` is a keyword of Python
        return response

    def _row(self, urn: str, context: grpc.ServicerContext) -> ResourceType:
        with _refusals(context):
            return resource_type(urn.split("::")[2].rpartition("$")[2])

    def _ask(
        self,
        context: grpc.ServicerContext,
        verb: str,
        asked: dict[str, Any],
        row: ResourceType,
        doing: str,
        operation: str,
        urn: str,
    ) -> dict[str, Any]:
        try:
            return self._ask_with_retries(verb, asked, urn)
        except AwsError as e:
            refuse(context, provider_error(doing, row, operation, e))
        except (StandInRefusal, RegionUnreachable) as e:
            refuse(context, str(e))

    def _ask_with_retries(self, verb: str, asked: dict[str, Any], urn: str) -> dict[str, Any]:
        """The answer; asks again while AWS throttles, as the provider does."""
        for attempt in range(ATTEMPTS):
            try:
                return self._client.ask(verb, asked, lambda message: self.log.say(urn, message, ephemeral=True))
            except AwsError as e:
                if e.code not in THROTTLED or attempt == ATTEMPTS - 1 or self.cancelled.is_set():
                    raise
                self._pause(min(MAX_WAIT_S, 0.1 * 2**attempt) * (0.5 + secrets.randbelow(500) / 1000))
        raise AssertionError("unreachable")


@contextlib.contextmanager
def _refusals(context: grpc.ServicerContext) -> Iterator[None]:
    """Ends the call with the region's message if the region refuses."""
    try:
        yield
    except (AwsError, StandInRefusal, RegionUnreachable, SettingsError) as e:
        refuse(context, str(e))


def _is_new_version(row: ResourceType, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return any(key not in NOT_A_NEW_VERSION for key in difference(row, old, new).changed)


def _modify(row: ResourceType) -> str:
    return "CreateLaunchTemplateVersion" if row.computed_on_change else row.create.replace("Create", "Modify")
