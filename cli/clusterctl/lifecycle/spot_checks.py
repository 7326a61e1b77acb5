"""Whether AWS would make spot machines for the maximum price, and let `down` end them: asked before any is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from clusterctl_infra.catalog.fresh_prices import refresh_command
from clusterctl_infra.errors import CapExceeded, CloudError
from clusterctl_infra.plan.model import ClusterPlan

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.price_list import spot_prices
from clusterctl.cloud.refusal import aws_errors, code_of
from clusterctl.engine.state import StackState
from clusterctl.lifecycle.drift import living_slots
from clusterctl.text.next_commands import edit
from clusterctl.text.quantities import usd


def refuse_below_spot_price(
    clients: Clients, cluster_plan: ClusterPlan, *, now: datetime, source: str, tell: Callable[[str], None]
) -> None:
    """Raises CapExceeded when machines cost more than their maximum now; else shows the current price.

    AWS would refuse only after network and storage were made; it does so if the right to ask for prices is missing.
    """
    spot = cluster_plan.price.spot
    if spot is None:
        return
    try:
        market = market_price(clients, cluster_plan, now=now)
    except CloudError as e:
        tell(f"  spot     the current spot price is not known: {e.message}")
        return
    where = cluster_plan.chosen_zone or f"the cheapest zone of {cluster_plan.region}"
    name, most = cluster_plan.instance_type, spot.max_usd_per_hour
    if market is None:
        tell(f"  spot     AWS names no spot price of {name} in {where}")
        return
    costs = f"a spot {name} costs {usd(market)} in {where} now"
    if most is not None and most < market:
        dated = cluster_plan.price.prices_dated
        why = "caps.price_usd_per_hour" if spot.is_capped else f"the price on demand of {dated}"
        raise CapExceeded(
            f"{costs}, but the maximum is {usd(most)} ({why}), so AWS would start none. Nothing was changed",
            hint=edit(source) if spot.is_capped else refresh_command(cluster_plan.region, name),
        )
    tell(f"  spot     {costs}; counted at {usd(most)}, the most that it can cost")


def market_price(clients: Clients, cluster_plan: ClusterPlan, *, now: datetime) -> float | None:
    """What AWS asks for one machine in the cluster's zone now, or in the cheapest one; None: it names no price.

    Raises CloudError.
    """
    name = cluster_plan.instance_type
    with aws_errors(f"asking for the spot price of {name}"):
        return spot_prices(clients, [name], now=now, zone=cluster_plan.chosen_zone).get(name)


DENIED = ("Unauthorized", "AccessDenied")
"""Parts of the codes by which AWS says that a right is missing."""
NO_REQUEST = "sir-00000000"
"""The id of no request: AWS says whether the caller has the right before it looks for the request."""


def refuse_without_rights(clients: Clients, cluster_plan: ClusterPlan) -> None:
    """Raises CloudError when a right is missing without which `down` could not end the machines that `up` makes.

    The AWS provider reads each spot machine's request, and cancels it before it ends the machine: where it may not, a
    machine is made all the same, and bills until the deadline (terraform-provider-aws 6, ec2_instance.go; 2026-11-22).
    If AWS does not answer, nothing is refused: the `up` asks for much else, and finds out then.
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
    """Whether AWS says that the right is missing; a dry run that would succeed is an error, too: DryRunOperation."""
    try:
        ask()
    except ClientError as e:
        return any(word in code_of(e) for word in DENIED)
    except (BotoCoreError, ResponseParserError):
        return False
    return False


def makes_spot_machines(
    clients: Clients, cluster_plan: ClusterPlan, state: StackState, *, anew: frozenset[int]
) -> bool:
    """Whether AWS is about to be asked for a spot machine, also for a slot that it took back. Raises CloudError."""
    if cluster_plan.price.spot is None:
        return False
    stays = living_slots(clients, state) - anew
    return not all(slot.slot in stays for slot in cluster_plan.slots)
