"""Step Functions with the state machine that ends a cluster, and what its executions say of machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any  # AWS's answers

from clusterctl_infra.names import guard_name

ID = "0123456789ab"
"""The cluster's id."""
WOULD = "Request would have succeeded, but DryRun flag is set. (Service: Ec2, Status Code: 412, Request ID: x)"
DENIED = "You are not authorized to perform this operation. (Service: Ec2, Status Code: 403, Request ID: x)"


def output_of(**causes: str) -> str:
    rows = [{"Id": id, "Answer": {"Error": "Ec2.Ec2Exception", "Cause": cause}} for id, cause in causes.items()]
    return json.dumps(rows)


def succeeded(**causes: str) -> dict[str, str]:
    return {"status": "SUCCEEDED", "output": output_of(**causes)}


@dataclass
class StateMachine:
    """Step Functions with one state machine: what each look at its executions shows, one after the other."""

    looks: list[dict[str, str]]
    name: str = guard_name(ID)
    started: list[str] = field(default_factory=list)

    def get_paginator(self, call: str) -> StateMachine:
        return self

    def paginate(self) -> Iterable[dict[str, Any]]:
        return ({"stateMachines": [{"name": self.name, "stateMachineArn": "arn:machine"}]},)

    def start_execution(self, **asked: str) -> dict[str, str]:
        self.started.append(asked["input"])
        return {"executionArn": "arn:execution"}

    def describe_execution(self, **asked: str) -> dict[str, str]:
        return self.looks.pop(0)
