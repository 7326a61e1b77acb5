"""AWS calls that a machine makes with its role. One that the role's policies do not allow is refused, as on AWS."""

from __future__ import annotations

import json
from collections.abc import Mapping

from clusterctl_rehearsal.api.front import Api, Reply
from clusterctl_rehearsal.region.node_role import allows, role_of
from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.store import Store

START = "AWSStepFunctions.StartExecution"


class NodeCalls:
    """Nodes may only start a state machine, so the stand-in knows only that call."""

    def __init__(self, *, api: Api, store: Store) -> None:
        self._api = api
        self._store = store

    def answer(self, instance: Record, headers: Mapping[str, str], body: bytes) -> Reply:
        """The answer to a request that came from the instance's machine."""
        machine = _machine(body)
        role = role_of(self._store, instance)
        is_start = headers.get("X-Amz-Target") == START
        if role is not None and is_start and allows(self._store, role, "states:StartExecution", machine):
            return self._api.answer(headers, body)
        caller = f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{'none' if role is None else role.id}/{instance.id}"
        asked = headers.get("X-Amz-Target", "").rpartition(".")[2]
        message = f"User: {caller} is not authorized to perform: states:{asked} on resource: {machine}"
        refusal = json.dumps({"__type": "AccessDeniedException", "message": message}).encode()
        return Reply(status=400, body=refusal, content_type="application/x-amz-json-1.0")


def _machine(body: bytes) -> str:
    try:
        return str(json.loads(body)["stateMachineArn"])
    except (ValueError, TypeError, KeyError):
        return "*"
