"""Whether the person may read and cancel spot requests: tried before a machine is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from clusterctl_infra.errors import CloudError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.clients import Clients
from clusterctl.cloud.refusal import code_of

DENIED = ("Unauthorized", "AccessDenied")
"""In the codes by which AWS says that a right is missing."""
NO_REQUEST = "sir-00000000"
"""Of nobody: AWS says whether one may before it looks for it."""


def refuse_without_rights(clients: Clients, cluster_plan: ClusterPlan) -> None:
    """Raises CloudError when a right is missing without which `down` could not end the machines that `up` makes.

    The AWS provider reads each spot machine's request, and cancels it before it ends the machine: where it may not, a
    machine is made all the same, and bills until the deadline (terraform-provider-aws 6, ec2_instance.go; 2026-11-22).
    What AWS does not answer is no refusal: an `up` asks for much else.
    """
    if cluster_plan.price.spot is None:
        return
    lacking = [right for right, ask in _dry_runs(clients).items() if _is_denied(ask)]
    if lacking:
        raise CloudError(
            f"UnauthorizedOperation: spot machines need {' and '.join(lacking)}: without them machines would be made "
            "that down could not end (docs/security.md, Spot machines). Nothing was changed",
            code="UnauthorizedOperation",
            hint="aws sts get-caller-identity",
        )


def _dry_runs(clients: Clients) -> Mapping[str, Callable[[], object]]:
    ec2 = clients.ec2
    return {
        "ec2:DescribeSpotInstanceRequests": lambda: ec2.describe_spot_instance_requests(DryRun=True),
        "ec2:CancelSpotInstanceRequests": lambda: ec2.cancel_spot_instance_requests(
            DryRun=True, SpotInstanceRequestIds=[NO_REQUEST]
        ),
    }


def _is_denied(ask: Callable[[], object]) -> bool:
    """A dry run that would succeed is an error, too: DryRunOperation."""
    try:
        ask()
    except ClientError as e:
        return any(word in code_of(e) for word in DENIED)
    except (BotoCoreError, ResponseParserError):
        return False
    return False
