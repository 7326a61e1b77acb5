"""A service's requests and answers, read and written by botocore's model of the service."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any  # models and requests are JSON-like
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from clusterctl_rehearsal.api import json_call
from clusterctl_rehearsal.refusal import AwsError

VERSIONS = {"ec2": "2016-11-15", "iam": "2010-05-08", "sts": "2011-06-15"}


class ServiceModel:
    """botocore's model of a service that speaks the EC2 or the query protocol; its file is read once, on first use."""

    def __init__(self, service: str) -> None:
        self.service = service

    @property
    def _model(self) -> Mapping[str, Any]:
        return _read_model(self.service)

    def knows(self, operation: str) -> bool:
        """Whether AWS has the operation."""
        return operation in self._model["operations"]

    def problem_with(self, operation: str, parameters: Mapping[str, Any]) -> str | None:
        """The error with which an AWS SDK refuses to send the parameters; None if it sends them."""
        return json_call.problem_with(self._model, operation, parameters)

    def shown(self, operation: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """An answer as JSON."""
        return json_call.shown(self._model, operation, result)

    def bounds(self, operation: str, parameter: str) -> tuple[int | None, int | None]:
        """The least and the greatest number that AWS takes for a parameter, as far as its model says so."""
        shape = self._model["operations"][operation].get("input")
        member = {} if shape is None else self._model["shapes"][shape["shape"]]["members"].get(parameter)
        found = {} if not member else self._model["shapes"][member["shape"]]
        return found.get("min"), found.get("max")

    def parameters(self, operation: str, params: Mapping[str, str]) -> dict[str, Any]:
        """The request's parameters under the names that boto3 uses. Raises AwsError for a bad number."""
        shape = self._model["operations"][operation].get("input")
        return {} if shape is None else dict(self._read(shape["shape"], "", params) or {})

    def answer(self, operation: str, result: Mapping[str, Any], request_id: str) -> bytes:
        """The XML of an answer."""
        output, space = self._model["operations"][operation].get("output"), self._model["metadata"]["xmlNamespace"]
        body = "" if output is None else self._members(output["shape"], result)
        if self.service == "ec2":
            inner = f"<requestId>{request_id}</requestId>{body}"
        else:
            wrapper = (output or {}).get("resultWrapper", f"{operation}Result")
            meta = f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
            inner = f"<{wrapper}>{body}</{wrapper}>{meta}"
        return f'<?xml version="1.0"?><{operation}Response xmlns="{space}">{inner}</{operation}Response>'.encode()

    def error(self, code: str, message: str, request_id: str) -> bytes:
        """The XML of a refusal."""
        fields = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        if self.service == "ec2":
            text = f"<Response><Errors><Error>{fields}</Error></Errors><RequestID>{request_id}</RequestID></Response>"
        else:
            error = f"<Error><Type>Sender</Type>{fields}</Error>"
            text = f"<ErrorResponse>{error}<RequestId>{request_id}</RequestId></ErrorResponse>"
        return text.encode()

    def _read(self, name: str, prefix: str, params: Mapping[str, str]) -> Any:
        shape = self._model["shapes"][name]
        if shape["type"] == "structure":
            found = {
                key: self._read(member["shape"], _joined(prefix, self._query_name(key, member)), params)
                for key, member in shape["members"].items()
            }
            return {key: value for key, value in found.items() if value is not None} or None
        if shape["type"] == "list":
            return self._read_list(shape, prefix, params)
        text = params.get(prefix)
        if text is None or shape["type"] not in ("boolean", "integer", "long"):
            return text
        return text == "true" if shape["type"] == "boolean" else self._number(prefix, text)

    def _number(self, name: str, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            code = "InvalidParameterValue" if self.service == "ec2" else "ValidationError"
            raise AwsError(code, f"Value ({text}) for parameter {name} is invalid: it is no integer") from None

    def _read_list(self, shape: Mapping[str, Any], prefix: str, params: Mapping[str, str]) -> list[Any] | None:
        place = prefix if self.service == "ec2" or shape.get("flattened") else f"{prefix}.member"
        items: list[Any] = []
        while any(key == f"{place}.{len(items) + 1}" or key.startswith(f"{place}.{len(items) + 1}.") for key in params):
            items.append(self._read(shape["member"]["shape"], f"{place}.{len(items) + 1}", params))
        return items or None

    def _query_name(self, key: str, member: Mapping[str, Any]) -> str:
        if self.service != "ec2":
            return str(member.get("locationName", key))
        if "queryName" in member:
            return str(member["queryName"])
        name = str(member.get("locationName", key))
        return name[0].upper() + name[1:]

    def _members(self, name: str, value: Mapping[str, Any]) -> str:
        shape = self._model["shapes"][name]
        return "".join(
            self._element(member.get("locationName", key), member["shape"], value[key])
            for key, member in shape["members"].items()
            if value.get(key) is not None
        )

    def _element(self, tag: str, name: str, value: Any) -> str:
        shape = self._model["shapes"][name]
        if shape["type"] == "structure":
            body = self._members(name, value)
        elif shape["type"] == "list":
            item = shape["member"].get("locationName", "member")
            body = "".join(self._element(item, shape["member"]["shape"], row) for row in value)
        elif shape["type"] == "boolean":
            body = "true" if value else "false"
        else:
            body = escape(str(value))
        return f"<{tag}>{body}</{tag}>"


@cache
def _read_model(service: str) -> Mapping[str, Any]:
    found = importlib.util.find_spec("botocore")
    locations = found.submodule_search_locations if found is not None else None
    assert locations  # botocore is a dependency
    folder = Path(locations[0]) / "data" / service / VERSIONS[service]
    packed = folder / "service-2.json.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / "service-2.json").read_bytes()
    return dict(json.loads(text))


def form(body: bytes) -> dict[str, str]:
    """The fields of a form in a request's body. Raises AwsError for one that cannot be decoded."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    except ValueError as e:
        raise AwsError("MalformedQueryString", "The query string contains a syntax error", status=404) from e


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
