"""Spot machines: requests to the market, and all of AWS's refusals of them. Pure, except that it reads the store."""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass

from clusterctl_infra.catalog.reader import Catalog

from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.record import Properties, Record
from clusterctl_rehearsal.region.settings import Settings
from clusterctl_rehearsal.region.store import Store
from clusterctl_rehearsal.region.types.network import INSTANCE

SPOT = "spot"
NO_SPOT_CAPACITY = "There is no Spot capacity available that matches your request."
"""AWS's sentence beside InsufficientInstanceCapacity (aws-parallelcluster's logs of RunInstances; 2026-11-22)."""


@dataclass(frozen=True, kw_only=True)
class SpotRequest:
    """SpotOptions of a RunInstances."""

    max_price: str | None
    """US dollars an hour, as it was written; None: up to the on-demand price."""
    kind: str
    """`one-time` or `persistent`."""
    at_interruption: str
    """`terminate`, `stop` or `hibernate`."""
    valid_until: str | None


def spot_request(market_options: Properties) -> SpotRequest | None:
    """What is asked of the spot market; None when nothing is."""
    if market_options.get("marketType") != SPOT:
        return None
    options = market_options.get("spotOptions") or {}
    return SpotRequest(
        max_price=None if options.get("maxPrice") in (None, "") else str(options["maxPrice"]),
        kind=options.get("spotInstanceType") or "one-time",
        at_interruption=options.get("instanceInterruptionBehavior") or "terminate",
        valid_until=options.get("validUntil"),
    )


def is_spot(record: Record) -> bool:
    """Whether the instance is a spot machine."""
    return record.facts.get("market") == SPOT


def check_options(spot: SpotRequest, *, is_targeted: bool) -> None:
    """Raises AWS's refusals of options that exclude each other, and StandInRefusal for a request that is not one-time.

    `is_targeted`: the request wants a place in a reservation.
    """
    if is_targeted:  # AWS documents that this is refused; its message is not known (2026-11-22)
        raise AwsError(
            "InvalidParameterCombination", "Spot Instances cannot be launched into a targeted Capacity Reservation."
        )
    if spot.kind == "one-time" and spot.at_interruption != "terminate":
        raise AwsError(  # its sentence as of 2019 (harmony-one/harmony-ops#285; read 2026-11-22)
            "InvalidParameterCombination",
            "The request with type 'one-time' is not supported when instanceInterruptionBehavior is set to "
            f"'{spot.at_interruption}'.",
        )
    if spot.kind == "one-time" and spot.valid_until is not None:
        raise AwsError(  # aws/aws-cli#4679
            "InvalidParameterCombination",
            "The parameter validUntil cannot be specified when the SpotRequestType is set to 'one-time'.",
        )
    if spot.kind != "one-time":
        raise StandInRefusal(f"the stand-in does not know {spot.kind} spot requests yet, only one-time ones")


def check_price(spot: SpotRequest, lowest_usd_per_hour: float | None) -> None:
    """Raises AWS's refusal of a maximum below the price. None: the price is not known, and any maximum will do."""
    if spot.max_price is None:
        return
    try:
        most_usd_per_hour = float(spot.max_price)
    except ValueError:
        most_usd_per_hour = 0.0
    if not most_usd_per_hour > 0:
        raise AwsError("InvalidParameterValue", f"Invalid value '{spot.max_price}' for MaxPrice.")
    if lowest_usd_per_hour is not None and most_usd_per_hour < lowest_usd_per_hour:
        raise AwsError(  # aws/aws-parallelcluster-node#415
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {spot.max_price} is lower than the minimum required Spot request fulfillment "
            f"price of {lowest_usd_per_hour}.",
        )


def check_quota(store: Store, settings: Settings, catalog: Catalog, region: str, *, more: int) -> None:
    """Raises MaxSpotInstanceCountExceeded unless the account may use `more` vCPUs of spot machines."""
    limit = settings.quotas.get("spot_vcpus")
    if limit is None:
        return
    kinds = [
        catalog.instance_type(str(row.facts["instance_type"]))
        for row in store.live(INSTANCE)
        if row.region == region and is_spot(row)
    ]
    if sum(kind.vcpus for kind in kinds if kind is not None) + more > limit:
        raise AwsError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")


def new_request_id() -> str:
    """A spot request's id in AWS's form: `sir-` and eight letters and digits."""
    return "sir-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))


def market_outputs(spot: SpotRequest, request_id: str) -> Properties:
    """What the provider shows of a spot machine and its request (internal/service/ec2/ec2_instance.go)."""
    options = {"instanceInterruptionBehavior": spot.at_interruption, "spotInstanceType": spot.kind}
    if spot.max_price is not None:
        options["maxPrice"] = spot.max_price
    return {
        "instanceLifecycle": SPOT,
        "spotInstanceRequestId": request_id,
        "instanceMarketOptions": {"marketType": SPOT, "spotOptions": options},
    }
