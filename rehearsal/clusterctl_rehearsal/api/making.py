"""Shared by calls that make, change or tag resources: dry runs, client tokens, tags, and finding a resource."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any  # parameters and answers are JSON-like

from clusterctl_rehearsal.api.call import Call
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.types.table import TYPES


def refuse_dry_run(call: Call) -> None:
    """Raises AWS's answer to a dry run that would have succeeded."""
    if call.parameters.get("DryRun"):
        raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)


def living(call: Call, token: str, id: str) -> Record:
    """The living resource in the call's region. Raises AWS's error if there is none."""
    found = call.find(token, id)
    if found is None or not found.is_live:
        raise AwsError(TYPES[token].not_found, f"The {TYPES[token].kind} ID '{id}' does not exist")
    return found


def made(
    call: Call, token: str, inputs: Properties, *, has_tags: bool = True, waits: bool = True, number: int = 0
) -> Record:
    """Makes a resource with the request's tags; returns it, or what an earlier request with the same token made.

    `waits`: return a file system only once it is available. `number`: which of the several resources that one request
    makes, from 0. Raises AwsError.
    """
    refuse_dry_run(call)
    tags = {} if not has_tags else {"tags": {**tags_of(call), **(inputs.get("tags") or {})}}
    given = {key: value for key, value in inputs.items() if value is not None}
    client_token = str(call.parameters.get("ClientToken", "")) if has_tags else ""
    row = call.region.create(
        token,
        {**given, **tags},
        region=call.region_name,
        request=f"{client_token}#{number}" if client_token and number else client_token,
        machines="none",
        progress=lambda _: None,
        waits=waits,
    )
    return _as_asked(call, row) if client_token else row


def _as_asked(call: Call, row: Record) -> Record:
    """The resource that the request's token made. Raises AWS's refusal if another request had that token."""
    asked = json.dumps({**call.parameters, "DryRun": None}, sort_keys=True, default=str)
    before = row.facts.get("asked")
    if before is None:
        return call.region.store.put(row.changed(asked=asked))
    if before != asked:
        message = "The client token you have provided is not idempotent: another request had it."
        raise AwsError("IdempotentParameterMismatch", message)
    return row


def tags_of(call: Call) -> dict[str, str]:
    """The tags in an EC2 request's specifications."""
    specifications = call.parameters.get("TagSpecifications") or []
    return {tag["Key"]: tag["Value"] for row in specifications for tag in row.get("Tags", [])}


def retag(call: Call, row: Record, tags: Mapping[str, str]) -> Record:
    """Stores the resource with these tags and no others, and returns it."""
    known = {"tags": dict(tags)}
    changed = dataclasses.replace(
        row, inputs={**row.inputs, **known}, outputs={**row.outputs, **known, "tagsAll": dict(tags)}
    )
    return call.region.store.put(changed)


def named_tags(rows: list[dict[str, Any]] | None, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """A service's list of tags as a dictionary."""
    return {row[key]: row.get(value, "") for row in rows or []}
