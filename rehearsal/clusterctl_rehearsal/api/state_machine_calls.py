"""A state machine's calls of EC2: answered in the region's own process, with AWS's checks and messages."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any  # parameters and answers are JSON

from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.states.failure import RUNTIME, ExecutionFailed, TaskFailed
from clusterctl_rehearsal.states.interpreter import Call


def ec2_calls(api: Api, region_name: str) -> Call:
    """The function by which state machines call EC2 in the region."""

    def call(action: str, parameters: Mapping[str, Any]) -> Any:
        operation = action[:1].upper() + action[1:]
        if problem := api.problem_with("ec2", operation, parameters):
            raise ExecutionFailed(RUNTIME, problem)
        try:
            return api.answer_in_process("ec2", operation, parameters, region_name)
        except AwsError as e:
            details = f"(Service: Ec2, Status Code: {e.status}, Request ID: {uuid.uuid4()})"
            # EC2's model defines no exceptions, so every refusal has this name.
            raise TaskFailed("Ec2.Ec2Exception", f"{e.message} {details}") from e

    return call
