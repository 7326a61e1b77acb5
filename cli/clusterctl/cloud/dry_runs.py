"""Which rights an `up` lacks: found out by calls that AWS checks but does not carry out (DryRun)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any  # EC2's requests: typed dictionaries with every key optional

from botocore.exceptions import BotoCoreError, ClientError
from clusterctl_infra.names import ID_TAG

from clusterctl.cloud.adopted_capacity import PLATFORM
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.preflight_finding import Finding
from clusterctl.cloud.preflight_needs import Needs
from clusterctl.cloud.refusal import code_of

PARALLEL = 16
NO_ID = "0" * 12


def rights(clients: Clients, needs: Needs, now: datetime) -> Iterator[Finding]:
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        answers = dict(pool.map(lambda row: (row[0], _dry_run(row[1])), dry_runs(clients, needs).items()))
    lacking = [right for right, code in answers.items() if code is not None]
    limit = f"{len(answers)} dry runs"
    if lacking:
        value, helps = f"you may not {', '.join(lacking)}", "aws sts get-caller-identity"
        yield Finding(about="rights", level="error", value=value, limit=limit, helps=helps)
    else:
        yield Finding(about="rights", level="ok", value="none is known to be missing", limit=limit)


def dry_runs(clients: Clients, needs: Needs) -> Mapping[str, Callable[[], object]]:
    """Right → the dry run that needs it, with the cluster's tags, since a policy may require them."""
    ec2: Any = clients.ec2
    kind, zone = needs.types[0].name, needs.zone or f"{needs.region}a"

    def tagged(word: str) -> dict[str, Any]:
        tags = {**needs.tags, ID_TAG: needs.own_id or NO_ID}
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        return {"DryRun": True, "TagSpecifications": [{"ResourceType": word, "Tags": rows}]}

    own_network = {
        "ec2:CreateVpc": lambda: ec2.create_vpc(CidrBlock="10.0.0.0/16", **tagged("vpc")),
        "ec2:CreateInternetGateway": lambda: ec2.create_internet_gateway(**tagged("internet-gateway")),
    }
    reserves = {
        "ec2:CreateCapacityReservation": lambda: ec2.create_capacity_reservation(
            InstanceType=kind,
            InstancePlatform=PLATFORM,
            AvailabilityZone=zone,
            InstanceCount=1,
            **tagged("capacity-reservation"),
        ),
        "ec2:CreatePlacementGroup": lambda: ec2.create_placement_group(
            GroupName="clusterctl-dry-run", Strategy="cluster", **tagged("placement-group")
        ),
    }
    return {
        **({} if needs.vpc_id is not None else own_network),
        **({"ec2:AllocateAddress": lambda: ec2.allocate_address(**tagged("elastic-ip"))} if needs.addresses else {}),
        **(reserves if needs.market == "on-demand" else {}),
        "ec2:CreateLaunchTemplate": lambda: ec2.create_launch_template(
            LaunchTemplateName="clusterctl-dry-run",
            LaunchTemplateData={"InstanceType": kind},
            **tagged("launch-template"),
        ),
    }


def _dry_run(call: Callable[[], object]) -> str | None:
    """AWS's code if the right is missing; None for any other answer: the right is there, or nothing is known of it."""
    try:
        call()
    except ClientError as e:
        code = code_of(e)
        return code if any(word in code for word in ("Unauthorized", "AccessDenied")) else None
    except BotoCoreError:
        return None
    return None
