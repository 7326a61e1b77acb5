"""Hands each AWS request to the handler of its service and operation; writes refusals as the service would."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # parameters and answers are JSON-like
from urllib.parse import parse_qs, parse_qsl

from clusterctl_rehearsal.api.call import Call, Handler
from clusterctl_rehearsal.api.cloudwatch import CLOUDWATCH
from clusterctl_rehearsal.api.ec2 import EC2
from clusterctl_rehearsal.api.file_systems import FSX, efs_route
from clusterctl_rehearsal.api.filters import check_page_size
from clusterctl_rehearsal.api.iam import IAM
from clusterctl_rehearsal.api.iam_make import MAKE_IDENTITIES
from clusterctl_rehearsal.api.json_services import SERVICE_QUOTAS, SSM, STS, TAGGING
from clusterctl_rehearsal.api.model import ServiceModel, form
from clusterctl_rehearsal.api.s3 import Buckets, S3Reply, refusal_of
from clusterctl_rehearsal.api.s3_request import S3Request
from clusterctl_rehearsal.api.scheduler import scheduler_route
from clusterctl_rehearsal.api.step_functions import step_functions
from clusterctl_rehearsal.full_disk import log_traceback, message_for_client
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.region import Region
from clusterctl_rehearsal.states.executions import Executions

_SCOPE = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
_QUERY_SERVICES: Mapping[str, Mapping[str, Handler]] = {"ec2": EC2, "iam": {**IAM, **MAKE_IDENTITIES}, "sts": STS}
_JSON_SERVICES: Mapping[str, Mapping[str, Handler]] = {
    "fsx": FSX,
    "monitoring": CLOUDWATCH,
    "servicequotas": SERVICE_QUOTAS,
    "ssm": SSM,
    "tagging": TAGGING,
}
_JSON_TYPE, _REST_TYPE = "application/x-amz-json-1.1", "application/json"
TAG_KEYS = "tagKeys"
"""The query parameter that may occur several times."""
_REST_SERVICES = {"elasticfilesystem": efs_route, "scheduler": scheduler_route}

_INCOMPLETE: Mapping[str, str] = {
    "ec2": "MissingParameter",
    "elasticfilesystem": "BadRequest",
    "fsx": "BadRequest",
    "iam": "ValidationError",
    "sts": "ValidationError",
}
"""The error code with which a service refuses a request that lacks a parameter: API references, "Common errors"."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: bytes
    content_type: str = "text/xml"
    headers: tuple[tuple[str, str], ...] = ()


class Api:
    """Answers requests that callers have authenticated: `RegionServer` by signature, `MetadataService` by address."""

    def __init__(self, *, region: Region, before: Callable[[], None], executions: Executions, buckets: Path) -> None:
        """`before`: is called before each request, and may refuse it. `buckets`: holds one folder for each bucket."""
        self._region = region
        self._before = before
        self._json_services = {**_JSON_SERVICES, "states": step_functions(executions)}
        self._buckets = Buckets(buckets, lambda: region.settings().buckets)
        self._models = {service: ServiceModel(service) for service in _QUERY_SERVICES}

    @property
    def clock_ahead_s(self) -> int:
        """By how many seconds the clock in its answers is ahead; negative: behind."""
        return self._region.settings().clock_ahead_s

    def warm_up(self) -> None:
        """Reads EC2's model, for which the first request would wait otherwise."""
        self._models["ec2"].knows("DescribeInstances")

    def answer(self, headers: Mapping[str, str], body: bytes, *, method: str = "POST", path: str = "/") -> Reply:
        """The answer to a request, or AWS's refusal of it; an error of ours becomes an internal error of AWS."""
        try:
            return self._answered(headers, body, method, path)
        except Exception as e:  # noqa: BLE001 — the boundary: the client gets an answer, the log the rest
            log_traceback()
            return self.refusal(headers, AwsError("InternalFailure", message_for_client(e), status=500))

    def problem_with(self, service: str, operation: str, parameters: Mapping[str, Any]) -> str | None:
        """Why an AWS SDK would not send this call of EC2, IAM or STS; None if it would."""
        model = self._models[service]
        if not model.knows(operation):
            return f"{service} has no operation {operation}"
        return model.problem_with(operation, parameters)

    def answer_in_process(
        self, service: str, operation: str, parameters: Mapping[str, Any], region_name: str
    ) -> dict[str, Any]:
        """The answer, as JSON, to a call of EC2, IAM or STS that this process makes. Raises AwsError."""
        model = self._models[service]
        try:
            return model.shown(operation, self._handled(service, operation, parameters, region_name))
        except AwsError:
            raise
        except Exception as e:  # the same boundary as for a request
            log_traceback()
            raise AwsError("InternalFailure", message_for_client(e), status=500) from e

    def _answered(self, headers: Mapping[str, str], body: bytes, method: str, path: str) -> Reply:
        scope = _SCOPE.search(headers.get("Authorization", ""))
        region_name, service = scope.groups() if scope else ("us-east-1", "sts")
        if service == "s3":
            return self._bucket(S3Request.read(method, path, headers, body, region_name))
        if service in _REST_SERVICES:
            return self._rest(service, method, path, region_name, body)
        if service in self._json_services:
            return self._json(service, region_name, headers, body)
        return self._query(service if service in self._models else "ec2", service, region_name, body)

    def refusal(self, headers: Mapping[str, str], error: AwsError) -> Reply:
        """The error as a reply, in the protocol of the service that the request was for."""
        service = _service(headers)
        if service == "s3":
            return _s3_reply(refusal_of(error, str(uuid.uuid4())))
        if service in _REST_SERVICES:
            return _rest_refusal(error)
        if service in self._json_services:
            return _json_refusal(error)
        return self._query_refusal(service if service in self._models else "ec2", error, str(uuid.uuid4()))

    def too_large(self, headers: Mapping[str, str]) -> Reply:
        """The refusal of a body that is too large to be read: S3's own error, or status 413 for other services."""
        if _service(headers) != "s3":
            return Reply(status=413, body=b"{}", content_type=_REST_TYPE)
        message = "Your proposed upload exceeds the maximum allowed object size."
        return self.refusal(headers, AwsError("EntityTooLarge", message))

    def _query(self, model_name: str, service: str, region_name: str, body: bytes) -> Reply:
        model, request_id = self._models[model_name], str(uuid.uuid4())
        try:
            params = form(body)
            operation = params.get("Action", "")
            if model_name != service or operation not in _QUERY_SERVICES[model_name]:
                raise _unknown(service, operation)
            result = self._handled(service, operation, model.parameters(operation, params), region_name)
            return Reply(status=200, body=model.answer(operation, result, request_id))
        except AwsError as e:
            return self._query_refusal(model_name, e, request_id)

    def _handled(self, service: str, operation: str, parameters: Mapping[str, Any], region_name: str) -> dict[str, Any]:
        """The handler's answer to a call of a service in `_QUERY_SERVICES`. Raises AwsError."""
        handler = _QUERY_SERVICES[service].get(operation)
        if handler is None:
            raise _unknown(service, operation)
        check_page_size(operation, parameters, self._models[service].bounds)
        return self._call(handler, operation, _Asked(parameters, service), region_name)

    def _query_refusal(self, model_name: str, error: AwsError, request_id: str) -> Reply:
        return Reply(status=error.status, body=self._models[model_name].error(error.code, error.message, request_id))

    def _json(self, service: str, region_name: str, headers: Mapping[str, str], body: bytes) -> Reply:
        operation = headers.get("X-Amz-Target", "").rpartition(".")[2]
        try:
            handler = self._json_services[service].get(operation)
            if handler is None:
                raise AwsError("UnknownOperationException", f"The stand-in does not know {service}:{operation} yet.")
            result = self._call(handler, operation, _Asked(_json_object(body), service), region_name)
            return Reply(status=200, body=json.dumps(result).encode(), content_type=_JSON_TYPE)
        except AwsError as e:
            return _json_refusal(e)

    def _rest(self, service: str, method: str, target: str, region_name: str, body: bytes) -> Reply:
        """The reply of a REST service: method and path choose the handler; path, query and body hold the parameters."""
        path, _, query = target.partition("?")
        try:
            route = _REST_SERVICES[service](method, path)
            if route is None:
                raise AwsError("BadRequest", f"The stand-in does not know {service}:{method} {path} yet.")
            handler, named = route
            lists = {name: values for name, values in parse_qs(query).items() if name == TAG_KEYS}
            asked = _Asked({**_json_object(body), **dict(parse_qsl(query)), **lists, **named}, service)
            result = self._call(handler, f"{method} {path}", asked, region_name)
            content = json.dumps(result).encode() if result else b""
            return Reply(status=200 if result else 204, body=content, content_type=_REST_TYPE)
        except AwsError as e:
            return _rest_refusal(e)

    def _bucket(self, request: S3Request) -> Reply:
        """S3's reply; every bucket is in whichever region the request is signed for."""
        try:
            self._before()
            return _s3_reply(self._buckets.answer(request))
        except AwsError as e:
            reply = refusal_of(e, str(uuid.uuid4()))
            return _s3_reply(replace(reply, body=b"") if request.method == "HEAD" else reply)

    def _call(self, handler: Handler, operation: str, params: dict[str, Any], region_name: str) -> dict[str, Any]:
        self._before()
        call = Call(operation=operation, parameters=params, region_name=region_name, region=self._region)
        try:
            with self._region.lock:
                return handler(call)
        except StandInRefusal as e:
            raise AwsError("UnsupportedOperation", str(e)) from e


def _unknown(service: str, operation: str) -> AwsError:
    return AwsError("InvalidAction", f"The stand-in does not know {service}:{operation} yet (AWS may).", status=400)


def _service(headers: Mapping[str, str]) -> str:
    """The service that a request is signed for."""
    scope = _SCOPE.search(headers.get("Authorization", ""))
    return scope[2] if scope else "sts"


class _Asked(dict[str, Any]):
    """A call's parameters. Reading one that was not given raises AWS's error for a missing parameter."""

    def __init__(self, given: Mapping[str, Any], service: str) -> None:
        super().__init__(given)
        self._service = service

    def __missing__(self, key: str) -> Any:
        code = _INCOMPLETE.get(self._service, "ValidationException")
        raise AwsError(code, f"The request must contain the parameter {key}")


def _json_object(body: bytes) -> dict[str, Any]:
    """The parameters in a body. Raises AwsError."""
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise AwsError("SerializationException", "The body of the request is not a JSON object")
    return found


def _s3_reply(reply: S3Reply) -> Reply:
    return Reply(status=reply.status, body=reply.body, content_type="application/xml", headers=reply.headers)


def _json_refusal(error: AwsError) -> Reply:
    body = json.dumps({"__type": error.code, "message": error.message}).encode()
    return Reply(status=error.status, body=body, content_type=_JSON_TYPE)


def _rest_refusal(error: AwsError) -> Reply:
    body = json.dumps({"Code": error.code, "Message": error.message}).encode()
    return Reply(status=error.status, body=body, content_type=_REST_TYPE)
