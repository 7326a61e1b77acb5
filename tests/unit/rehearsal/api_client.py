"""boto3's way to the region: requests by botocore's serialisers, answers by its parsers, no socket between."""

from __future__ import annotations

import re
from typing import Any, cast  # parameters and answers
from urllib.parse import urlencode

import botocore.session
from botocore import parsers, serialize
from botocore.awsrequest import HeadersDict
from botocore.model import Shape
from clusterctl_rehearsal.api.front import Api

from tests.unit.rehearsal.small_region import REGION, SmallRegion

SESSION = botocore.session.Session()
SIGNED_AS = {
    "resourcegroupstaggingapi": "tagging",
    "efs": "elasticfilesystem",
    "stepfunctions": "states",
    "cloudwatch": "monitoring",
    "service-quotas": "servicequotas",
}


class Client:
    """Calls operations; gives the parsed answer, or an error's code."""

    def __init__(self, world: SmallRegion) -> None:
        self._api = Api(region=world.region, before=lambda: None, executions=world.executions, buckets=world.buckets)

    def call(self, service: str, operation: str, region: str = REGION, **parameters: Any) -> Any:
        model = SESSION.get_service_model(service)
        shape = model.operation_model(operation)
        request = serialize.create_serializer(model.resolved_protocol).serialize_to_request(parameters, shape)
        body = request["body"] if isinstance(request["body"], (bytes, str)) else urlencode(request["body"])
        scope = f"Credential=x/20260101/{region}/{SIGNED_AS.get(service, service)}/aws4_request"
        headers = {**request["headers"], "Authorization": f"AWS4-HMAC-SHA256 {scope}"}
        query = urlencode(request["query_string"] or {}, doseq=True)
        mark = "&" if "?" in request["url_path"] else "?"
        reply = self._api.answer(
            headers,
            body if isinstance(body, bytes) else body.encode(),
            method=request["method"],
            path=f"{request['url_path']}{mark}{query}",
        )
        answer = {"status_code": reply.status, "headers": HeadersDict(reply.headers), "body": reply.body}
        parsed = parsers.create_parser(model.resolved_protocol).parse(answer, cast(Shape, shape.output_shape))
        return parsed["Error"]["Code"] if reply.status >= 300 else parsed

    def too_large(self, service: str) -> tuple[int, str | None]:
        """The status and the error code of the answer to a request with too large a body."""
        scope = f"Credential=x/20260101/{REGION}/{service}/aws4_request"
        reply = self._api.too_large({"Authorization": f"AWS4-HMAC-SHA256 {scope}"})
        found = re.search(r"<Code>(\w+)</Code>", reply.body.decode())
        return reply.status, None if found is None else found[1]

    def ec2(self, operation: str, **parameters: Any) -> Any:
        return self.call("ec2", operation, **parameters)
