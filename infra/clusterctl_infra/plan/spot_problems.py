"""Problems with the maximum price of spot machines, and those that arise because AWS may take the machines back."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_infra.catalog.fresh_prices import refresh_command
from clusterctl_infra.config.quantities import format_duration
from clusterctl_infra.plan.case import Case, error, warning
from clusterctl_infra.plan.model import Problem
from clusterctl_infra.plan.spot import TOO_LOW_USD_PER_HOUR

_PATH = "caps.price_usd_per_hour"


def maximum_is_a_price(case: Case) -> Iterator[Problem]:
    spot = case.plan.price.spot
    if spot is None or spot.max_usd_per_hour is None or spot.max_usd_per_hour > TOO_LOW_USD_PER_HOUR:
        return
    yield error(
        _PATH, f"${case.config.caps.price_usd_per_hour:g}: AWS takes only a maximum price above ${TOO_LOW_USD_PER_HOUR}"
    )


def maximum_reaches_the_spot_price(case: Case) -> Iterator[Problem]:
    """Only a warning: the price is of another day, and of the cheapest zone. `up` asks AWS for the present one."""
    spot = case.plan.price.spot
    if spot is None or spot.max_usd_per_hour is None or spot.list_usd_per_hour is None:
        return
    if spot.max_usd_per_hour < spot.list_usd_per_hour:
        name, region = case.plan.instance_type, case.plan.region
        yield warning(
            _PATH,
            f"${spot.max_usd_per_hour:.2f} is less than a spot {name} in {region} cost, "
            f"${spot.list_usd_per_hour:.2f} ({case.plan.price.prices_dated}): while it costs that, AWS makes none "
            f"({refresh_command(region, name)} asks for today's price)",
        )


def maximum_holds_for_all(case: Case) -> Iterator[Problem]:
    """A spot request keeps the maximum that it was made with; the deadline counts each machine at its own."""
    spot = case.plan.price.spot
    if spot is None or spot.max_usd_per_hour is None:
        return
    living = [span.price_usd_per_hour for span in case.ledger.spans if span.ended_at is None]
    highest = max((price for price in living if price is not None), default=0.0)
    if highest > spot.max_usd_per_hour:
        yield warning(
            _PATH,
            f"${spot.max_usd_per_hour:.2f} holds for machines made from now on: those that run keep the maximum that "
            f"they were made with, up to ${highest:.2f}",
        )


def dead_man_waits_for_up(case: Case) -> Iterator[Problem]:
    allowed = case.config.caps.dead_man
    if case.plan.price.spot is not None and allowed is not None and case.config.nodes > 1:
        yield warning(
            "caps.dead_man",
            f"{format_duration(allowed)}: AWS may take slot 0 back, or most of the nodes at once; if no up brings them "
            "back within that, all others end",
        )


def spot_role_may_use_the_key(case: Case) -> Iterator[Problem]:
    """EC2 starts spot machines with a role of its own, which has no right to a customer managed key by itself.

    EC2 User Guide, "Service-linked role for Spot Instance requests", grants for customer managed keys (2026-11-26).
    """
    key = case.config.kms_key
    if key is None or case.plan.price.spot is None:
        return
    _, cloud, _, region, *_ = key.split(":")
    role = f"arn:{cloud}:iam::ACCOUNT:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    yield warning(
        "kms_key",
        f"spot machines are started by AWS's role AWSServiceRoleForEC2Spot, which needs a grant on the key, once: aws "
        f"kms create-grant --region {region} --key-id {key} --grantee-principal {role} --operations Decrypt "
        "Encrypt GenerateDataKey GenerateDataKeyWithoutPlaintext CreateGrant DescribeKey ReEncryptFrom ReEncryptTo "
        "(ACCOUNT: the cluster's, as aws sts get-caller-identity says); without it AWS ends them at once",
    )


SPOT_RULES = (
    maximum_is_a_price,
    maximum_reaches_the_spot_price,
    maximum_holds_for_all,
    dead_man_waits_for_up,
    spot_role_may_use_the_key,
)
