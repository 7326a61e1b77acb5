"""Refusals worded like the Terraform provider's, so that code that reads these also reads those from AWS."""

from __future__ import annotations

import uuid

from clusterctl_rehearsal.refusal import AwsError
from clusterctl_rehearsal.region.types.row import ResourceType


def provider_error(doing: str, row: ResourceType, operation: str, error: AwsError) -> str:
    """`1 error occurred: * creating EC2 Instance: operation error EC2: RunInstances, … api error CODE: sentence`.

    The frame is the Terraform bridge's (hashicorp/go-multierror), the middle aws-sdk-go-v2's.
    """
    return (
        "1 error occurred:\n"
        f"\t* {doing} {row.label}: operation error {row.service}: {operation}, "
        f"https response error StatusCode: {error.status}, RequestID: {uuid.uuid4()}, "
        f"api error {error.code}: {error.message}\n\n"
    )
